/* SPDX-License-Identifier: MIT */
/*
 * Copies that meet unmap, unpin and close of the handle that they use: each
 * answers 0 or EINVAL, what it says it wrote is there, and nobody crashes.
 * Teardown waits for copies that run and never for those that are refused.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLICE 4096

/* What the tearing thread replaces; copiers take whatever mix of old and new they see. */
struct target {
	_Atomic(unsigned long) handle;
	_Atomic(unsigned char *) va;
};

struct copier {
	struct team *team;
	struct target *target;
	size_t slice;		/* offset of this thread's part */
	size_t size;
	long pause_us;		/* between copies, so that hundreds get their turn */
	int done, refused, wrong;
};

/* A read that follows a successful write of the same part must see it. */
static void copy_once(struct copier *copier, unsigned round)
{
	const gdr_mh_t handle = { atomic_load_explicit(&copier->target->handle,
						       memory_order_relaxed) };
	unsigned char *va = atomic_load_explicit(&copier->target->va, memory_order_relaxed);
	unsigned char out[SLICE], in[SLICE];
	int write_rc, read_rc;

	memset(out, (int)(round + copier->slice), copier->size);
	write_rc = gdr_copy_to_mapping(handle, va + copier->slice, out, copier->size);
	read_rc = gdr_copy_from_mapping(handle, in, va + copier->slice, copier->size);
	if ((write_rc != 0 && write_rc != EINVAL) || (read_rc != 0 && read_rc != EINVAL))
		copier->wrong++;
	if (write_rc == 0 && read_rc == 0) {
		copier->done++;
		copier->wrong += memcmp(in, out, copier->size) != 0;
	} else {
		copier->refused++;
	}
}

static void *keep_copying(void *arg)
{
	struct copier *copier = arg;

	for (unsigned round = 1; !atomic_load(&copier->team->stop); round++) {
		copy_once(copier, round);
		if (copier->pause_us)
			thread_nap(copier->pause_us);
	}
	return NULL;
}

/* Replaces the mapping, round after round, while threads copy. */
static void race(int threads, int rounds, void (*replace)(struct gpu_mapping *mapping))
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), TEAM_MAX * SLICE);
	struct copier *copier = calloc((size_t)threads, sizeof(*copier));
	struct target target;
	struct team team;
	int done = 0, wrong = 0;

	atomic_store(&target.handle, mapping.handle.h);
	atomic_store(&target.va, mapping.va);
	for (int i = 0; i < threads; i++)
		copier[i] = (struct copier){ &team, &target, (size_t)i * SLICE,
					     i % 3 ? (size_t)SLICE : 8,
					     threads > 16 ? 2000 : 0, 0, 0, 0 };
	team_start(&team, threads, keep_copying, copier, sizeof(copier[0]));
	for (int i = 0; i < rounds; i++) {
		replace(&mapping);
		atomic_store(&target.handle, mapping.handle.h);
		atomic_store(&target.va, mapping.va);
		thread_nap(i % 4 * 50);
	}
	thread_nap(20000);
	team_join(&team);
	for (int i = 0; i < threads; i++) {
		done += copier[i].done;
		wrong += copier[i].wrong;
	}
	CHECK(done > 0);
	CHECK_EQ(wrong, 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
	free(copier);
}

static void unmap_and_map(struct gpu_mapping *mapping)
{
	CHECK_EQ(gdr_unmap(mapping->g, mapping->handle, mapping->va, mapping->buffer.size), 0);
	mapping->va = gpu_map(mapping->g, mapping->handle, mapping->buffer.size);
}

static void unpin_and_pin(struct gpu_mapping *mapping)
{
	CHECK_EQ(gdr_unpin_buffer(mapping->g, mapping->handle), 0);
	mapping->handle = gpu_pin(mapping->g, mapping->buffer.ptr, mapping->buffer.size);
	mapping->va = gpu_map(mapping->g, mapping->handle, mapping->buffer.size);
}

static void close_and_open(struct gpu_mapping *mapping)
{
	CHECK_EQ(gdr_close(mapping->g), 0);
	mapping->g = gpu_open();
	mapping->handle = gpu_pin(mapping->g, mapping->buffer.ptr, mapping->buffer.size);
	mapping->va = gpu_map(mapping->g, mapping->handle, mapping->buffer.size);
}

static void copies_against_unmap(void)
{
	race(4, api_rounds(10000), unmap_and_map);
}

static void copies_against_unpin(void)
{
	race(4, api_rounds(10000), unpin_and_pin);
}

static void copies_against_close(void)
{
	race(4, api_rounds(5000), close_and_open);
}

/* More copying threads than the library has places for. */
static void copies_of_300_threads(void)
{
	race(300, api_rounds(400), unpin_and_pin);
}

/* Threads come and go, and their thread pointers with them. */
struct brief {
	struct target *target;
	int wrong;
};

static void *copy_and_leave(void *arg)
{
	struct brief *brief = arg;
	struct copier copier = { .target = brief->target, .size = 64 };

	for (unsigned i = 0; i < 10; i++)
		copy_once(&copier, i);
	brief->wrong += copier.wrong;
	return NULL;
}

