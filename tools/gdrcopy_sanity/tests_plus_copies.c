/* SPDX-License-Identifier: MIT */
/* Copies: in range or refused, byte-exact at any size and offset, whole when aligned. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"
#include "random.h"
#include "tests.h"

#define PAGE ((size_t)GPU_PAGE_SIZE)

/* Both directions refuse the range, and neither touches host memory. */
static void refuse_copy(gdr_mh_t mh, void *device, size_t size, const char *what)
{
	static unsigned char host[64];
	int to, from;

	memset(host, 0x3c, sizeof(host));
	to = gdr_copy_to_mapping(mh, device, host, size);
	from = gdr_copy_from_mapping(mh, host, device, size);
	if (to != EINVAL || from != EINVAL)
		FAIL("copy %s: returned %d and %d, expected EINVAL", what, to, from);
	for (size_t i = 0; i < sizeof(host); i++)
		REQUIRE_EQ(host[i], 0x3c);
}

static void refuse_outside(const struct mapped *m, size_t length)
{
	unsigned char *va = (unsigned char *)m->va;

	refuse_copy(m->mh, va - 1, 1, "of the byte before the mapping");
	refuse_copy(m->mh, va - 8, 16, "across the start");
	refuse_copy(m->mh, va + length, 1, "of the byte after the mapping");
	refuse_copy(m->mh, va + length - 4, 8, "across the end");
	refuse_copy(m->mh, va + length + 4096, 8, "behind the mapping");
	refuse_copy(m->mh, va, length + 1, "of one byte too many");
	refuse_copy(m->mh, va, SIZE_MAX, "of the longest size");
	refuse_copy(m->mh, va + 8, SIZE_MAX - 7, "that wraps to the start");
	refuse_copy(m->mh, va + 8, SIZE_MAX - (uintptr_t)va - 7, "that ends at 2^64");
	refuse_copy(m->mh, NULL, 8, "at NULL");
	refuse_copy(m->mh, (void *)UINTPTR_MAX, 8, "at the last byte of all");
}

/* The map of half a buffer: the other half is out of range too. */
void test_plus_copy_range(enum memory memory)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mapped m, other;
	unsigned char byte = 0x42;
	uint64_t host = 0;
	void *va = NULL;

	gpu_start();
	mapped_open(open_session(), memory, PAGE, &other);
	m.g = other.g;
	buffer_alloc(memory, 2 * PAGE, &m.buffer);
	gpu_fill(m.buffer.addr, 0, 2 * PAGE);
	m.mh = buffer_pin(m.g, &m.buffer);
	REQUIRE_OK(gdr_map(m.g, m.mh, &va, PAGE - page + 1));
	m.va = va;

	refuse_outside(&m, PAGE);
	refuse_copy(m.mh, other.va, 8, "in the mapping of another handle");
	/* Swapped arguments: host memory where the mapping belongs. */
	REQUIRE_ERROR(gdr_copy_to_mapping(m.mh, &host, m.va, sizeof(host)), EINVAL);
	REQUIRE_ERROR(gdr_copy_from_mapping(m.mh, m.va, &host, sizeof(host)), EINVAL);
	REQUIRE_EQ(host, 0);
	REQUIRE_EQ(gpu_word(m.buffer.addr), 0);
	REQUIRE_EQ(gpu_word(m.buffer.addr + PAGE), 0);

	REQUIRE_OK(gdr_copy_to_mapping(m.mh, (char *)va + PAGE - 1, &byte, 1));
	REQUIRE_EQ(gpu_word(m.buffer.addr + PAGE - 4), (uint32_t)byte << 24);
	REQUIRE_EQ(gpu_word(m.buffer.addr + PAGE), 0);
	REQUIRE_OK(gdr_unmap(m.g, m.mh, va, PAGE - page + 1));
	refuse_copy(m.mh, va, 8, "after unmap");
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	buffer_free(&m.buffer);
	mapped_close(&other);
	REQUIRE_OK(gdr_close(other.g));
}

void test_plus_copy_nothing(enum memory memory)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *unreadable = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pointers[] = { NULL, (void *)UINTPTR_MAX, (void *)8, unreadable };
	struct mapped m;

	REQUIRE(unreadable != MAP_FAILED);
	gpu_start();
	mapped_open(open_session(), memory, PAGE, &m);
	gpu_fill(m.buffer.addr, 0x600d, PAGE);
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		REQUIRE_OK(gdr_copy_to_mapping(m.mh, m.va, pointers[i], 0));
		REQUIRE_OK(gdr_copy_from_mapping(m.mh, pointers[i], m.va, 0));
		REQUIRE_OK(gdr_copy_to_mapping(m.mh, pointers[i], pointers[i], 0));
		REQUIRE_OK(gdr_copy_from_mapping(m.mh, pointers[i], pointers[i], 0));
	}
	REQUIRE_EQ(gpu_word(m.buffer.addr), 0x600d);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
	munmap(unreadable, page);
}

