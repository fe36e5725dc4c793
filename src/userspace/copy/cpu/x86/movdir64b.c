/* SPDX-License-Identifier: MIT */
/* Stores 64 bytes as one direct store each: one packet, never split or merged. */
#include "copy/cpu/x86/routines.h"

#include "copy/cpu/split.h"

#ifndef __MOVDIR64B__
#error "compile this file with -mmovdir64b"
#endif

struct line {
	char bytes[64];
};

/* The instruction reads the host's side itself, at any alignment. */
static inline void store64(char *mapping, const char *host)
{
	__asm__ volatile("movdir64b %1, %2"
			 : "=m"(*(struct line *)mapping)
			 : "m"(*(const struct line *)host), "r"(mapping));
}

/* Block: 64 bytes, aligned. */
static void store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count > 0; count--, mapping += 64, host += 64)
		store64(mapping, host);
}

static const struct gdri_copy_ladder stores = {
	.block = 64,
	.wide = store_blocks,
	.narrow = gdri_copy_sse2_store_blocks,
};

void gdri_copy_movdir64b_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}