static void copies_of_brief_threads(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct target target;
	struct brief brief = { &target, 0 };

	for (int i = 0; i < api_rounds(4000); i++) {
		atomic_store(&target.handle, mapping.handle.h);
		atomic_store(&target.va, mapping.va);
		thread_run(copy_and_leave, &brief);
		if (i % 100 == 0)
			unmap_and_map(&mapping);
	}
	CHECK_EQ(brief.wrong, 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* A long copy that is certainly running when the teardown comes. */
struct long_copy {
	struct gpu_mapping *mapping;
	unsigned char *host;
	_Atomic bool started, ended;
	int rc;
};

static void *copy_long(void *arg)
{
	struct long_copy *copy = arg;
	const struct gpu_mapping *mapping = copy->mapping;

	atomic_store(&copy->started, true);
	copy->rc = gdr_copy_to_mapping(mapping->handle, mapping->va, copy->host,
				       mapping->buffer.size);
	atomic_store(&copy->ended, true);
	return NULL;
}

static int tear_by_unmap(struct gpu_mapping *mapping)
{
	return gdr_unmap(mapping->g, mapping->handle, mapping->va, mapping->buffer.size);
}

static int tear_by_unpin(struct gpu_mapping *mapping)
{
	return gdr_unpin_buffer(mapping->g, mapping->handle);
}

static int tear_by_close(struct gpu_mapping *mapping)
{
	return gdr_close(mapping->g);
}

/* 0: the teardown came too early or too late to prove anything. */
static int wait_once(int (*tear)(struct gpu_mapping *mapping), size_t size)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), size);
	struct long_copy copy = { .mapping = &mapping, .host = malloc(size) };
	unsigned char *back = malloc(size);
	bool was_running;
	pthread_t thread;

	REQUIRE(copy.host && back);
	memset(copy.host, 0x5c, size);
	memset(back, 0, size);
	REQUIRE_EQ(pthread_create(&thread, NULL, copy_long, &copy), 0);
	while (!atomic_load(&copy.started))
		thread_nap(10);
	thread_nap(2000);
	was_running = !atomic_load(&copy.ended);
	CHECK_EQ(tear(&mapping), 0);
	pthread_join(thread, NULL);
	CHECK(copy.rc == 0 || copy.rc == EINVAL);
	if (copy.rc == 0) {
		gpu_read(back, mapping.buffer.ptr, size);
		CHECK(memcmp(back, copy.host, size) == 0);
	}
	if (tear != tear_by_close)
		CHECK_EQ(gdr_close(mapping.g), 0);
	gpu_free(mapping.buffer);
	free(copy.host);
	free(back);
	return copy.rc == 0 && was_running;
}

static void wait_for_running(int (*tear)(struct gpu_mapping *mapping))
{
	int proven = 0;

	for (int i = 0; i < 20 && !proven; i++)
		proven = wait_once(tear, 64 * MIB);
	CHECK(proven);
}

static void unmap_waits(void)
{
	wait_for_running(tear_by_unmap);
}

static void unpin_waits(void)
{
	wait_for_running(tear_by_unpin);
}

static void close_waits(void)
{
	wait_for_running(tear_by_close);
}

/* Copies on one handle do not hold up the teardown of another. */
static void teardown_of_others_is_not_delayed(void)
{
	struct gpu_mapping busy = gpu_map_new(gpu_open(), TEAM_MAX * SLICE);
	struct target target = { busy.handle.h, busy.va };
	struct copier copier[3];
	struct timespec start, end;
	struct team team;
	double worst = 0;

	for (int i = 0; i < 3; i++)
		copier[i] = (struct copier){ &team, &target, (size_t)i * SLICE, SLICE, 0, 0, 0, 0 };
	team_start(&team, 3, keep_copying, copier, sizeof(copier[0]));
	for (int i = 0; i < api_rounds(500); i++) {
		struct gpu_mapping other = gpu_map_new(busy.g, GPU_PAGE_SIZE);
		double seconds;

		clock_gettime(CLOCK_MONOTONIC, &start);
		CHECK_EQ(gdr_unmap(other.g, other.handle, other.va, GPU_PAGE_SIZE), 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		seconds = (double)(end.tv_sec - start.tv_sec) +
			  (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
		worst = seconds > worst ? seconds : worst;
		CHECK_EQ(gdr_unpin_buffer(other.g, other.handle), 0);
		gpu_free(other.buffer);
	}
	team_join(&team);
	CHECK(worst < 5.0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(copier[i].wrong + copier[i].refused, 0);
	gpu_unmap(busy);
	CHECK_EQ(gdr_close(busy.g), 0);
}

/* Eight threads, one mapping, parts of their own: no lock of the caller needed. */
static void *copy_part(void *arg)
{
	struct copier *copier = arg;

	for (unsigned round = 1; round <= (unsigned)api_rounds(20000); round++)
		copy_once(copier, round);
	return NULL;
}

static void disjoint_parts_of_one_mapping(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct target target = { mapping.handle.h, mapping.va };
	struct copier copier[8];
	struct team team;

	/* Neighbouring parts of odd size share cache lines. */
	for (int i = 0; i < 8; i++)
		copier[i] = (struct copier){ &team, &target, (size_t)i * 331 + 1, 331, 0, 0, 0, 0 };
	team_start(&team, 8, copy_part, copier, sizeof(copier[0]));
	team_join(&team);
	for (int i = 0; i < 8; i++) {
		CHECK_EQ(copier[i].wrong, 0);
		CHECK_EQ(copier[i].refused, 0);
	}
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static const struct api_case cases[] = {
	{ "copies_against_unmap", copies_against_unmap, NULL },
	{ "copies_against_unpin", copies_against_unpin, NULL },
	{ "copies_against_close", copies_against_close, "GDRCOPY_DMA=0" },
	{ "copies_of_300_threads", copies_of_300_threads, NULL },
	{ "copies_of_brief_threads", copies_of_brief_threads, NULL },
	{ "unmap_waits", unmap_waits, NULL },
	{ "unpin_waits", unpin_waits, NULL },
	{ "close_waits", close_waits, NULL },
	{ "teardown_of_others_is_not_delayed", teardown_of_others_is_not_delayed, NULL },
	{ "disjoint_parts_of_one_mapping", disjoint_parts_of_one_mapping, NULL },
};

API_MAIN(cases)
