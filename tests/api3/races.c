/* SPDX-License-Identifier: MIT */
/* Version 3: calls of all kinds that meet in several threads. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "api/helper_thread.h"
#include "api3/helper_buffer.h"

#define SIZE (1 * MIB)
#define SLICE (16 * KIB)
#define THREADS 4

static gdr_t g;
static CUdeviceptr ptr[2];
static _Atomic uint64_t handle[2];

static uint64_t pin(int device)
{
	uint64_t made = 0;

	REQUIRE_OK(gdr_pin_buffer(g, ptr[device], SIZE, GDR_PIN_BUFFER_UNALIGNED, device, &made));
	return made;
}

static void begin(void)
{
	g = buffer_session();
	for (int device = 1; device >= 0; device--) {
		ptr[device] = buffer_alloc(device, SIZE);
		atomic_store(&handle[device], pin(device));
	}
}

static void end(void)
{
	CHECK_OK(gdr_close(g));
	CHECK_EQ(cuMemFree(ptr[0]), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree(ptr[1]), CUDA_SUCCESS);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A thread that copies in a slice of its own, in which nobody else writes. */
struct copier {
	struct team *team;
	size_t at;
	bool may_be_refused;	/* somebody unpins */
	unsigned done, refused, wrong;
	unsigned char *out, *in;	/* pages of its own */
};

static bool went(struct copier *copier, gdr_result_t result)
{
	if (result == GDR_ERR_STALE_HANDLE && copier->may_be_refused)
		copier->refused++;
	else if (result != GDR_SUCCESS)
		copier->wrong++;
	return result == GDR_SUCCESS;
}

/* To the first GPU, from there to the second, and home. */
static void go_around(struct copier *copier, unsigned round)
{
	const uint64_t first = atomic_load(&handle[0]), second = atomic_load(&handle[1]);
	const size_t size = round % 4 == 0 ? SLICE : round * 61 % SLICE + 1;

	memset(copier->out, (int)(round + copier->at / SLICE), size);
	memset(copier->in, 0, size);
	if (!went(copier, gdr_copy_from_host(g, first, copier->at, copier->out, size)) ||
	    !went(copier, gdr_copy_to_device(g, first, second, copier->at, copier->at, size)) ||
	    !went(copier, gdr_copy_to_host(g, second, copier->at, copier->in, size)))
		return;
	copier->done++;
	copier->wrong += memcmp(copier->in, copier->out, size) != 0;
}

static void *keep_going_around(void *arg)
{
	struct copier *copier = arg;

	for (unsigned round = 1; !atomic_load(&copier->team->stop); round++)
		go_around(copier, round);
	return NULL;
}

static void start_copiers(struct team *team, struct copier *copiers, bool may_be_refused)
{
	for (int i = 0; i < THREADS; i++)
		copiers[i] = (struct copier){
			.team = team,
			.at = (size_t)i * SLICE,
			.may_be_refused = may_be_refused,
			.out = aligned_alloc(4096, SLICE),
			.in = aligned_alloc(4096, SLICE),
		};
	team_start(team, THREADS, keep_going_around, copiers, sizeof(copiers[0]));
}

static void stop_copiers(struct team *team, struct copier *copiers)
{
	unsigned done = 0;

	team_join(team);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(copiers[i].wrong, 0);
		done += copiers[i].done;
		free(copiers[i].out);
		free(copiers[i].in);
	}
	CHECK(done > 0);
}

/* Copies go by handle, so a mapping that comes and goes refuses none. */
static void mappings_beside_copies(void)
{
	struct copier copiers[THREADS];
	struct team team;
	void *va;

	begin();
	start_copiers(&team, copiers, false);
	for (int i = 0; i < api_rounds(2000); i++) {
		const uint64_t of = atomic_load(&handle[i & 1]);
		gdr_info_t info = { .size = sizeof(info) };
		gdr_status_t status = { .size = sizeof(status) };

		REQUIRE_OK(gdr_map(g, of, &va, SIZE));
		((volatile unsigned char *)va)[SIZE - 1] = (unsigned char)i;
		CHECK_OK(gdr_get_info(g, of, &info));
		CHECK_OK(gdr_query(g, of, &status));
		CHECK_EQ(status.mapped, 1);
		CHECK_OK(gdr_flush(g));
		CHECK_OK(gdr_unmap(g, of, va, SIZE));
	}
	thread_nap(20000);
	stop_copiers(&team, copiers);
	end();
}

