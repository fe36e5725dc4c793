/* SPDX-License-Identifier: MIT */
/*
 * Every copy routine moves the right bytes and touches no others: every size
 * up to 300 at every offset of both sides, ranges that end or begin at an
 * inaccessible page, and sizes around powers of two and pages up to 16 MiB.
 * The side that is read is write-protected.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copy/engine.h"
#include "harness.h"

#define GUARD_BYTE 0x5a
#define GUARD_SIZE 64
#define MAX_SMALL 300
#define MAX_LARGE ((size_t)16 << 20)

/* Whole pages with an inaccessible page directly before and after them. */
struct arena {
	unsigned char *start;
	unsigned char *end;
};

static size_t round_to_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static void make_arena(struct arena *arena, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *base;

	size = round_to_pages(size);
	base = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(base != MAP_FAILED);
	REQUIRE_EQ(mprotect(base + page, size, PROT_READ | PROT_WRITE), 0);
	arena->start = base + page;
	arena->end = arena->start + size;
}

static void drop_arena(const struct arena *arena)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap(arena->start - page, (size_t)(arena->end - arena->start) + 2 * page);
}

static void make_source(struct arena *arena, size_t size)
{
	uint64_t state = 88172645463325252u;

	make_arena(arena, size);
	for (unsigned char *byte = arena->start; byte < arena->end; byte++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		*byte = (unsigned char)(state >> 32);
	}
	mprotect(arena->start, (size_t)(arena->end - arena->start), PROT_READ);
}

static bool guards_intact(const unsigned char *dst, size_t size)
{
	unsigned char guard[GUARD_SIZE];

	memset(guard, GUARD_BYTE, sizeof(guard));
	return memcmp(dst - GUARD_SIZE, guard, GUARD_SIZE) == 0 &&
	       memcmp(dst + size, guard, GUARD_SIZE) == 0;
}

/* HARNESS_SLOW says that each access costs many times its price: fewer source offsets then. */
static size_t source_step(void)
{
	return getenv("HARNESS_SLOW") ? 7 : 1;
}

/* All source and destination offsets for one size; the first failure ends it. */
static void check_offsets(gdri_copy_fn copy, unsigned char *area, const unsigned char *source,
			  size_t size)
{
	const size_t step = source_step();

	for (size_t to = 0; to < 64; to++) {
		unsigned char *dst = area + GUARD_SIZE + to;

		for (size_t from = 0; from < 64; from += step) {
			copy(dst, source + from, size);
			if (memcmp(dst, source + from, size) == 0 && guards_intact(dst, size)) {
				memset(dst, GUARD_BYTE, size);
				continue;
			}
			fprintf(stderr, "size %zu, destination offset %zu, source offset %zu\n",
				size, to, from);
			CHECK(!"the right bytes and no others");
			harness_abandon();
		}
	}
}

static void check_small(gdri_copy_fn copy)
{
	struct arena dst, src;

	make_arena(&dst, 4096);
	make_source(&src, 4096);
	memset(dst.start, GUARD_BYTE, (size_t)(dst.end - dst.start));
	for (size_t size = 0; size <= MAX_SMALL; size++)
		check_offsets(copy, dst.start, src.start, size);
	drop_arena(&dst);
	drop_arena(&src);
}

/* One copy with each side against the page before or the page after its arena. */
static void check_edges_of(gdri_copy_fn copy, const struct arena *dst, const struct arena *src,
			   size_t size)
{
	for (int placement = 0; placement < 4; placement++) {
		unsigned char *to = placement & 1 ? dst->end - size : dst->start;
		const unsigned char *from = placement & 2 ? src->end - size : src->start;

		memset(to, GUARD_BYTE, size);
		copy(to, from, size);
		if (memcmp(to, from, size) != 0) {
			fprintf(stderr, "size %zu, placement %d\n", size, placement);
			CHECK(!"the right bytes at the edge of an arena");
			harness_abandon();
		}
	}
}

static void check_small_edges(gdri_copy_fn copy)
{
	struct arena dst, src;

	make_arena(&dst, 4096);
	make_source(&src, 4096);
	for (size_t size = 0; size <= MAX_SMALL; size++)
		check_edges_of(copy, &dst, &src, size);
	drop_arena(&dst);
	drop_arena(&src);
}

static void check_large(gdri_copy_fn copy)
{
	struct arena dst, src;

	make_arena(&dst, MAX_LARGE + 1);
	make_source(&src, MAX_LARGE + 1);
	for (size_t power = 256; power <= MAX_LARGE; power *= 2)
		for (size_t size = power - 1; size <= power + 1; size++)
			check_edges_of(copy, &dst, &src, size);
	for (size_t pages = 1; pages <= 17; pages++)
		for (size_t step = 0; step <= 64; step++)
			check_edges_of(copy, &dst, &src, pages * 4096 - 32 + step);
	drop_arena(&dst);
	drop_arena(&src);
}

struct pair {
	gdri_copy_fn to;
	gdri_copy_fn from;
};

