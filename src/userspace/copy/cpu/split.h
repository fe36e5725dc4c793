/* SPDX-License-Identifier: MIT */
/* Cuts a copy into aligned pieces of the mapping's side and has a routine move them. */
#ifndef GDRI_COPY_SPLIT_H
#define GDRI_COPY_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "copy/cpu/fence.h"
#include "copy/cpu/words.h"

/*
 * Moves count blocks, count > 0.  The mapping's side is aligned to the block's
 * size and each block of it is accessed once, in accesses aligned to their own
 * size; the host's side has any alignment, and nothing outside the blocks is
 * touched on either side.  No fence.
 */
typedef void (*gdri_copy_blocks_fn)(void *dst, const void *src, size_t count);

/* What one direction of a routine consists of. */
struct gdri_copy_ladder {
	size_t block;			/* bytes that wide moves at a time: 8, 16, 32 or 64 */
	gdri_copy_blocks_fn wide;
	gdri_copy_blocks_fn narrow;	/* blocks of 16 bytes; not needed up to block 16 */
};

/*
 * The pieces of a range, in order of address.  head and tail are sums of
 * different powers of two below block: taking head's from the smallest up and
 * tail's from the largest down, every piece is aligned to its own size.  body
 * is whole aligned blocks.  block is smaller than what was asked for when the
 * range holds no aligned block of that size; body is then one block or none.
 */
struct gdri_copy_pieces {
	size_t block;
	size_t head;
	size_t body;
	size_t tail;
};

/*
 * The highest bit in which the two ends differ names the largest power of two
 * that has a multiple between them; everything is aligned around that multiple.
 */
static inline struct gdri_copy_pieces gdri_copy_split(uintptr_t start, size_t size, size_t block)
{
	uintptr_t end = start + size;
	uintptr_t coarsest = (uintptr_t)1 << (63 - __builtin_clzll((start ^ end) | 1));
	struct gdri_copy_pieces pieces;

	pieces.block = coarsest < block ? coarsest : block;
	pieces.head = -start & (pieces.block - 1);
	pieces.tail = end & (pieces.block - 1);
	pieces.body = size - pieces.head - pieces.tail;
	return pieces;
}

/* Copies any range piece by piece; no fence. */
void gdri_copy_split_store(const struct gdri_copy_ladder *ladder, void *mapping, const void *host,
			   size_t size);
void gdri_copy_split_load(const struct gdri_copy_ladder *ladder, void *host, const void *mapping,
			  size_t size);

/*
 * A whole copy with its fences.  Flags and doorbells, one aligned word of 4 or
 * 8 bytes, come first and cost a compare, the access and the fence.
 */
static inline void gdri_copy_store(const struct gdri_copy_ladder *ladder, void *mapping,
				   const void *host, size_t size)
{
	if (size == 8 && (uintptr_t)mapping % 8 == 0)
		gdri_copy_store64(mapping, host);
	else if (size == 4 && (uintptr_t)mapping % 4 == 0)
		gdri_copy_store32(mapping, host);
	else
		gdri_copy_split_store(ladder, mapping, host, size);
	gdri_fence_stores_posted();
}

static inline void gdri_copy_load(const struct gdri_copy_ladder *ladder, void *host,
				  const void *mapping, size_t size)
{
	gdri_fence_loads_begin();
	if (size == 8 && (uintptr_t)mapping % 8 == 0)
		gdri_copy_load64(host, mapping);
	else if (size == 4 && (uintptr_t)mapping % 4 == 0)
		gdri_copy_load32(host, mapping);
	else
		gdri_copy_split_load(ladder, host, mapping, size);
	gdri_fence_loads_done();
}

#endif
