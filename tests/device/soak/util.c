/* SPDX-License-Identifier: MIT */
/* Time, random numbers, and loops over bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "soak/soak.h"

/* The loops below are for vector units; -O2 leaves some of them to scalars. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

const char *const way_names[WAYS] = { "to", "from", "within" };
const char *const class_names[CLASSES] = { "small", "64K", "1M" };
const char *const completion_names[COMPLETIONS] = {
	[GDRI_DMA_BY_HOST] = "host",
	[GDRI_DMA_BY_ENGINE_FLUSHED] = "flushed",
	[GDRI_DMA_BY_ENGINE_UNSAFE] = "unsafe",
};

void must(const char *what, int rc)
{
	if (rc == 0)
		return;
	fflush(stdout);
	fprintf(stderr, "%s: failed (%d)\n", what, rc);
	exit(1);
}

void *must_alloc(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must("host memory", pages == MAP_FAILED);
	return pages;
}

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* xorshift64*; the state is not 0. */
uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

size_t random_below(uint64_t *state, size_t bound)
{
	return (size_t)((unsigned __int128)random_next(state) * bound >> 64);
}

size_t random_size(uint64_t *state, size_t most)
{
	const unsigned bits = (unsigned)(63 - __builtin_clzll(most));
	const size_t top = (size_t)1 << random_below(state, bits + 1);

	/* top/2 + 1 to top, so that most itself is met. */
	return top - random_below(state, top > 1 ? top / 2 : 1);
}

void random_fill(uint64_t *state, void *bytes, size_t size)
{
	uint8_t *to = bytes;

	for (size_t i = 0; i < size; i += 8) {
		const uint64_t word = random_next(state);

		memcpy(to + i, &word, size - i < 8 ? size - i : 8);
	}
}

void complement(uint8_t *dst, const uint8_t *src, size_t size)
{
	for (size_t i = 0; i < size; i++)
		dst[i] = (uint8_t)~src[i];
}

static size_t count_in_block(const uint8_t *a, const uint8_t *b, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += a[i] != b[i];
	return count ? count : 1;
}

size_t count_differences(const uint8_t *found, const uint8_t *expected, size_t size)
{
	size_t count = 0;

	while (size > 0) {
		const size_t block = (size - 1) % 4096 + 1;

		size -= block;
		if (memcmp(found + size, expected + size, block) != 0)
			count += count_in_block(found + size, expected + size, block);
	}
	return count;
}
