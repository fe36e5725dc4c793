/* SPDX-License-Identifier: MIT */
/* Loads 16 bytes at a time with the streaming load of SSE4.1. */
#include "copy/cpu/x86/routines.h"

#include <smmintrin.h>

#include "copy/cpu/split.h"

#ifndef __SSE4_1__
#error "compile this file with -msse4.1"
#endif

static inline __m128i load16(const char *mapping)
{
	__m128i value;

	__asm__ volatile("movntdqa %1, %0" : "=x"(value) : "m"(*(const __m128i *)mapping));
	return value;
}

static inline void store_host(char *host, __m128i value)
{
	_mm_storeu_si128((__m128i_u *)host, value);
}

/* Block: 16 bytes, aligned.  A line's four parts are loaded close together. */
void gdri_copy_sse41_load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count >= 4; count -= 4, mapping += 64, host += 64) {
		__m128i a = load16(mapping);
		__m128i b = load16(mapping + 16);
		__m128i c = load16(mapping + 32);
		__m128i d = load16(mapping + 48);

		store_host(host, a);
		store_host(host + 16, b);
		store_host(host + 32, c);
		store_host(host + 48, d);
	}
	for (; count > 0; count--, mapping += 16, host += 16)
		store_host(host, load16(mapping));
}

static const struct gdri_copy_ladder loads = {
	.block = 16,
	.wide = gdri_copy_sse41_load_blocks,
	.narrow = gdri_copy_sse41_load_blocks,
};

void gdri_copy_sse41_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}