/* In a child: a touched guard page ends it with a signal, which the case sees. */
static void check_edges_in_child(void *arg)
{
	const struct pair *pair = arg;

	check_small_edges(pair->to);
	check_small_edges(pair->from);
	check_large(pair->to);
	check_large(pair->from);
}

static void check_pair(struct pair *pair)
{
	CHECK_EQ(harness_fork(check_edges_in_child, pair), 0);
	check_small(pair->to);
	check_small(pair->from);
}

static bool is_usable(const char *name)
{
	const char *known;
	bool usable;

	for (unsigned i = 0; (known = gdri_copy_routine_name(i, &usable)); i++)
		if (strcmp(known, name) == 0)
			return usable;
	SKIP("this build's compiler does not know it");
}

static void check_routine(const char *name)
{
	struct gdri_log log = { .level = GDRI_LOG_OFF };
	struct gdri_copy_engine engine;
	struct pair pair;

	if (!is_usable(name))
		SKIP("this CPU cannot run it");
	gdri_copy_engine_select(name, &log, &engine);
	pair.to = engine.to_mapping[GDR_MAPPING_TYPE_WC];
	pair.from = engine.from_mapping[GDR_MAPPING_TYPE_WC];
	check_pair(&pair);
}

static void check_type(gdr_mapping_type_t type)
{
	struct gdri_log log = { .level = GDRI_LOG_OFF };
	struct gdri_copy_engine engine;
	struct pair pair;

	gdri_copy_engine_select(NULL, &log, &engine);
	pair.to = engine.to_mapping[type];
	pair.from = engine.from_mapping[type];
	check_pair(&pair);
}

static void device_type(void)
{
	check_type(GDR_MAPPING_TYPE_DEVICE);
}

static void caching_type(void)
{
	check_type(GDR_MAPPING_TYPE_CACHING);
}

/* Sizes where a consumer once saw wrong results, and their surroundings. */
#define THREADS 4
#define ROUNDS 2000
#define THREAD_AREA ((size_t)192 << 10)

static size_t pick(unsigned *seed, size_t limit)
{
	return (size_t)rand_r(seed) % limit;
}

static void *copy_at_random(void *arg)
{
	static const size_t around[] = { 1 << 10, 4 << 10, 16 << 10, 64 << 10 };
	const struct gdri_copy_engine *engine = arg;
	gdri_copy_fn to = engine->to_mapping[GDR_MAPPING_TYPE_WC];
	gdri_copy_fn from = engine->from_mapping[GDR_MAPPING_TYPE_WC];
	unsigned char *host = malloc(THREAD_AREA), *mapping = malloc(THREAD_AREA);
	unsigned char *back = malloc(THREAD_AREA);
	unsigned seed = (unsigned)(uintptr_t)host;

	if (!CHECK(host && mapping && back))
		return NULL;
	for (size_t i = 0; i < THREAD_AREA; i++)
		host[i] = (unsigned char)rand_r(&seed);
	for (int i = 0; i < ROUNDS; i++) {
		size_t size = around[pick(&seed, 4)] - 300 + pick(&seed, 600);
		size_t source = pick(&seed, 4096), target = pick(&seed, 4096);

		to(mapping + target, host + source, size);
		from(back + source, mapping + target, size);
		if (!CHECK(memcmp(back + source, host + source, size) == 0))
			break;
		memset(back + source, 0, size);
	}
	free(back);
	free(mapping);
	free(host);
	return NULL;
}

static void threads(void)
{
	struct gdri_log log = { .level = GDRI_LOG_OFF };
	struct gdri_copy_engine engine;
	pthread_t thread[THREADS];

	gdri_copy_engine_select(NULL, &log, &engine);
	for (int i = 0; i < THREADS; i++)
		REQUIRE_EQ(pthread_create(&thread[i], NULL, copy_at_random, &engine), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

#define ROUTINE(name)                       \
	static void routine_##name(void)    \
	{                                   \
		check_routine(#name);       \
	}
#define ROUTINE_CASE(name) { #name, routine_##name }

ROUTINE(plain)
#if defined(__x86_64__)
ROUTINE(sse2)
ROUTINE(sse41)
ROUTINE(avx)
ROUTINE(avx2)
ROUTINE(avx512)
ROUTINE(movdir64b)
#elif defined(__aarch64__)
ROUTINE(neon)

/* The accesses of LS64 fault on the ordinary memory that stands in for a mapping here. */
static void routine_ls64(void)
{
	is_usable("ls64");
	SKIP("it takes device memory");
}
#endif

static const struct harness_case cases[] = {
	ROUTINE_CASE(plain),
#if defined(__x86_64__)
	ROUTINE_CASE(sse2),
	ROUTINE_CASE(sse41),
	ROUTINE_CASE(avx),
	ROUTINE_CASE(avx2),
	ROUTINE_CASE(avx512),
	ROUTINE_CASE(movdir64b),
#elif defined(__aarch64__)
	ROUTINE_CASE(neon),
	ROUTINE_CASE(ls64),
#endif
	{ "device_type", device_type },
	{ "caching_type", caching_type },
	{ "threads", threads },
};

HARNESS_MAIN(cases)
