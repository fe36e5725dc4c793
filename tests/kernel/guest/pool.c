/* SPDX-License-Identifier: MIT */
/* The limit on kernel memory for pins: exact, shared fairly, in the log, settable at run time. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define LIMIT "/sys/module/gdrdrv/parameters/dma_pool_size_mb"
#define USE "/proc/driver/gdrdrv/pool"
#define SIZE (64ull << 20)
#define PIN_PAGES (SIZE / GPU_PAGE)
#define PAGE_COST 40	/* bytes charged for a GPU page */
#define FIRST_USER 1000
#define SECOND_USER 1001
#define MANY 200

/* The number on the line that begins with "used". */
static long pool_used(void)
{
	FILE *file = fopen(USE, "re");
	char line[256], *number;
	long used = -1;

	REQUIRE(file != NULL);
	while (fgets(line, sizeof(line), file)) {
		number = line + strcspn(line, "0123456789");
		if (strncasecmp(line, "used", 4) == 0 && *number != '\0')
			used = strtol(number, NULL, 10);
	}
	fclose(file);
	CHECK(used >= 0);
	return used;
}

static int log_fd = -1;

static void start_log(void)
{
	log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	REQUIRE(log_fd >= 0);
	lseek(log_fd, 0, SEEK_END);
}

/* Messages with this text since start_log(). */
static int count_log(const char *text)
{
	char record[2048];
	int count = 0;
	ssize_t length;

	while ((length = read(log_fd, record, sizeof(record) - 1)) > 0) {
		record[length] = '\0';
		count += strstr(record, text) != NULL;
	}
	close(log_fd);
	return count;
}

/* What a child does as a user, and what it tells its parent. */
struct order {
	uid_t uid;
	int most;		/* pins at most */
	int pinned;		/* answer */
	int error;		/* answer: of the pin that failed */
};

struct worker {
	pid_t pid;
	struct order *order;
	int hold;		/* closing it lets the child go on: it unpins all */
	int done;		/* becomes readable when the answers are there */
};

static void pin_many(struct order *order)
{
	struct buffer buffer = bench_alloc(SIZE);
	uint64_t handle;
	int fd = drv_open();

	for (order->pinned = 0; order->pinned < order->most; order->pinned++) {
		order->error = drv_pin(fd, buffer.va, SIZE, &handle);
		if (order->error != 0)
			return;
	}
}

static struct worker start_user(uid_t uid, int most)
{
	struct worker worker = { .pid = 0 };
	int hold[2], done[2];
	char byte;

	worker.order = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(worker.order != MAP_FAILED);
	*worker.order = (struct order){ .uid = uid, .most = most };
	REQUIRE_EQ(pipe2(hold, O_CLOEXEC), 0);
	REQUIRE_EQ(pipe2(done, O_CLOEXEC), 0);
	worker.pid = fork();
	if (worker.pid == 0) {
		close(hold[1]);
		bench_forget_gpu();
		if (uid != 0)
			bench_become_user(uid);
		pin_many(worker.order);
		if (write(done[1], "", 1) != 1)
			_exit(1);
		_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(hold[0]);
	close(done[1]);
	worker.hold = hold[1];
	CHECK_EQ(read(done[0], &byte, 1), 1);
	close(done[0]);
	return worker;
}

static struct order end_user(struct worker *worker)
{
	struct order order = *worker->order;
	int status;

