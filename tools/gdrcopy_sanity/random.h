/* SPDX-License-Identifier: MIT */
/* Numbers that look random and are the same in every run. */
#ifndef SANITY_RANDOM_H
#define SANITY_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003); state is not 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline size_t random_below(uint64_t *state, size_t limit)
{
	return (size_t)((random_next(state) >> 11) % limit);
}

static inline void random_fill(uint64_t *state, unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(random_next(state) >> 32);
}

/*
 * Sizes from 1 to limit where copies go wrong: small ones, and those around
 * the powers of two at which routines change.
 */
static inline size_t random_copy_size(uint64_t *state, size_t limit)
{
	size_t size;

	if (random_below(state, 4) == 0)
		return 1 + random_below(state, limit);
	size = (size_t)1 << random_below(state, 17);
	size += random_below(state, 131);
	return size > 65 && size - 65 <= limit ? size - 65 : 1 + size % (limit < 64 ? limit : 64);
}

#endif
