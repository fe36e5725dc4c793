/* SPDX-License-Identifier: MIT */
/* Bytes to move, and the proof that they arrived. */
#ifndef TOOLS_PATTERN_H
#define TOOLS_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Fills with bytes that differ from place to place and from seed to seed: no
 * shift, repeat or leftover of another seed looks right.
 */
void pattern_fill(void *buffer, size_t size, uint32_t seed);

/* Ends the program, naming the first wrong byte; what says which copy. */
void pattern_check(const void *got, const void *wanted, size_t size, const char *what);

/* A page-aligned host buffer, touched, so that no timed loop meets a page fault. */
void *host_buffer(size_t size);

#endif