static void pins_beside_copies(void)
{
	struct copier copiers[THREADS];
	struct team team;

	begin();
	start_copiers(&team, copiers, true);
	for (int i = 0; i < api_rounds(1000); i++) {
		CHECK_OK(gdr_unpin(g, atomic_load(&handle[i & 1])));
		atomic_store(&handle[i & 1], pin(i & 1));
		thread_nap(i % 4 * 100);
	}
	thread_nap(20000);
	stop_copiers(&team, copiers);
	end();
}

/* The memory that a copy is using becomes registered, and stops to be. */
static void registrations_beside_copies(void)
{
	struct copier copiers[THREADS];
	struct team team;

	begin();
	start_copiers(&team, copiers, false);
	for (int i = 0; i < api_rounds(1000); i++) {
		struct copier *copier = &copiers[i % THREADS];
		unsigned char *pages = i & 4 ? copier->out : copier->in;

		CHECK_OK(gdr_host_register(g, pages, SLICE));
		thread_nap(i % 3 * 50);
		CHECK_OK(gdr_host_unregister(g, pages));
	}
	thread_nap(20000);
	stop_copiers(&team, copiers);
	end();
}

/* Of two that register one page, or unregister it, one wins each time. */
struct rival {
	struct team *team;
	void *pages;
	_Atomic int *balance;
	unsigned wrong;
};

static void *keep_registering(void *arg)
{
	struct rival *rival = arg;

	while (!atomic_load(&rival->team->stop)) {
		gdr_result_t result = gdr_host_register(g, rival->pages, SLICE);

		rival->wrong += result != GDR_SUCCESS && result != GDR_ERR_INVALID_ARG;
		atomic_fetch_add(rival->balance, result == GDR_SUCCESS);
		result = gdr_host_unregister(g, rival->pages);
		rival->wrong += result != GDR_SUCCESS && result != GDR_ERR_INVALID_ARG;
		atomic_fetch_sub(rival->balance, result == GDR_SUCCESS);
	}
	return NULL;
}

static void one_page_registered_by_all(void)
{
	struct rival rivals[THREADS];
	_Atomic int balance = 0;
	struct team team;
	void *pages = aligned_alloc(4096, SLICE);

	begin();
	memset(pages, 0, SLICE);
	for (int i = 0; i < THREADS; i++)
		rivals[i] = (struct rival){ &team, pages, &balance, 0 };
	team_start(&team, THREADS, keep_registering, rivals, sizeof(rivals[0]));
	thread_nap(700000);
	team_join(&team);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(rivals[i].wrong, 0);
	CHECK(balance == 0 || balance == 1);
	CHECK_EQ(gdr_host_unregister(g, pages), balance ? GDR_SUCCESS : GDR_ERR_INVALID_ARG);
	CHECK_OK(gdr_host_register(g, pages, SLICE));
	end();
	free(pages);
}

/* All threads make one call at once; exactly one of them succeeds. */
struct contest {
	pthread_barrier_t barrier;
	gdr_result_t (*call)(void);
	gdr_result_t loses;
	_Atomic int won, lost;
};

static void *compete(void *arg)
{
	struct contest *contest = arg;
	gdr_result_t result;

	pthread_barrier_wait(&contest->barrier);
	result = contest->call();
	atomic_fetch_add(&contest->won, result == GDR_SUCCESS);
	atomic_fetch_add(&contest->lost, result == contest->loses);
	return NULL;
}

