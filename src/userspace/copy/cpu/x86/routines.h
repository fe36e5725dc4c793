/* SPDX-License-Identifier: MIT */
/* The routines of x86-64 and the CPU features that they need. */
#ifndef GDRI_COPY_X86_ROUTINES_H
#define GDRI_COPY_X86_ROUTINES_H

#include <stddef.h>

/* Set only when the operating system saves the registers, too. */
enum gdri_copy_x86_feature {
	GDRI_COPY_X86_SSE41 = 1 << 0,
	GDRI_COPY_X86_AVX = 1 << 1,
	GDRI_COPY_X86_AVX2 = 1 << 2,
	GDRI_COPY_X86_AVX512F = 1 << 3,
	GDRI_COPY_X86_MOVDIR64B = 1 << 4,
};

unsigned gdri_copy_x86_detect(void);

/*
 * Stores are non-temporal: on a write-combined mapping they are what any other
 * store is, and where a mapping is ordinary memory (the emulated GPU) they keep
 * the caller's working set in the cache.  Loads are streaming (MOVNTDQA) where
 * the instruction set has them: an ordinary load from write-combined memory
 * fetches its own bytes alone, a streaming one the line, once for all its parts.
 */
void gdri_copy_sse2_store(void *dst, const void *src, size_t size);
void gdri_copy_sse2_load(void *dst, const void *src, size_t size);
void gdri_copy_sse41_load(void *dst, const void *src, size_t size);
void gdri_copy_avx_store(void *dst, const void *src, size_t size);
void gdri_copy_avx_load(void *dst, const void *src, size_t size);
void gdri_copy_avx2_load(void *dst, const void *src, size_t size);
void gdri_copy_avx512_store(void *dst, const void *src, size_t size);
void gdri_copy_avx512_load(void *dst, const void *src, size_t size);
void gdri_copy_movdir64b_store(void *dst, const void *src, size_t size);

/* Blocks of 16 bytes, for the head and tail of wider routines. */
void gdri_copy_sse2_store_blocks(void *dst, const void *src, size_t count);
void gdri_copy_sse41_load_blocks(void *dst, const void *src, size_t count);

#endif
