/* SPDX-License-Identifier: MIT */
/*
 * Random ioctl and mmap calls of several unprivileged processes, some of which
 * die, while callbacks fire.  Afterwards nothing may be pinned.
 *
 * fuzz [CALLS [SEED]]
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define PROCESSES 3
#define BUFFERS 4
#define FILES 3
#define HANDLES 16
#define MAPS 16
#define SIZE (2ull << 20)

static const unsigned long requests[] = {
	GDRDRV_IOC_PIN_BUFFER, GDRDRV_IOC_UNPIN_BUFFER, GDRDRV_IOC_GET_CB_FLAG,
	GDRDRV_IOC_GET_INFO, GDRDRV_IOC_GET_INFO_V2, GDRDRV_IOC_GET_ATTR,
	GDRDRV_IOC_PIN_BUFFER_V2, GDRDRV_IOC_REQ_MAPPING_TYPE, GDRDRV_IOC_GET_VERSION,
};

struct state {
	unsigned seed;
	struct buffer buffers[BUFFERS];
	int files[FILES];
	uint64_t handles[HANDLES];
	struct { void *base; uint64_t size; } maps[MAPS];
};

/* Shared with the parent, which counts calls and looks for results out of bounds. */
static struct counters {
	unsigned long calls;
	unsigned long succeeded;
	unsigned long strange;
	unsigned long last_strange;
} *counters;

static unsigned long goal = 120000;

static unsigned pick(struct state *s, unsigned n)
{
	return (unsigned)rand_r(&s->seed) % n;
}

static uint64_t odd_number(struct state *s)
{
	switch (pick(s, 6)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - pick(s, 3) * GPU_PAGE;
	case 2:
		return 1ull << pick(s, 64);
	case 3:
		return pick(s, 4096);
	case 4:
		return GPU_PAGE * pick(s, 64);
	default:
		return ((uint64_t)rand_r(&s->seed) << 33) ^ (uint64_t)rand_r(&s->seed);
	}
}

static uint64_t some_address(struct state *s)
{
	uint64_t va = s->buffers[pick(s, BUFFERS)].va;

	return pick(s, 8) == 0 ? odd_number(s) : va + pick(s, 34) * GPU_PAGE * (pick(s, 4) != 0) +
						 (pick(s, 8) == 0 ? pick(s, 9000) : 0);
}

static uint64_t some_size(struct state *s)
{
	return pick(s, 6) == 0 ? odd_number(s) : GPU_PAGE * (1 + pick(s, 32));
}

static uint64_t some_handle(struct state *s)
{
	return pick(s, 10) == 0 ? odd_number(s) : s->handles[pick(s, HANDLES)];
}

/* What 2.6 can answer: anything else hints at an overflow or a leaked internal code. */
static bool known_result(int error)
{
	switch (error) {
	case 0: case EINVAL: case ENOTTY: case EFAULT: case EACCES: case ENOMEM: case EBUSY:
	case EOPNOTSUPP: case EAGAIN: case EIO: case ENODEV: case KERNEL_ENOTSUPP: case EOVERFLOW:
	case EINTR:
		return true;
	}
	return false;
}

static void count(int result)
{
	int error = result == 0 ? 0 : errno;

	__atomic_add_fetch(&counters->calls, 1, __ATOMIC_RELAXED);
	if (error == 0)
		__atomic_add_fetch(&counters->succeeded, 1, __ATOMIC_RELAXED);
	if (!known_result(error)) {
		__atomic_add_fetch(&counters->strange, 1, __ATOMIC_RELAXED);
		counters->last_strange = (unsigned long)error;
	}
}

/* Struct members by what they mean, so that most calls get beyond the first check. */
static void fill(struct state *s, unsigned long request, uint64_t *args)
{
	for (int i = 0; i < 8; i++)
		args[i] = pick(s, 4) == 0 ? odd_number(s) : 0;
	switch (request) {
	case GDRDRV_IOC_PIN_BUFFER:
	case GDRDRV_IOC_PIN_BUFFER_V2:
		args[0] = some_address(s);
		args[1] = some_size(s);
		args[2] = pick(s, 12) == 0 ? odd_number(s) : 0;
		args[3] = 0;
		break;
	case GDRDRV_IOC_GET_ATTR:
		args[0] = pick(s, 5);
		break;
	case GDRDRV_IOC_REQ_MAPPING_TYPE:
		args[0] = some_handle(s);
		args[1] = pick(s, 6);
		break;
	default:
		args[0] = some_handle(s);
	}
}

static void random_ioctl(struct state *s)
{
	unsigned long request = requests[pick(s, sizeof(requests) / sizeof(*requests))];
	uint64_t args[8];
	void *pointer = args;
	int result;

	fill(s, request, args);
	if (pick(s, 60) == 0)
		request ^= 1ul << pick(s, 32);
	if (pick(s, 60) == 0)
		pointer = (void *)(uintptr_t)odd_number(s);
	result = ioctl(s->files[pick(s, FILES)], request, pointer);
	count(result);
	if (result != 0)
		return;
	if (request == GDRDRV_IOC_PIN_BUFFER)
		s->handles[pick(s, HANDLES)] = args[4];
	else if (request == GDRDRV_IOC_PIN_BUFFER_V2)
		s->handles[pick(s, HANDLES)] = args[3];
}

