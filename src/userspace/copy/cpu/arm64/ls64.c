/* SPDX-License-Identifier: MIT */
/* Moves 64 bytes as one atomic access of eight general registers (FEAT_LS64). */
#include "copy/cpu/arm64/routines.h"

#include "copy/cpu/split.h"

#ifndef __ARM_FEATURE_LS64
#error "compile this file with -march=armv8.7-a"
#endif

struct line {
	char bytes[64];
};

/*
 * The instructions want eight consecutive registers from an even one on.
 * Taking x0 to x7 for the whole of a block, the host's side included, leaves
 * the compiler nothing to put between.
 */
static inline void store64(char *mapping, const char *host)
{
	__asm__ volatile("ldp x0, x1, [%[host]]\n\t"
			 "ldp x2, x3, [%[host], #16]\n\t"
			 "ldp x4, x5, [%[host], #32]\n\t"
			 "ldp x6, x7, [%[host], #48]\n\t"
			 "st64b x0, [%[mapping]]"
			 : "=m"(*(struct line *)mapping)
			 : [mapping] "r"(mapping), [host] "r"(host), "m"(*(const struct line *)host)
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7");
}

static inline void load64(char *host, const char *mapping)
{
	__asm__ volatile("ld64b x0, [%[mapping]]\n\t"
			 "stp x0, x1, [%[host]]\n\t"
			 "stp x2, x3, [%[host], #16]\n\t"
			 "stp x4, x5, [%[host], #32]\n\t"
			 "stp x6, x7, [%[host], #48]"
			 : "=m"(*(struct line *)host)
			 : [mapping] "r"(mapping), [host] "r"(host), "m"(*(const struct line *)mapping)
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7");
}

/* Block: 64 bytes, aligned. */
static void store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count > 0; count--, mapping += 64, host += 64)
		store64(mapping, host);
}

static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count > 0; count--, mapping += 64, host += 64)
		load64(host, mapping);
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

void gdri_copy_ls64_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}

void gdri_copy_ls64_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}
