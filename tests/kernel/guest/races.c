/* SPDX-License-Identifier: MIT */
/* Callbacks, unpins, maps, closes and kills that meet each other. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (2ull << 20)
#define SECONDS 4

static int fd;
static struct buffer buffer;
static bool stop;

static void begin(void)
{
	bench_start();
	fd = drv_open();
	buffer = bench_alloc(SIZE);
	__atomic_store_n(&stop, false, __ATOMIC_SEQ_CST);
}

static void end(void)
{
	close(fd);
	CHECK_NO_PINS();
	bench_free(&buffer);
	bench_end();
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void run_threads(void *(**bodies)(void *), int count)
{
	pthread_t threads[8];

	for (int i = 0; i < count; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, bodies[i], (void *)(intptr_t)i), 0);
	sleep(SECONDS);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void *revoke_all_the_time(void *arg)
{
	(void)arg;
	while (!stopped())
		bench_revoke(&buffer);
	return NULL;
}

static void *pin_and_unpin(void *arg)
{
	uint64_t handle;

	(void)arg;
	while (!stopped())
		if (drv_pin(fd, buffer.va, SIZE, &handle) == 0)
			CHECK_EQ(drv_unpin(fd, handle), 0);
	return NULL;
}

/* A map of a pin that the driver takes back reads the GPU or raises SIGBUS, nothing else. */
static void *pin_map_touch(void *arg)
{
	uint64_t handle;
	void *map;
	int result;

	(void)arg;
	while (!stopped()) {
		if (drv_pin(fd, buffer.va, SIZE, &handle) != 0)
			continue;
		result = drv_map(fd, handle, SIZE, &map);
		CHECK(result == 0 || result == -EINVAL || result == -EAGAIN);
		if (result == 0)
			munmap(map, SIZE);
		CHECK_EQ(drv_unpin(fd, handle), 0);
	}
	return NULL;
}

/* The signal handler is the process's, so only one thread touches. */
static void *map_touch_unpin(void *arg)
{
	uint64_t handle;
	int number;
	void *map;

	(void)arg;
	while (!stopped()) {
		if (drv_pin(fd, buffer.va, SIZE, &handle) != 0)
			continue;
		if (drv_map(fd, handle, SIZE, &map) != 0) {
			drv_unpin(fd, handle);
			continue;
		}
		number = bench_touch(map, NULL);
		CHECK(number == 0 || number == SIGBUS);
		CHECK_EQ(drv_unpin(fd, handle), 0);
		CHECK(bench_touch(map, NULL) == SIGBUS);
		munmap(map, SIZE);
	}
	return NULL;
}

static void callback_against_unpin_and_map(void)
{
	void *(*bodies[])(void *) = {
		revoke_all_the_time, pin_and_unpin, pin_map_touch, map_touch_unpin
	};

	begin();
	run_threads(bodies, 4);
	end();
}

/* Slow callbacks and puts, so that the windows are wide. */
static void slow_driver(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	void *(*bodies[])(void *) = {
		revoke_all_the_time, pin_and_unpin, pin_map_touch, map_touch_unpin
	};

	begin();
	settings.callback_delay_ms = 3;
	settings.put_delay_ms = 2;
	settings.get_delay_ms = 1;
	bench_set(&settings);
	run_threads(bodies, 4);
	end();
}

/* Every third pin call of the driver fails on the way. */
static void failing_driver(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	void *(*bodies[])(void *) = { pin_and_unpin, pin_map_touch, pin_and_unpin };

	begin();
	settings.fail_every = 3;
	settings.fail_errno = ENOMEM;
	bench_set(&settings);
	run_threads(bodies, 3);
	end();
}

/* Two threads unpin the same handles: each handle is unpinned exactly once. */
static uint64_t shared_handle;
static unsigned unpinned;
static pthread_barrier_t barrier;

static void *unpin_shared(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000; i++) {
		pthread_barrier_wait(&barrier);
		if (drv_unpin(fd, shared_handle) == 0)
			__atomic_add_fetch(&unpinned, 1, __ATOMIC_SEQ_CST);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void same_handle_twice(void)
{
	pthread_t threads[2];

	begin();
	pthread_barrier_init(&barrier, NULL, 3);
	unpinned = 0;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, unpin_shared, NULL);
	for (int i = 0; i < 2000; i++) {
		CHECK_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &shared_handle), 0);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(unpinned, 2000);
	pthread_barrier_destroy(&barrier);
	end();
}

/* unpin of a handle while another thread maps it. */
static void *map_shared(void *arg)
{
	void *map;

	(void)arg;
	while (!stopped())
		if (drv_map(fd, __atomic_load_n(&shared_handle, __ATOMIC_RELAXED), SIZE, &map) == 0)
			munmap(map, SIZE);
	return NULL;
}

static void *unpin_under_map(void *arg)
{
	uint64_t handle;

	(void)arg;
	while (!stopped()) {
		CHECK_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
		__atomic_store_n(&shared_handle, handle, __ATOMIC_RELAXED);
		CHECK_EQ(drv_unpin(fd, handle), 0);
	}
	return NULL;
}

static void map_against_unpin(void)
{
	void *(*bodies[])(void *) = { map_shared, unpin_under_map, map_shared };

	begin();
	run_threads(bodies, 3);
	end();
}

/* Pins, maps, forks and frees at random until it is killed. */
static void live_dangerously(unsigned seed)
{
	struct buffer own[4];
	uint64_t handle;
	void *map;
	int mine;

	bench_forget_gpu();
	mine = drv_open();
	for (int i = 0; i < 4; i++)
		own[i] = bench_alloc(SIZE);
	for (;;) {
		struct buffer *chosen = &own[rand_r(&seed) % 4];

		if (drv_pin(mine, chosen->va, SIZE, &handle) != 0)
			continue;
		if (rand_r(&seed) % 2 && drv_map(mine, handle, SIZE, &map) == 0 &&
		    rand_r(&seed) % 2)
			munmap(map, SIZE);
		switch (rand_r(&seed) % 4) {
		case 0:
			close(mine);
			mine = drv_open();
			break;
		case 1:
			bench_free(chosen);
			*chosen = bench_alloc(SIZE);
			break;
		default:
			drv_unpin(mine, handle);
		}
	}
}

static void killed_in_the_middle(void)
{
	unsigned seed = 20;
	time_t until;
	pid_t child;

	begin();
	until = time(NULL) + 2 * SECONDS;
	while (time(NULL) < until) {
		child = fork();
		if (child == 0) {
			close(fd);
			live_dangerously((unsigned)rand_r(&seed));
		}
		usleep(1000 + (unsigned)rand_r(&seed) % 30000);
		bench_revoke(NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		rand_r(&seed);
	}
	CHECK_EQ(bench_stats().used_pages, SIZE / GPU_PAGE);
	end();
}

static const struct harness_case cases[] = {
	{ "callback_against_unpin_and_map", callback_against_unpin_and_map },
	{ "slow_driver", slow_driver },
	{ "failing_driver", failing_driver },
	{ "same_handle_twice", same_handle_twice },
	{ "map_against_unpin", map_against_unpin },
	{ "killed_in_the_middle", killed_in_the_middle },
};
HARNESS_MAIN(cases)