static void drop_map(struct state *s, unsigned i)
{
	uint64_t part = s->maps[i].size;

	if (!s->maps[i].base)
		return;
	if (pick(s, 8) == 0 && part > 4096)
		munmap((char *)s->maps[i].base + part / 8192 * 4096, 4096);
	munmap(s->maps[i].base, part);
	s->maps[i].base = NULL;
}

static void random_map(struct state *s)
{
	uint64_t size = pick(s, 10) == 0 ? odd_number(s) % (1ull << 40) : some_size(s) % (4ull << 20);
	int protection = pick(s, 8) == 0 ? PROT_READ : PROT_READ | PROT_WRITE;
	unsigned i = pick(s, MAPS);
	void *base;

	drop_map(s, i);
	base = mmap(NULL, size, protection, pick(s, 20) == 0 ? MAP_PRIVATE : MAP_SHARED,
		    s->files[pick(s, FILES)], (off_t)(some_handle(s) << 12));
	count(base == MAP_FAILED ? -1 : 0);
	if (base == MAP_FAILED)
		return;
	s->maps[i].base = base;
	s->maps[i].size = size;
	if (size >= 4)
		bench_touch(base, NULL);
}

static void random_step(struct state *s)
{
	unsigned i;

	switch (pick(s, 64)) {
	case 0:
		i = pick(s, FILES);
		close(s->files[i]);
		s->files[i] = drv_open();
		break;
	case 1:
		i = pick(s, BUFFERS);
		bench_free(&s->buffers[i]);
		s->buffers[i] = bench_alloc(SIZE);
		break;
	case 2:
		bench_revoke(&s->buffers[pick(s, BUFFERS)]);
		break;
	case 3:
		if (pick(s, 16) == 0 && fork() == 0) {
			/* Uses what it must not, and dies in the middle of it. */
			for (i = 0; i < 20; i++)
				pick(s, 2) ? random_ioctl(s) : random_map(s);
			_exit(0);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		break;
	case 4: case 5: case 6: case 7: case 8: case 9: case 10: case 11:
		drop_map(s, pick(s, MAPS));
		break;
	case 12: case 13: case 14: case 15: case 16: case 17: case 18: case 19:
		random_map(s);
		break;
	default:
		random_ioctl(s);
	}
}

static void work(unsigned seed)
{
	struct state s = { .seed = seed };

	bench_forget_gpu();
	bench_become_user(1000 + seed % 2);
	for (int i = 0; i < BUFFERS; i++)
		s.buffers[i] = bench_alloc(SIZE);
	for (int i = 0; i < FILES; i++)
		s.files[i] = drv_open();
	for (;;)
		random_step(&s);
}

static pid_t start_worker(unsigned seed)
{
	pid_t child = fork();

	if (child == 0)
		work(seed);
	return child;
}

/* A worker that ended by itself has met what it did not expect. */
static void end_worker(pid_t worker)
{
	int status = 0;

	kill(worker, SIGKILL);
	waitpid(worker, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void fuzz(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	time_t deadline = time(NULL) + 240;
	unsigned seed = 1;
	pid_t workers[PROCESSES];
	int victim = 0;

	bench_start();
	counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(counters != MAP_FAILED);
	for (int i = 0; i < PROCESSES; i++)
		workers[i] = start_worker(seed++);
	while (__atomic_load_n(&counters->calls, __ATOMIC_RELAXED) < goal &&
	       time(NULL) < deadline) {
		settings.scattered ^= 1;
		settings.fail_every = seed % 3 == 0 ? 7 : 0;
		settings.fail_errno = ENOMEM;
		settings.revoke_in_get = seed % 4 == 0;
		settings.callback_delay_ms = seed % 5 == 0;
		bench_set(&settings);
		usleep(150000);
		bench_revoke(NULL);
		end_worker(workers[victim]);
		workers[victim] = start_worker(seed++);
		victim = (victim + 1) % PROCESSES;
	}
	for (int i = 0; i < PROCESSES; i++)
		end_worker(workers[i]);
	/* Grandchildren end by themselves. */
	for (int i = 0; i < 100 && bench_stats().pins > 0; i++)
		usleep(100000);
	fprintf(stderr, "%lu calls, %lu succeeded, %u processes, last strange errno %lu\n",
		counters->calls, counters->succeeded, seed - 1, counters->last_strange);
	CHECK(counters->calls >= goal);
	CHECK(counters->succeeded > goal / 20);
	CHECK_EQ(counters->strange, 0);
	CHECK_EQ(bench_stats().used_pages, 0);
	bench_end();
}

static const struct harness_case cases[] = { { "random_calls", fuzz } };

int main(int argc, char **argv)
{
	if (argc > 1)
		goal = strtoul(argv[1], NULL, 10);
	return harness_run(cases, 1, 1, argv);
}
