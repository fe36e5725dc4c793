/* SPDX-License-Identifier: MIT */
/* Stores 32 bytes at a time with AVX; AVX has no streaming load that wide, so it loads 16. */
#include "copy/cpu/x86/routines.h"

#include <immintrin.h>

#include "copy/cpu/split.h"

#ifndef __AVX__
#error "compile this file with -mavx"
#endif

static inline void store32(char *mapping, __m256i value)
{
	__asm__ volatile("vmovntdq %1, %0" : "=m"(*(__m256i *)mapping) : "x"(value));
}

static inline __m128i load16(const char *mapping)
{
	__m128i value;

	__asm__ volatile("vmovntdqa %1, %0" : "=x"(value) : "m"(*(const __m128i *)mapping));
	return value;
}

static inline __m256i load_host(const char *host)
{
	return _mm256_loadu_si256((const __m256i_u *)host);
}

static inline void store_host(char *host, __m128i value)
{
	_mm_storeu_si128((__m128i_u *)host, value);
}

/* Block: 32 bytes, aligned.  Two make up a bus packet of 64. */
static void store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count >= 4; count -= 4, mapping += 128, host += 128) {
		store32(mapping, load_host(host));
		store32(mapping + 32, load_host(host + 32));
		store32(mapping + 64, load_host(host + 64));
		store32(mapping + 96, load_host(host + 96));
	}
	for (; count > 0; count--, mapping += 32, host += 32)
		store32(mapping, load_host(host));
	_mm256_zeroupper();
}

/* Block: 32 bytes, aligned, as two loads that share a line. */
static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count > 0; count--, mapping += 32, host += 32) {
		__m128i low = load16(mapping);
		__m128i high = load16(mapping + 16);

		store_host(host, low);
		store_host(host + 16, high);
	}
}

static const struct gdri_copy_ladder stores = {
	.block = 32,
	.wide = store_blocks,
	.narrow = gdri_copy_sse2_store_blocks,
};

static const struct gdri_copy_ladder loads = {
	.block = 32,
	.wide = load_blocks,
	.narrow = gdri_copy_sse41_load_blocks,
};

void gdri_copy_avx_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}

void gdri_copy_avx_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}
