/* SPDX-License-Identifier: MIT */
/* Moves 16 bytes at a time with SSE2, which every x86-64 CPU has. */
#include "copy/cpu/x86/routines.h"

#include <emmintrin.h>

#include "copy/cpu/split.h"

#ifndef __SSE2__
#error "compile this file with -msse2"
#endif

/* The mapping's access is assembler, so that no compiler splits, joins or repeats it. */
static inline void store16(char *mapping, __m128i value)
{
	__asm__ volatile("movntdq %1, %0" : "=m"(*(__m128i *)mapping) : "x"(value));
}

static inline __m128i load16(const char *mapping)
{
	__m128i value;

	__asm__ volatile("movdqa %1, %0" : "=x"(value) : "m"(*(const __m128i *)mapping));
	return value;
}

static inline __m128i load_host(const char *host)
{
	return _mm_loadu_si128((const __m128i_u *)host);
}

static inline void store_host(char *host, __m128i value)
{
	_mm_storeu_si128((__m128i_u *)host, value);
}

/* Block: 16 bytes, aligned.  Four make up a bus packet of 64. */
void gdri_copy_sse2_store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count >= 4; count -= 4, mapping += 64, host += 64) {
		store16(mapping, load_host(host));
		store16(mapping + 16, load_host(host + 16));
		store16(mapping + 32, load_host(host + 32));
		store16(mapping + 48, load_host(host + 48));
	}
	for (; count > 0; count--, mapping += 16, host += 16)
		store16(mapping, load_host(host));
}

static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count > 0; count--, mapping += 16, host += 16)
		store_host(host, load16(mapping));
}

static const struct gdri_copy_ladder stores = {
	.block = 16,
	.wide = gdri_copy_sse2_store_blocks,
	.narrow = gdri_copy_sse2_store_blocks,
};

static const struct gdri_copy_ladder loads = {
	.block = 16,
	.wide = load_blocks,
	.narrow = load_blocks,
};

void gdri_copy_sse2_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}

void gdri_copy_sse2_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}
