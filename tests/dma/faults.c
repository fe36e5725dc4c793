/* SPDX-License-Identifier: MIT */
/* Channels that hang, die, cannot be had or will not go away; openings that fail at any step. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy/dma/device.h"
#include "dma/helper_dma.h"

#define SIZE ((size_t)256 << 10)
#define TIMEOUT_NS 250000000

/* A port that counts how often channels are closed. */
static struct gdri_dma_port_ops counting_ops;
static const struct gdri_dma_port_ops *real_ops;
static _Atomic unsigned closes;

static int close_counted(struct gdri_dma_queue *queue)
{
	closes++;
	return real_ops->close_queue(queue);
}

static void count_closes(struct dma_rig *rig)
{
	real_ops = rig->port.base.ops;
	counting_ops = *real_ops;
	counting_ops.close_queue = close_counted;
	rig->port.base.ops = &counting_ops;
}

/* What a lost channel knew is never freed; leak checkers find it here. */
static struct gdri_dma *volatile lost_for_ever;

/* One channel for everything, so that its submissions can be counted. */
static struct gdri_dma_options one_channel_options(void)
{
	struct gdri_dma_options options = dma_options();

	options.engine = 3;
	return options;
}

/* For channels that hang; a healthy one on a busy machine may be as slow. */
static struct gdri_dma_options short_options(void)
{
	struct gdri_dma_options options = one_channel_options();

	options.timeout_ns = TIMEOUT_NS;
	return options;
}

/* Lines that were written to this file. */
static unsigned count_warnings(int fd)
{
	char text[4096];
	unsigned lines = 0;
	ssize_t length;

	lseek(fd, 0, SEEK_SET);
	length = read(fd, text, sizeof(text));
	for (ssize_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

/*
 * Copies until the channel fails: the result, and what came before it, is right.
 * Then every call finds the device without channels, and everything can be given
 * back.
 */
static int copy_until_failure(struct gdri_dma_target *target, uint8_t *host, bool reads)
{
	int rc = 0;

	for (unsigned turn = 0; turn < 100 && rc == 0; turn++)
		rc = reads ? gdri_dma_from_device(target, 0, host, SIZE) :
			     gdri_dma_to_device(target, 0, host, SIZE);
	return rc;
}

static void die_alone(int expected, bool reads, bool registered)
{
	const struct gdri_dma_options options = expected == -ETIMEDOUT ? short_options() :
									 one_channel_options();
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE);
	struct gdri_dma_memory described;
	struct gdri_dma_target *another = NULL;
	enum gdri_dma_route route;
	char text[64];

	dma_open(&rig, &options);
	count_closes(&rig);
	dma_attach(&rig, 0, SIZE, &memory);
	if (registered)
		REQUIRE_EQ(gdri_dma_register(rig.dma, host, SIZE), 0);
	CHECK_EQ(copy_until_failure(memory.target, host, reads), expected);
	CHECK_EQ(closes, 1);
	CHECK_EQ(gdri_dma_to_device(memory.target, 0, host, 10), -ENODEV);
	CHECK_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), -ENODEV);
	CHECK_EQ(gdri_dma_between(memory.target, 0, memory.target, 100, 10, GDRI_DMA_ROUTE_AUTO,
				  &route), -ENODEV);
	described = dma_describe(&memory);
	CHECK_EQ(gdri_dma_attach(rig.dma, &described, &another), -ENODEV);
	CHECK(another == NULL);
	gdri_dma_describe(memory.target, text, sizeof(text));
	CHECK(strcmp(text, "no channel any more") == 0);
	if (registered)
		CHECK_EQ(gdri_dma_unregister(rig.dma, host), 0);
	dma_free(&rig, &memory);
	dma_close(&rig);
	CHECK_EQ(closes, 1);
}

static void hang_write_body(void)
{
	die_alone(-ETIMEDOUT, false, false);
}

static void hang_read_registered_body(void)
{
	die_alone(-ETIMEDOUT, true, true);
}

static void die_read_body(void)
{
	die_alone(-EIO, true, false);
}

static void die_write_registered_body(void)
{
	die_alone(-EIO, false, true);
}

/*
 * A process that is stopped for longer than the time-out, in the middle of its
 * copies, goes on with them.
 */