static void hold_contest(gdr_result_t (*call)(void), gdr_result_t loses)
{
	struct contest contest = { .call = call, .loses = loses };
	struct team team;

	pthread_barrier_init(&contest.barrier, NULL, THREADS);
	team_start(&team, THREADS, compete, &contest, 0);
	team_join(&team);
	pthread_barrier_destroy(&contest.barrier);
	CHECK_EQ(contest.won, 1);
	CHECK_EQ(contest.lost, THREADS - 1);
}

static gdr_result_t map_it(void)
{
	void *va;

	return gdr_map(g, atomic_load(&handle[0]), &va, SIZE);
}

static gdr_result_t unpin_it(void)
{
	return gdr_unpin(g, atomic_load(&handle[0]));
}

static gdr_result_t close_it(void)
{
	return gdr_close(g);
}

static void one_of_all_wins(void)
{
	for (int i = 0; i < api_rounds(200); i++) {
		begin();
		hold_contest(map_it, GDR_ERR_BUSY);
		hold_contest(unpin_it, GDR_ERR_STALE_HANDLE);
		hold_contest(close_it, GDR_ERR_STALE_HANDLE);
		CHECK_EQ(cuMemFree(ptr[0]), CUDA_SUCCESS);
		CHECK_EQ(cuMemFree(ptr[1]), CUDA_SUCCESS);
	}
}

/* Writes its third of the memory until it is refused. */
static void *write_until_refused(void *arg)
{
	const size_t size = SIZE / 3, at = *(const unsigned char *)arg * size;
	unsigned char *data = malloc(size);
	gdr_result_t result = GDR_SUCCESS;

	memset(data, 0x77, size);
	while (result == GDR_SUCCESS) {
		result = gdr_copy_from_host(g, atomic_load(&handle[0]), at, data, size);
		if (result == GDR_SUCCESS)
			result = gdr_copy_to_device(g, atomic_load(&handle[1]),
						    atomic_load(&handle[0]), at, at, size);
	}
	free(data);
	return NULL;
}

/* After unpin or close the memory is somebody else's, who finds no byte changed. */
static void nothing_is_written_later(void)
{
	static const unsigned char thirds[] = { 0, 1, 2 };
	unsigned char *canary = malloc(SIZE), *seen = malloc(SIZE);
	double longest = 0;

	REQUIRE(canary && seen);
	memset(canary, 0xc4, SIZE);
	for (int i = 0; i < api_rounds(60); i++) {
		struct team team;
		double start;

		begin();
		team_start(&team, 3, write_until_refused, (void *)(uintptr_t)thirds, 1);
		thread_nap(i % 5 * 300);
		start = seconds();
		CHECK_OK(i & 1 ? gdr_unpin(g, atomic_load(&handle[0])) : gdr_close(g));
		longest = seconds() - start > longest ? seconds() - start : longest;
		buffer_set(ptr[0], canary, SIZE);
		thread_nap(2000);
		buffer_get(seen, ptr[0], SIZE);
		CHECK(memcmp(seen, canary, SIZE) == 0);
		team_join(&team);
		if (i & 1)
			CHECK_OK(gdr_close(g));
		CHECK_EQ(cuMemFree(ptr[0]), CUDA_SUCCESS);
		CHECK_EQ(cuMemFree(ptr[1]), CUDA_SUCCESS);
	}
	CHECK(longest < 20);
	free(canary);
	free(seen);
}

/* More threads than there are places for them. */
static void *go_around_a_few_times(void *arg)
{
	struct copier *copier = arg;

	copier->out = malloc(SLICE);
	copier->in = malloc(SLICE);
	for (unsigned round = 1; round < (unsigned)api_rounds(60); round++)
		go_around(copier, round);
	free(copier->out);
	free(copier->in);
	return NULL;
}

#define MANY 300