	close(worker->hold);
	waitpid(worker->pid, &status, 0);
	CHECK_EQ(status, 0);
	munmap(worker->order, 4096);
	return order;
}

static void begin(const char *limit)
{
	bench_start();
	CHECK_EQ(bench_write_file(LIMIT, limit), 0);
	CHECK_EQ(pool_used(), 0);
}

static void end(void)
{
	CHECK_EQ(bench_write_file(LIMIT, "128"), 0);
	CHECK_EQ(pool_used(), 0);
	bench_end();
}

static void default_size(void)
{
	CHECK_EQ(bench_read_number(LIMIT), 128);
}

/* One user may take seven eighths. */
static void exhaustion_and_exact_return(void)
{
	long most = (1 << 20) / 8 * 7, used;
	struct worker worker;
	struct order first, second;

	begin("1");
	start_log();
	worker = start_user(FIRST_USER, MANY);
	used = pool_used();
	first = end_user(&worker);
	CHECK_EQ(first.error, -ENOMEM);
	CHECK(count_log("gdrdrv: out of dma memory") >= 1);
	CHECK(used <= most);
	CHECK(used >= first.pinned * (long)PIN_PAGES * PAGE_COST);
	CHECK((first.pinned + 1) * ((long)PIN_PAGES * PAGE_COST + 4096) > most);
	CHECK_EQ(pool_used(), 0);
	worker = start_user(FIRST_USER, MANY);
	CHECK_EQ(pool_used(), used);
	second = end_user(&worker);
	CHECK_EQ(second.pinned, first.pinned);
	end();
}

static void others_are_not_starved(void)
{
	struct worker greedy, modest;
	struct order order;

	begin("1");
	greedy = start_user(FIRST_USER, MANY);
	CHECK_EQ(greedy.order->error, -ENOMEM);
	modest = start_user(SECOND_USER, 2);
	order = end_user(&modest);
	CHECK_EQ(order.pinned, 2);
	end_user(&greedy);
	end();
}

/* More sessions or more processes do not make a user's share larger. */
static void one_user_many_processes(void)
{
	struct worker first, second;

	begin("1");
	first = start_user(FIRST_USER, MANY);
	second = start_user(FIRST_USER, MANY);
	CHECK_EQ(second.order->pinned, 0);
	CHECK_EQ(second.order->error, -ENOMEM);
	end_user(&second);
	end_user(&first);
	end();
}

static void root_is_exempt(void)
{
	struct worker greedy, root;
	struct order order;

	begin("1");
	greedy = start_user(FIRST_USER, MANY);
	root = start_user(0, 20);
	order = end_user(&root);
	CHECK_EQ(order.pinned, 20);
	end_user(&greedy);
	end();
}

static void larger_at_run_time(void)
{
	struct worker worker;
	struct order order;

	begin("1");
	CHECK_EQ(bench_write_file(LIMIT, "4"), 0);
	worker = start_user(FIRST_USER, 60);
	order = end_user(&worker);
	CHECK_EQ(order.pinned, 60);
	end();
}

static void smaller_than_its_use(void)
{
	struct worker worker, refused;

	begin("4");
	worker = start_user(FIRST_USER, 40);
	CHECK_EQ(worker.order->pinned, 40);
	CHECK_EQ(bench_write_file(LIMIT, "1"), 0);
	refused = start_user(SECOND_USER, 1);
	CHECK_EQ(refused.order->error, -ENOMEM);
	end_user(&refused);
	end_user(&worker);
	CHECK_EQ(pool_used(), 0);
	refused = start_user(SECOND_USER, 1);
	CHECK_EQ(refused.order->pinned, 1);
	end_user(&refused);
	end();
}

static void strange_limits_refused(void)
{
	static const char *const values[] = { "x", "-1", "1.5", "99999999999999999999" };

	begin("128");
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
		CHECK(bench_write_file(LIMIT, values[i]) < 0);
	CHECK_EQ(bench_read_number(LIMIT), 128);
	end();
}

static void killed_user_gives_back(void)
{
	struct worker worker;

	begin("1");
	worker = start_user(FIRST_USER, MANY);
	CHECK(pool_used() > 0);
	kill(worker.pid, SIGKILL);
	waitpid(worker.pid, NULL, 0);
	close(worker.hold);
	munmap(worker.order, 4096);
	end();
}

/* A failed pin of the driver, and one whose answer cannot be written, cost nothing. */
static void failures_cost_nothing(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	struct buffer buffer;
	uint64_t handle;
	int fd;

	begin("1");
	fd = drv_open();
	buffer = bench_alloc(SIZE);
	settings.fail_every = 1;
	settings.fail_errno = EIO;
	bench_set(&settings);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(drv_pin(fd, buffer.va, SIZE, &handle), -EIO);
	CHECK_EQ(pool_used(), 0);
	bench_start();
	for (int i = 0; i < 100; i++)
		CHECK_EQ(drv_pin(fd, buffer.va, 2 * SIZE, &handle), -EINVAL);
	CHECK_EQ(pool_used(), 0);
	close(fd);
	bench_free(&buffer);
	end();
}

static void fail_often(void *arg)
{
	struct buffer buffer;
	uint64_t handle;
	int fd;

	(void)arg;
	bench_forget_gpu();
	bench_become_user(FIRST_USER);
	buffer = bench_alloc(SIZE);
	fd = drv_open();
	while (drv_pin(fd, buffer.va, SIZE, &handle) == 0)
		;
	for (int i = 0; i < 3000; i++)
		CHECK_EQ(drv_pin(fd, buffer.va, SIZE, &handle), -ENOMEM);
}

static void log_is_limited(void)
{
	int lines;

	begin("1");
	start_log();
	CHECK_EQ(harness_fork(fail_often, NULL), 0);
	lines = count_log("gdrdrv: out of dma memory");
	CHECK(lines >= 0 && lines <= 30);
	end();
}

static const struct harness_case cases[] = {
	{ "default_size", default_size },
	{ "exhaustion_and_exact_return", exhaustion_and_exact_return },
	{ "others_are_not_starved", others_are_not_starved },
	{ "one_user_many_processes", one_user_many_processes },
	{ "root_is_exempt", root_is_exempt },
	{ "larger_at_run_time", larger_at_run_time },
	{ "smaller_than_its_use", smaller_than_its_use },
	{ "strange_limits_refused", strange_limits_refused },
	{ "killed_user_gives_back", killed_user_gives_back },
	{ "failures_cost_nothing", failures_cost_nothing },
	{ "log_is_limited", log_is_limited },
};
HARNESS_MAIN(cases)
