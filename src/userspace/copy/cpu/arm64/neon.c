/* SPDX-License-Identifier: MIT */
/* Moves 64 bytes at a time as two pairs of 16-byte registers. */
#include "copy/cpu/arm64/routines.h"

#include <arm_neon.h>

#include "copy/cpu/split.h"

#ifndef __ARM_NEON
#error "compile this file with -march=armv8-a+simd"
#endif

/* The mapping's access is assembler, so that no compiler splits, joins or repeats it. */
static inline void store16(char *mapping, uint8x16_t value)
{
	__asm__ volatile("str %q1, %0" : "=Q"(*(uint8x16_t *)mapping) : "w"(value));
}

static inline uint8x16_t load16(const char *mapping)
{
	uint8x16_t value;

	__asm__ volatile("ldr %q0, %1" : "=w"(value) : "Q"(*(const uint8x16_t *)mapping));
	return value;
}

static inline void store32(char *mapping, uint8x16_t low, uint8x16_t high)
{
	__asm__ volatile("stp %q2, %q3, [%1]"
			 : "=m"(*(uint8x16x2_t *)mapping)
			 : "r"(mapping), "w"(low), "w"(high));
}

static inline uint8x16x2_t load32(const char *mapping)
{
	uint8x16x2_t value;

	__asm__ volatile("ldp %q0, %q1, [%2]"
			 : "=w"(value.val[0]), "=w"(value.val[1])
			 : "r"(mapping), "m"(*(const uint8x16x2_t *)mapping));
	return value;
}

static inline uint8x16_t load_host(const char *host)
{
	return vld1q_u8((const uint8_t *)host);
}

static inline void store_host(char *host, uint8x16_t value)
{
	vst1q_u8((uint8_t *)host, value);
}

/* Block: 16 bytes, aligned. */
void gdri_copy_neon_store_narrow(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count > 0; count--, mapping += 16, host += 16)
		store16(mapping, load_host(host));
}

void gdri_copy_neon_load_narrow(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count > 0; count--, mapping += 16, host += 16)
		store_host(host, load16(mapping));
}

/* Block: 64 bytes, aligned. */
static void store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count > 0; count--, mapping += 64, host += 64) {
		store32(mapping, load_host(host), load_host(host + 16));
		store32(mapping + 32, load_host(host + 32), load_host(host + 48));
	}
}

static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count > 0; count--, mapping += 64, host += 64) {
		uint8x16x2_t low = load32(mapping);
		uint8x16x2_t high = load32(mapping + 32);

		store_host(host, low.val[0]);
		store_host(host + 16, low.val[1]);
		store_host(host + 32, high.val[0]);
		store_host(host + 48, high.val[1]);
	}
}

static const struct gdri_copy_ladder stores = {
	.block = 64,
	.wide = store_blocks,
	.narrow = gdri_copy_neon_store_narrow,
};

static const struct gdri_copy_ladder loads = {
	.block = 64,
	.wide = load_blocks,
	.narrow = gdri_copy_neon_load_narrow,
};

void gdri_copy_neon_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}

void gdri_copy_neon_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}

/* GPUs on a coherent link (Grace): the same accesses, which cached memory takes well. */
void gdri_copy_neon_cached_store(void *dst, const void *src, size_t size)
{
	gdri_copy_split_store(&stores, dst, src, size);
	gdri_fence_full();
}

void gdri_copy_neon_cached_load(void *dst, const void *src, size_t size)
{
	gdri_fence_loads_begin();
	gdri_copy_split_load(&loads, dst, src, size);
	gdri_fence_full();
}