static void stopped_body(void)
{
	const struct gdri_dma_options options = short_options();
	const pid_t self = getpid();
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE);
	pid_t child;

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory);
	child = fork();
	if (child == 0) {
		for (unsigned i = 0; i < 2; i++) {
			usleep(20000);
			kill(self, SIGSTOP);
			usleep(3 * TIMEOUT_NS / 1000);
			kill(self, SIGCONT);
		}
		_exit(0);
	}
	REQUIRE(child > 0);
	while (waitpid(child, NULL, WNOHANG) == 0)
		REQUIRE_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), 0);
	dma_free(&rig, &memory);
	dma_close(&rig);
}

/* Said once, not with every copy. */
static void log_once_body(void)
{
	const struct gdri_dma_options options = one_channel_options();
	FILE *log = tmpfile();
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE);
	unsigned lines;

	REQUIRE(log != NULL);
	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory);
	fflush(stderr);
	REQUIRE(dup2(fileno(log), 2) == 2);
	rig.log.level = GDRI_LOG_WARN;
	CHECK_EQ(copy_until_failure(memory.target, host, true), -EIO);
	lines = count_warnings(fileno(log));
	/* The channel's error, the channel's fate, the device's. */
	CHECK_EQ(lines, 3);
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), -ENODEV);
	CHECK_EQ(count_warnings(fileno(log)), lines);
	dma_free(&rig, &memory);
	dma_close(&rig);
}

/* Nobody knows whether the channel is gone. */
static void lost_body(void)
{
	const struct gdri_dma_options options = short_options();
	struct dma_memory memory, other;
	struct dma_rig rig;
	uint8_t *registered = dma_pages(SIZE), *pageable = dma_pages(SIZE);

	dma_open(&rig, &options);
	count_closes(&rig);
	dma_attach(&rig, 0, SIZE, &memory);
	dma_attach(&rig, 0, SIZE, &other);
	REQUIRE_EQ(gdri_dma_register(rig.dma, registered, SIZE), 0);
	CHECK_EQ(copy_until_failure(memory.target, pageable, false), -EOWNERDEAD);
	/* The range that was written is in doubt for ever, the other one is not. */
	CHECK_EQ(gdri_dma_to_device(memory.target, 0, pageable, 10), -EOWNERDEAD);
	CHECK_EQ(gdri_dma_from_device(other.target, 0, pageable, 10), -ENODEV);
	/* Pages that the channel knew stay what they are. */
	CHECK(!gdri_dma_is_registered(rig.dma, registered, 1));
	CHECK_EQ(gdri_dma_register(rig.dma, registered, SIZE), -EEXIST);
	CHECK_EQ(gdri_dma_unregister(rig.dma, registered), -EOWNERDEAD);
	CHECK_EQ(gdri_dma_unregister(rig.dma, registered), -ENOENT);
	CHECK_EQ(gdri_dma_register(rig.dma, registered, SIZE), -EEXIST);
	gdri_dma_detach(memory.target);
	gdri_dma_detach(other.target);
	CHECK_EQ(gdri_dma_destroy(rig.dma), -EOWNERDEAD);
	lost_for_ever = rig.dma;
	CHECK_EQ(closes, 1);
}

/* With two devices: a range that the lost one knew is not used by the other one either. */
static void lost_neighbour_body(void)
{
	const struct gdri_dma_options options = short_options();
	struct dma_memory memory[2];
	struct dma_rig rig;
	uint8_t *host = dma_pages(2 * SIZE);

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory[0]);
	dma_attach(&rig, 1, SIZE, &memory[1]);
	REQUIRE_EQ(gdri_dma_register(rig.dma, host, SIZE), 0);
	CHECK_EQ(copy_until_failure(memory[0].target, host, true), -EOWNERDEAD);
	CHECK_EQ(gdri_dma_from_device(memory[1].target, 0, host, 100), -EOWNERDEAD);
	CHECK_EQ(gdri_dma_from_device(memory[1].target, 0, host + SIZE - 10, 20), -EOWNERDEAD);
	CHECK_EQ(gdri_dma_from_device(memory[1].target, 0, host + SIZE, 100), 0);
	gdri_dma_detach(memory[0].target);
	gdri_dma_detach(memory[1].target);
	CHECK_EQ(gdri_dma_destroy(rig.dma), -EOWNERDEAD);
	lost_for_ever = rig.dma;
}

/* Eight threads wait for a channel that dies: all learn, one closes. */
#define THREADS 8

struct mourner {
	struct gdri_dma_target *target;
	uint8_t *host;
	int rc;
	pthread_t thread;
};

