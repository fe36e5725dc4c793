/* SPDX-License-Identifier: MIT */
/* Threads: any call from any of them, copies side by side, and ends that race with copies. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "random.h"
#include "tests.h"

static void in_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	REQUIRE_EQ(pthread_create(&thread, NULL, body, arg), 0);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
}

static void *relay_open(void *arg)
{
	((struct mapped *)arg)->g = open_session();
	return NULL;
}

static void *relay_pin(void *arg)
{
	struct mapped *m = arg;

	m->mh = buffer_pin(m->g, &m->buffer);
	return NULL;
}

static void *relay_map(void *arg)
{
	struct mapped *m = arg;
	void *va = NULL;

	REQUIRE_OK(gdr_map(m->g, m->mh, &va, m->buffer.size));
	m->va = va;
	return NULL;
}

static void *relay_copy(void *arg)
{
	const struct mapped *m = arg;
	uint32_t sent = 0xc0ffee, seen = 0;

	REQUIRE_OK(gdr_copy_to_mapping(m->mh, m->va, &sent, sizeof(sent)));
	REQUIRE_OK(gdr_copy_from_mapping(m->mh, &seen, m->va, sizeof(seen)));
	REQUIRE_EQ(seen, sent);
	return NULL;
}

static void *relay_unmap(void *arg)
{
	mapped_unmap(arg);
	return NULL;
}

static void *relay_unpin(void *arg)
{
	const struct mapped *m = arg;

	REQUIRE_OK(gdr_unpin_buffer(m->g, m->mh));
	return NULL;
}

/* Every step in a thread that ends before the next one begins. */
static void run_relay(struct mapped *m)
{
	in_thread(relay_pin, m);
	in_thread(relay_map, m);
	in_thread(relay_copy, m);
	REQUIRE_EQ(gpu_word(m->buffer.addr), 0xc0ffee);
	in_thread(relay_unmap, m);
	in_thread(relay_unpin, m);
}

void test_plus_thread_relay(enum memory memory)
{
	struct mapped m;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &m.buffer);
	m.g = open_session();
	run_relay(&m);
	REQUIRE_OK(gdr_close(m.g));
	in_thread(relay_open, &m);
	run_relay(&m);
	REQUIRE_OK(gdr_close(m.g));
	buffer_free(&m.buffer);
}

#define SLICES 8
#define SLICE_SIZE ((size_t)64 << 10)
#define SLICE_ROUNDS 400

struct slice {
	const struct mapped *m;
	size_t start;
	uint64_t state;
	unsigned char shadow[SLICE_SIZE];
	unsigned char host[SLICE_SIZE];
};

static void *copy_in_slice(void *arg)
{
	struct slice *s = arg;
	unsigned char *device = (unsigned char *)s->m->va + s->start;

	for (int round = 0; round < SLICE_ROUNDS; round++) {
		size_t size = random_copy_size(&s->state, SLICE_SIZE);
		size_t offset = random_below(&s->state, SLICE_SIZE - size + 1);

		if (random_below(&s->state, 2)) {
			random_fill(&s->state, s->shadow + offset, size);
			REQUIRE_OK(gdr_copy_to_mapping(s->m->mh, device + offset,
						       s->shadow + offset, size));
			continue;
		}
		REQUIRE_OK(gdr_copy_from_mapping(s->m->mh, s->host, device + offset, size));
		if (memcmp(s->host, s->shadow + offset, size) != 0)
			FAIL("slice at %zu: %zu bytes at offset %zu were read wrong", s->start,
			     size, offset);
	}
	return NULL;
}

static void check_slice(struct slice *s)
{
	gpu_read(s->host, s->m->buffer.addr + s->start, SLICE_SIZE);
	if (memcmp(s->host, s->shadow, SLICE_SIZE) != 0)
		FAIL("slice at %zu: the GPU holds other bytes than were written", s->start);
}

/* Eight threads copy without a lock, through two handles of one buffer. */
void test_plus_thread_slices(enum memory memory)
{
	struct slice *slices = calloc(SLICES, sizeof(*slices));
	pthread_t threads[SLICES];
	struct mapped m[2];

	REQUIRE(slices);
	gpu_start();
	mapped_open(open_session(), memory, SLICES * SLICE_SIZE, &m[0]);
	gpu_fill(m[0].buffer.addr, 0, m[0].buffer.size);
	m[1] = m[0];
	relay_pin(&m[1]);
	relay_map(&m[1]);
	for (size_t i = 0; i < SLICES; i++) {
		slices[i].m = &m[i % 2];
		slices[i].start = i * SLICE_SIZE;
		slices[i].state = 0x9e3779b97f4a7c15 + i;
		REQUIRE_EQ(pthread_create(&threads[i], NULL, copy_in_slice, &slices[i]), 0);
	}
	for (size_t i = 0; i < SLICES; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < SLICES; i++)
		check_slice(&slices[i]);
	relay_unmap(&m[1]);
	relay_unpin(&m[1]);
	mapped_close(&m[0]);
	REQUIRE_OK(gdr_close(m[0].g));
	free(slices);
}

