/* SPDX-License-Identifier: MIT */
/* Loads 32 bytes at a time with the streaming load of AVX2. */
#include "copy/cpu/x86/routines.h"

#include <immintrin.h>

#include "copy/cpu/split.h"

#ifndef __AVX2__
#error "compile this file with -mavx2"
#endif

static inline __m256i load32(const char *mapping)
{
	__m256i value;

	__asm__ volatile("vmovntdqa %1, %0" : "=x"(value) : "m"(*(const __m256i *)mapping));
	return value;
}

static inline void store_host(char *host, __m256i value)
{
	_mm256_storeu_si256((__m256i_u *)host, value);
}

/* Block: 32 bytes, aligned.  A line's two parts are loaded close together. */
static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count >= 4; count -= 4, mapping += 128, host += 128) {
		__m256i a = load32(mapping);
		__m256i b = load32(mapping + 32);
		__m256i c = load32(mapping + 64);
		__m256i d = load32(mapping + 96);

		store_host(host, a);
		store_host(host + 32, b);
		store_host(host + 64, c);
		store_host(host + 96, d);
	}
	for (; count > 0; count--, mapping += 32, host += 32)
		store_host(host, load32(mapping));
	_mm256_zeroupper();
}

static const struct gdri_copy_ladder loads = {
	.block = 32,
	.wide = load_blocks,
	.narrow = gdri_copy_sse41_load_blocks,
};

void gdri_copy_avx2_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}