static void *mourn(void *arg)
{
	struct mourner *mourner = arg;

	mourner->rc = copy_until_failure(mourner->target, mourner->host, true);
	return NULL;
}

static void die_together(int expected)
{
	struct gdri_dma_options options = expected == -ETIMEDOUT ? short_options() :
								   one_channel_options();
	struct mourner mourners[THREADS];
	struct dma_memory memory;
	struct dma_rig rig;
	unsigned met = 0;

	options.bounce_bytes = options.chunk_bytes = 65536;	/* so most wait for a chunk */
	dma_open(&rig, &options);
	count_closes(&rig);
	dma_attach(&rig, 0, SIZE, &memory);
	for (unsigned i = 0; i < THREADS; i++) {
		mourners[i] = (struct mourner){ .target = memory.target, .host = dma_pages(SIZE) };
		if (i % 2)
			REQUIRE_EQ(gdri_dma_register(rig.dma, mourners[i].host, SIZE), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		REQUIRE_EQ(pthread_create(&mourners[i].thread, NULL, mourn, &mourners[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		REQUIRE_EQ(pthread_join(mourners[i].thread, NULL), 0);
		/* Those that had not begun find no device, or no chunk. */
		CHECK(mourners[i].rc == expected || mourners[i].rc == -ENODEV ||
		      mourners[i].rc == -EBUSY);
		met += mourners[i].rc == expected;
	}
	CHECK(met > 0);
	CHECK_EQ(closes, 1);
	gdri_dma_detach(memory.target);
	CHECK_EQ(gdri_dma_destroy(rig.dma), expected == -EOWNERDEAD ? expected : 0);
	if (expected == -EOWNERDEAD)
		lost_for_ever = rig.dma;
	CHECK_EQ(closes, 1);
}

static void die_together_body(void)
{
	die_together(-EIO);
}

static void hang_together_body(void)
{
	die_together(-ETIMEDOUT);
}

static void lose_together_body(void)
{
	die_together(-EOWNERDEAD);
}

/* One side of a staged copy fails; the other side's launches are waited for. */
static void staged_death_body(void)
{
	const struct gdri_dma_options options = dma_options();
	struct dma_memory memory[2];
	struct dma_rig rig;
	enum gdri_dma_route route = GDRI_DMA_LOCAL;
	int rc = 0;

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory[0]);
	dma_attach(&rig, 1, SIZE, &memory[1]);
	for (unsigned turn = 0; turn < 100 && rc == 0; turn++)
		rc = gdri_dma_between(memory[1].target, 0, memory[0].target, 0, SIZE,
				      GDRI_DMA_ROUTE_STAGED, &route);
	CHECK_EQ(rc, -EIO);
	dma_free(&rig, &memory[0]);
	dma_free(&rig, &memory[1]);
	dma_close(&rig);
}

/* The source is gone in part, so nobody may try again by another road. */
static void overlapping_death_body(void)
{
	const struct gdri_dma_options options = one_channel_options();
	struct dma_memory memory;
	struct dma_rig rig;
	enum gdri_dma_route route;
	int rc = 0;

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory);
	for (unsigned turn = 0; turn < 100 && rc == 0; turn++)
		rc = gdri_dma_between(memory.target, 0, memory.target, 100, SIZE / 2,
				      GDRI_DMA_ROUTE_AUTO, &route);
	CHECK_EQ(rc, -EOWNERDEAD);
	/* The channel itself is known to be gone. */
	CHECK_EQ(gdri_dma_between(memory.target, 0, memory.target, 100, SIZE / 2,
				  GDRI_DMA_ROUTE_AUTO, &route), -ENODEV);
	dma_free(&rig, &memory);
	dma_close(&rig);
}

static void overlapping_death(void)
{
	dma_run_with("dma=die:9", overlapping_death_body);
}

/* A session from beginning to end; its first attach gives this. */
static void run_session(int expected, bool kept, int at_close)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma_memory described;
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE);

	options.timeout_ns = expected == -ETIMEDOUT || expected == -EOWNERDEAD ? TIMEOUT_NS : 0;
	dma_open(&rig, &options);
	count_closes(&rig);
	dma_alloc(&rig, 0, SIZE, &memory);
	described = dma_describe(&memory);
	CHECK_EQ(gdri_dma_attach(rig.dma, &described, &memory.target), expected);
	if (memory.target)
		CHECK_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), 0);
	else if (kept)
		CHECK_EQ(gdri_dma_attach(rig.dma, &described, &memory.target), expected);
	if (memory.target)
		gdri_dma_detach(memory.target);
	memory.target = NULL;
	CHECK_EQ(gdri_dma_destroy(rig.dma), at_close);
	if (at_close == -EOWNERDEAD)
		lost_for_ever = rig.dma;
	munmap(host, SIZE);
	dma_free(&rig, &memory);
}