#define RACERS 3
#define RACER_SIZE ((size_t)16 << 10)
#define RACE_ROUNDS 100

/* What the copying threads aim at; they may see an old target for a while. */
struct race {
	_Atomic(unsigned long) handle;
	_Atomic(uintptr_t) va;
	atomic_bool stop;
	atomic_ulong copied;
};

/* One copying thread, whose range is its own. */
struct racer {
	struct race *race;
	size_t offset;
	unsigned char host[RACER_SIZE];
};

static void *copy_into_race(void *arg)
{
	static const size_t sizes[] = { 4, 64, 4096, RACER_SIZE };
	struct racer *racer = arg;
	struct race *race = racer->race;

	for (unsigned i = 0; !atomic_load(&race->stop); i++) {
		gdr_mh_t mh = { .h = atomic_load(&race->handle) };
		void *va = (void *)(atomic_load(&race->va) + racer->offset);
		size_t size = sizes[i % 4];
		int error;

		if (i & 4)
			error = gdr_copy_to_mapping(mh, va, racer->host, size);
		else
			error = gdr_copy_from_mapping(mh, racer->host, va, size);
		if (error != 0 && error != EINVAL)
			FAIL("a copy beside unmap returned %d, expected 0 or EINVAL", error);
		atomic_fetch_add(&race->copied, error == 0);
	}
	return NULL;
}

/* Waits until some copies got through, so that the end meets running ones. */
static void let_copies_run(struct race *race)
{
	unsigned long before = atomic_load(&race->copied);

	while (atomic_load(&race->copied) < before + RACERS)
		sched_yield();
}

enum race_end {
	RACE_UNMAP,
	RACE_UNPIN,
	RACE_CLOSE,
	RACE_ENDS
};

static void race_once(struct race *race, const struct buffer *buffer, enum race_end end)
{
	gdr_t g = open_session();
	gdr_mh_t mh = buffer_pin(g, buffer);
	void *va = NULL;

	REQUIRE_OK(gdr_map(g, mh, &va, buffer->size));
	atomic_store(&race->va, (uintptr_t)va);
	atomic_store(&race->handle, mh.h);
	let_copies_run(race);
	if (end == RACE_UNMAP)
		REQUIRE_OK(gdr_unmap(g, mh, va, buffer->size));
	if (end == RACE_UNPIN)
		REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
}

struct contest {
	struct mapped *m;
	pthread_barrier_t barrier;
	atomic_int unmapped;
	atomic_int unpinned;
};

static void *contend(void *arg)
{
	struct contest *c = arg;
	int error;

	pthread_barrier_wait(&c->barrier);
	error = gdr_unmap(c->m->g, c->m->mh, c->m->va, c->m->buffer.size);
	REQUIRE(error == 0 || error == EINVAL);
	atomic_fetch_add(&c->unmapped, error == 0);
	pthread_barrier_wait(&c->barrier);
	error = gdr_unpin_buffer(c->m->g, c->m->mh);
	REQUIRE(error == 0 || error == EINVAL);
	atomic_fetch_add(&c->unpinned, error == 0);
	return NULL;
}

/* Of two threads that unmap, or unpin, the same handle one succeeds. */
static void contend_once(struct mapped *m)
{
	struct contest contest = { .m = m };
	pthread_t threads[2];

	relay_pin(m);
	relay_map(m);
	pthread_barrier_init(&contest.barrier, NULL, 2);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, contend, &contest), 0);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&contest.barrier);
	REQUIRE_EQ(atomic_load(&contest.unmapped), 1);
	REQUIRE_EQ(atomic_load(&contest.unpinned), 1);
}

void test_plus_thread_unmap_race(enum memory memory)
{
	static struct racer racers[RACERS];
	static struct race race;
	pthread_t threads[RACERS];
	struct mapped m;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &m.buffer);
	for (size_t i = 0; i < RACERS; i++) {
		racers[i].race = &race;
		racers[i].offset = i * RACER_SIZE;
		REQUIRE_EQ(pthread_create(&threads[i], NULL, copy_into_race, &racers[i]), 0);
	}
	for (int round = 0; round < RACE_ROUNDS; round++)
		race_once(&race, &m.buffer, (enum race_end)(round % RACE_ENDS));
	atomic_store(&race.stop, true);
	for (int i = 0; i < RACERS; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);

	m.g = open_session();
	for (int round = 0; round < RACE_ROUNDS; round++)
		contend_once(&m);
	REQUIRE_OK(gdr_close(m.g));
	buffer_free(&m.buffer);
}
