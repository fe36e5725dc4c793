/* SPDX-License-Identifier: MIT */
/* The routines of arm64 and the CPU features that they need. */
#ifndef GDRI_COPY_ARM64_ROUTINES_H
#define GDRI_COPY_ARM64_ROUTINES_H

#include <stddef.h>

enum gdri_copy_arm64_feature {
	GDRI_COPY_ARM64_NEON = 1 << 0,
	GDRI_COPY_ARM64_LS64 = 1 << 1,
};

unsigned gdri_copy_arm64_detect(void);

void gdri_copy_neon_store(void *dst, const void *src, size_t size);
void gdri_copy_neon_load(void *dst, const void *src, size_t size);
void gdri_copy_neon_cached_store(void *dst, const void *src, size_t size);
void gdri_copy_neon_cached_load(void *dst, const void *src, size_t size);
void gdri_copy_ls64_store(void *dst, const void *src, size_t size);
void gdri_copy_ls64_load(void *dst, const void *src, size_t size);

/* Blocks of 16 bytes, for the head and tail of wider routines. */
void gdri_copy_neon_store_narrow(void *dst, const void *src, size_t count);
void gdri_copy_neon_load_narrow(void *dst, const void *src, size_t count);

#endif