static void open_and_close(int expected, int at_close)
{
	run_session(expected, true, at_close);
}

static void busy_body(void)
{
	open_and_close(-EBUSY, 0);
	CHECK_EQ(closes, 0);
}

static void none_body(void)
{
	open_and_close(-EOPNOTSUPP, 0);
	CHECK_EQ(closes, 0);
}

static void one_channel_body(void)
{
	open_and_close(0, 0);
	CHECK_EQ(closes, 1);
	open_and_close(0, 0);
	CHECK_EQ(closes, 2);
}

static void stillborn_body(void)
{
	open_and_close(-EIO, 0);
	CHECK_EQ(closes, 1);
}

static void silent_body(void)
{
	open_and_close(-ETIMEDOUT, 0);
	CHECK_EQ(closes, 1);
}

static void lost_at_birth_body(void)
{
	open_and_close(-EOWNERDEAD, -EOWNERDEAD);
	CHECK_EQ(closes, 1);
}

static void unconfirmed_close_body(void)
{
	open_and_close(0, -EOWNERDEAD);
	CHECK_EQ(closes, 2);
}

/*
 * A step of the second session's opening fails; the third one is as the first,
 * and nothing is left over.  (Of the heap: the address sanitizer sees that.)
 */
#define HEAP_NOISE ((size_t)1 << 20)	/* less than bounce or scratch memory */

static int failing_result;
static bool failing_is_kept;

static void failing_step_body(void)
{
	size_t maps;
	int fds;

	open_and_close(0, 0);
	maps = harness_count_maps();
	fds = harness_count_fds();
	run_session(failing_result, failing_is_kept, 0);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK(harness_count_maps() < maps + HEAP_NOISE);
	open_and_close(0, 0);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK(harness_count_maps() < maps + HEAP_NOISE);
}

static void failing_steps(void)
{
	static const struct {
		const char *settings;
		int result;
		bool kept;
	} steps[] = {
		{ "fail=dma-space:2", -ENOMEM, true },
		{ "fail=dma-scratch:2", -ENOMEM, true },
		{ "fail=dma-host:2", -ENOMEM, true },
		{ "fail=dma-engines:2:5", -EIO, true },
		/* Two channels; the one that serves two ways is tried for each of them. */
		{ "fail=dma-queue:3,fail=dma-queue:4,fail=dma-queue:5", -ENOMEM, true },
		/* Some channels are better than none. */
		{ "fail=dma-queue:3", 0, true },
		{ "fail=dma-queue:4", 0, true },
		{ "fail=dma-queue:3,fail=dma-queue:4", 0, true },
		{ "fail=dma-queue:4,fail=dma-queue:5", 0, true },
		/* The memory's own trouble, not the device's. */
		{ "fail=dma-map:2", -ENOMEM, false },
	};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		failing_result = steps[i].result;
		failing_is_kept = steps[i].kept;
		dma_run_with(steps[i].settings, failing_step_body);
	}
}

/* Copies that never end hold every chunk: the others do not wait for ever. */
static void no_chunk_body(void)
{
	const struct gdri_dma_options options = short_options();
	struct gdri_dma_bounce *bounce;
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE);
	uint64_t chunks = 0;
	int chunk;

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory);
	bounce = &memory.target->device->bounce;
	while ((chunk = gdri_dma_bounce_take(bounce)) >= 0)
		chunks |= UINT64_C(1) << chunk;
	CHECK_EQ(chunks, 0xffff);
	CHECK_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), -EBUSY);
	CHECK_EQ(gdri_dma_to_device(memory.target, 0, host, 1), -EBUSY);
	REQUIRE_EQ(gdri_dma_register(rig.dma, host, SIZE), 0);
	CHECK_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), 0);
	CHECK_EQ(gdri_dma_unregister(rig.dma, host), 0);
	gdri_dma_bounce_give(bounce, 7);
	CHECK_EQ(gdri_dma_from_device(memory.target, 0, host, SIZE), 0);
	dma_free(&rig, &memory);
	dma_close(&rig);
}