#define RANDOM_SIZE ((size_t)512 << 10)
#define RANDOM_ROUNDS 2000

struct random_copies {
	struct mapped m;
	unsigned char *shadow;	/* what the buffer holds */
	unsigned char *host;
	uint64_t state;
};

static void copy_once(struct random_copies *r)
{
	size_t size = random_copy_size(&r->state, RANDOM_SIZE);
	size_t offset = random_below(&r->state, RANDOM_SIZE - size + 1);
	unsigned char *device = (unsigned char *)r->m.va + offset;
	unsigned char *host = r->host + random_below(&r->state, 64);

	if (random_below(&r->state, 2)) {
		random_fill(&r->state, host, size);
		REQUIRE_OK(gdr_copy_to_mapping(r->m.mh, device, host, size));
		memcpy(r->shadow + offset, host, size);
		return;
	}
	host[size] = 0x5a;
	REQUIRE_OK(gdr_copy_from_mapping(r->m.mh, host, device, size));
	REQUIRE_EQ(host[size], 0x5a);
	if (memcmp(host, r->shadow + offset, size) != 0)
		FAIL("a read of %zu bytes at offset %zu gave wrong bytes", size, offset);
}

static void compare_with_gpu(struct random_copies *r)
{
	gpu_read(r->host, r->m.buffer.addr, RANDOM_SIZE);
	for (size_t i = 0; i < RANDOM_SIZE; i++)
		if (r->host[i] != r->shadow[i])
			FAIL("byte %zu of the buffer is 0x%02x, expected 0x%02x", i, r->host[i],
			     r->shadow[i]);
}

void test_plus_copy_random(enum memory memory)
{
	struct random_copies r = { .state = 0x2545f4914f6cdd1d };

	r.shadow = calloc(1, RANDOM_SIZE);
	r.host = malloc(RANDOM_SIZE + 128);
	REQUIRE(r.shadow && r.host);
	gpu_start();
	mapped_open(open_session(), memory, RANDOM_SIZE, &r.m);
	gpu_fill(r.m.buffer.addr, 0, RANDOM_SIZE);
	for (int round = 0; round < RANDOM_ROUNDS; round++) {
		copy_once(&r);
		if (round % 100 == 99)
			compare_with_gpu(&r);
	}
	mapped_close(&r.m);
	REQUIRE_OK(gdr_close(r.m.g));
	free(r.shadow);
	free(r.host);
}

#define WHOLE_COPIES 300000

struct writer {
	const struct mapped *m;
	atomic_uint rounds;
	atomic_bool stop;
};

/*
 * The threads of the next test race on purpose, and what such a race may do is
 * what it asserts; so the race detector is asked to look away.
 */
#if defined(__SANITIZE_THREAD__)
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static void begin_race(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static void end_race(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static void begin_race(void)
{
}

static void end_race(void)
{
}
#endif

/* Words whose bytes are all the same, so that a torn one shows. */
static void *write_words(void *arg)
{
	struct writer *w = arg;
	char *va = (char *)w->m->va;

	begin_race();
	for (unsigned i = 1; !atomic_load_explicit(&w->stop, memory_order_relaxed); i++) {
		uint64_t word = (i & 0xff) * 0x0101010101010101u;

		REQUIRE_OK(gdr_copy_to_mapping(w->m->mh, va, &word, 8));
		REQUIRE_OK(gdr_copy_to_mapping(w->m->mh, va + 64, &word, 4));
		REQUIRE_OK(gdr_copy_to_mapping(w->m->mh, va + 128, &word, 2));
		atomic_store_explicit(&w->rounds, i, memory_order_relaxed);
	}
	end_race();
	return NULL;
}

static void read_whole(const struct mapped *m, size_t offset, size_t size)
{
	unsigned char bytes[8];

	REQUIRE_OK(gdr_copy_from_mapping(m->mh, bytes, (char *)m->va + offset, size));
	for (size_t i = 1; i < size; i++)
		if (bytes[i] != bytes[0])
			FAIL("an aligned copy of %zu bytes was seen torn: bytes 0x%02x and 0x%02x",
			     size, bytes[0], bytes[i]);
}

void test_plus_copy_not_torn(enum memory memory)
{
	struct writer writer;
	struct mapped m;
	pthread_t thread;

	gpu_start();
	mapped_open(open_session(), memory, PAGE, &m);
	gpu_fill(m.buffer.addr, 0, PAGE);
	writer.m = &m;
	atomic_init(&writer.rounds, 0);
	atomic_init(&writer.stop, false);
	REQUIRE_EQ(pthread_create(&thread, NULL, write_words, &writer), 0);
	begin_race();
	/* Both sides must have had their share of the time. */
	for (unsigned i = 0; i < WHOLE_COPIES || atomic_load(&writer.rounds) < WHOLE_COPIES; i++) {
		read_whole(&m, 0, 8);
		read_whole(&m, 64, 4);
		read_whole(&m, 128, 2);
	}
	end_race();
	atomic_store(&writer.stop, true);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}
