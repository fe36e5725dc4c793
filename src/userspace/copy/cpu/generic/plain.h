/* SPDX-License-Identifier: MIT */
/* The copy that every CPU can run: naturally aligned words of at most 8 bytes. */
#ifndef GDRI_COPY_GENERIC_PLAIN_H
#define GDRI_COPY_GENERIC_PLAIN_H

#include "copy/cpu/cpu.h"

/*
 * Write-combined memory, and the only road to a device mapping: memory of
 * that type takes no access that is wider than 8 bytes or not naturally
 * aligned on some root ports, even where the CPU would issue one.
 */
void gdri_copy_plain_store(void *dst, const void *src, size_t size);
void gdri_copy_plain_load(void *dst, const void *src, size_t size);

/* The same words with the fence that cached memory asks for. */
void gdri_copy_plain_cached_store(void *dst, const void *src, size_t size);
void gdri_copy_plain_cached_load(void *dst, const void *src, size_t size);

extern const struct gdri_copy_routine gdri_copy_plain;

#endif