static void no_chunk(void)
{
	dma_run_with("", no_chunk_body);
}

/* Registering: for every device, or for none. */
static void failing_register_body(void)
{
	const struct gdri_dma_options options = dma_options();
	struct dma_memory memory[2];
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE);

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory[0]);
	dma_attach(&rig, 1, SIZE, &memory[1]);
	/* Five views of host memory are there: each device's bounce memory twice, and one. */
	CHECK_EQ(gdri_dma_register(rig.dma, host, SIZE), -ENOMEM);
	CHECK(!gdri_dma_is_registered(rig.dma, host, 1));
	CHECK_EQ(gdri_dma_unregister(rig.dma, host), -ENOENT);
	CHECK_EQ(gdri_dma_from_device(memory[1].target, 0, host, SIZE), 0);
	CHECK_EQ(gdri_dma_register(rig.dma, host, SIZE), 0);
	CHECK_EQ(gdri_dma_unregister(rig.dma, host), 0);
	dma_free(&rig, &memory[0]);
	dma_free(&rig, &memory[1]);
	dma_close(&rig);
}

static void failing_register(void)
{
	dma_run_with("devices=2,fail=dma-host:6", failing_register_body);
}

static void none(void)
{
	dma_run_with("dma=0", none_body);
}

static void busy(void)
{
	dma_run_with("dma=busy", busy_body);
}

static void one_channel(void)
{
	dma_run_with("dma=busy:1", one_channel_body);
}

static void stillborn(void)
{
	dma_run_with("dma=die", stillborn_body);
}

static void silent(void)
{
	dma_run_with("dma=hang", silent_body);
}

static void lost_at_birth(void)
{
	dma_run_with("dma=hang,dma=unconfirmed", lost_at_birth_body);
}

static void unconfirmed_close(void)
{
	dma_run_with("dma=unconfirmed", unconfirmed_close_body);
}

static void hang_write(void)
{
	dma_run_with("dma=hang:6", hang_write_body);
}

static void hang_read_registered(void)
{
	dma_run_with("dma=hang:6", hang_read_registered_body);
}

static void die_read(void)
{
	dma_run_with("dma=die:6", die_read_body);
}

static void die_write_registered(void)
{
	dma_run_with("dma=die:6", die_write_registered_body);
}

static void stopped_process(void)
{
	dma_run_with("dma=delay:2000", stopped_body);
}

static void log_once(void)
{
	dma_run_with("dma=die:6", log_once_body);
}

static void lost(void)
{
	dma_run_with("dma=hang:7,dma=unconfirmed", lost_body);
}

static void lost_neighbour(void)
{
	dma_run_with("devices=2,dma=hang:7,dma=unconfirmed", lost_neighbour_body);
}

static void die_with_many_waiting(void)
{
	dma_run_with("dma=die:40", die_together_body);
}

static void hang_with_many_waiting(void)
{
	dma_run_with("dma=hang:40", hang_together_body);
}

static void lost_with_many_waiting(void)
{
	dma_run_with("dma=die:40,dma=unconfirmed", lose_together_body);
}

static void staged_death(void)
{
	dma_run_with("devices=2,dma=die:9", staged_death_body);
}

static const struct harness_case cases[] = {
	{ "none", none },
	{ "busy", busy },
	{ "one_channel", one_channel },
	{ "stillborn", stillborn },
	{ "silent", silent },
	{ "lost_at_birth", lost_at_birth },
	{ "unconfirmed_close", unconfirmed_close },
	{ "hang_write", hang_write },
	{ "hang_read_registered", hang_read_registered },
	{ "die_read", die_read },
	{ "die_write_registered", die_write_registered },
	{ "stopped_process", stopped_process },
	{ "log_once", log_once },
	{ "lost", lost },
	{ "lost_neighbour", lost_neighbour },
	{ "die_with_many_waiting", die_with_many_waiting },
	{ "hang_with_many_waiting", hang_with_many_waiting },
	{ "lost_with_many_waiting", lost_with_many_waiting },
	{ "staged_death", staged_death },
	{ "overlapping_death", overlapping_death },
	{ "failing_steps", failing_steps },
	{ "failing_register", failing_register },
	{ "no_chunk", no_chunk },
};

HARNESS_MAIN(cases)
