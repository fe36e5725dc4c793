/* SPDX-License-Identifier: MIT */
/* Moves 64 bytes, one bus packet, at a time with AVX-512. */
#include "copy/cpu/x86/routines.h"

#include <immintrin.h>

#include "copy/cpu/split.h"

#ifndef __AVX512F__
#error "compile this file with -mavx512f"
#endif

static inline void store64(char *mapping, __m512i value)
{
	__asm__ volatile("vmovntdq %1, %0" : "=m"(*(__m512i *)mapping) : "v"(value));
}

static inline __m512i load64(const char *mapping)
{
	__m512i value;

	__asm__ volatile("vmovntdqa %1, %0" : "=v"(value) : "m"(*(const __m512i *)mapping));
	return value;
}

/* Block: 64 bytes, aligned. */
static void store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count >= 2; count -= 2, mapping += 128, host += 128) {
		store64(mapping, _mm512_loadu_si512(host));
		store64(mapping + 64, _mm512_loadu_si512(host + 64));
	}
	if (count > 0)
		store64(mapping, _mm512_loadu_si512(host));
	_mm256_zeroupper();
}

/* Block: 64 bytes, aligned. */
static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count >= 2; count -= 2, mapping += 128, host += 128) {
		__m512i a = load64(mapping);
		__m512i b = load64(mapping + 64);

		_mm512_storeu_si512(host, a);
		_mm512_storeu_si512(host + 64, b);
	}
	if (count > 0)
		_mm512_storeu_si512(host, load64(mapping));
	_mm256_zeroupper();
}

static const struct gdri_copy_ladder stores = {
	.block = 64,
	.wide = store_blocks,
	.narrow = gdri_copy_sse2_store_blocks,
};

static const struct gdri_copy_ladder loads = {
	.block = 64,
	.wide = load_blocks,
	.narrow = gdri_copy_sse41_load_blocks,
};

void gdri_copy_avx512_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}

void gdri_copy_avx512_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}