static void many_threads(void)
{
	static struct copier copiers[MANY];
	struct team team;

	g = buffer_session();
	for (int device = 1; device >= 0; device--) {
		uint64_t made;

		ptr[device] = buffer_alloc(device, MANY * SLICE);
		REQUIRE_OK(gdr_pin_buffer(g, ptr[device], MANY * SLICE, GDR_PIN_BUFFER_UNALIGNED,
					  device, &made));
		atomic_store(&handle[device], made);
	}
	for (int i = 0; i < MANY; i++)
		copiers[i] = (struct copier){ .team = &team, .at = (size_t)i * SLICE };
	team_start(&team, MANY, go_around_a_few_times, copiers, sizeof(copiers[0]));
	team_join(&team);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(copiers[i].wrong, 0);
		CHECK(copiers[i].done > 0);
	}
	end();
}

/* A copy in a signal handler that interrupts copies. */
static struct copier of_handler;
static volatile sig_atomic_t handled;

static void copy_in_handler(int number)
{
	(void)number;
	go_around(&of_handler, (unsigned)++handled);
}

static void copies_in_handlers(void)
{
	struct itimerval every = { { 0, 900 }, { 0, 900 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = copy_in_handler, .sa_flags = SA_RESTART };
	static unsigned char pages[4][SLICE];
	struct copier copier = { .at = 0, .out = pages[0], .in = pages[1] };
	const double start = seconds();

	begin();
	of_handler = (struct copier){ .at = SIZE / 2, .out = pages[2], .in = pages[3] };
	alarm(0);
	REQUIRE_EQ(sigaction(SIGALRM, &action, NULL), 0);
	REQUIRE_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
	for (unsigned round = 1; seconds() - start < 1.5; round++)
		go_around(&copier, round);
	REQUIRE_EQ(setitimer(ITIMER_REAL, &none, NULL), 0);
	CHECK(handled > 10);
	CHECK_EQ(copier.wrong + of_handler.wrong, 0);
	end();
}

static void live_beside_busy_parent(void *arg)
{
	char host[8];
	gdr_t own;

	(void)arg;
	CHECK_EQ(gdr_copy_to_host(g, atomic_load(&handle[0]), 0, host, 8), GDR_ERR_PERMISSION);
	own = buffer_session();
	CHECK_OK(gdr_flush(own));
	CHECK_EQ(gdr_close(g), GDR_ERR_PERMISSION);
	CHECK_OK(gdr_close(own));
}

static void forks_beside_copies(void)
{
	struct copier copiers[THREADS];
	struct team team;

	begin();
	start_copiers(&team, copiers, false);
	for (int i = 0; i < api_rounds(150); i++)
		if (!CHECK_EQ(harness_fork(live_beside_busy_parent, NULL), 0))
			break;
	stop_copiers(&team, copiers);
	end();
}

#define TWO "GDRCOPY_EMU=devices=2"
#define ROADS(name, run)                                      \
	{ name, run, TWO },                                   \
	{ name "_cpu", run, TWO " GDRCOPY_DMA=0" },           \
	{ name "_engine", run, TWO " GDRCOPY_DMA=min=0" }

static const struct api_case cases[] = {
	ROADS("mappings_beside_copies", mappings_beside_copies),
	ROADS("pins_beside_copies", pins_beside_copies),
	ROADS("registrations_beside_copies", registrations_beside_copies),
	ROADS("one_page_registered_by_all", one_page_registered_by_all),
	ROADS("one_of_all_wins", one_of_all_wins),
	ROADS("nothing_is_written_later", nothing_is_written_later),
	ROADS("many_threads", many_threads),
	ROADS("copies_in_handlers", copies_in_handlers),
	ROADS("forks_beside_copies", forks_beside_copies),
	{ "pins_beside_copies_of_dying_engines", pins_beside_copies,
	  TWO ",dma=die:40 GDRCOPY_DMA=min=0" },
	{ "nothing_is_written_later_by_slow_engines", nothing_is_written_later,
	  TWO ",dma=delay:300 GDRCOPY_DMA=min=0" },
};

API_MAIN(cases)
