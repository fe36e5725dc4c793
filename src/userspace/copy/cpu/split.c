/* SPDX-License-Identifier: MIT */
/* Walks the pieces of a copy: words, narrow blocks, wide blocks, and down again. */
#include "copy/cpu/split.h"

#include <stdbool.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Where the copy stands. */
struct cursor {
	char *dst;
	const char *src;
};

/* store is a constant in every call below, so one text serves both directions. */
ALWAYS_INLINE void move_word(bool store, struct cursor *at, size_t size)
{
	void (*move)(void *dst, const void *src);

	switch (size) {
	case 1:
		move = store ? gdri_copy_store8 : gdri_copy_load8;
		break;
	case 2:
		move = store ? gdri_copy_store16 : gdri_copy_load16;
		break;
	case 4:
		move = store ? gdri_copy_store32 : gdri_copy_load32;
		break;
	default:
		move = store ? gdri_copy_store64 : gdri_copy_load64;
		break;
	}
	move(at->dst, at->src);
	at->dst += size;
	at->src += size;
}

/* The words of which sum is made, smallest first. */
ALWAYS_INLINE void move_words_up(bool store, struct cursor *at, size_t sum)
{
	if (sum & 1)
		move_word(store, at, 1);
	if (sum & 2)
		move_word(store, at, 2);
	if (sum & 4)
		move_word(store, at, 4);
	if (sum & 8)
		move_word(store, at, 8);
}

ALWAYS_INLINE void move_words_down(bool store, struct cursor *at, size_t sum)
{
	if (sum & 8)
		move_word(store, at, 8);
	if (sum & 4)
		move_word(store, at, 4);
	if (sum & 2)
		move_word(store, at, 2);
	if (sum & 1)
		move_word(store, at, 1);
}

static inline void move_blocks(gdri_copy_blocks_fn move, struct cursor *at, size_t block,
			       size_t count)
{
	if (count == 0)
		return;
	move(at->dst, at->src, count);
	at->dst += block * count;
	at->src += block * count;
}

ALWAYS_INLINE void move_pieces(bool store, const struct gdri_copy_ladder *ladder,
			       struct cursor *at, const struct gdri_copy_pieces *pieces)
{
	move_words_up(store, at, pieces->head & 15);
	move_blocks(ladder->narrow, at, 16, pieces->head / 16);
	if (pieces->block == ladder->block)
		move_blocks(ladder->wide, at, ladder->block, pieces->body / ladder->block);
	else if (pieces->block >= 16)
		move_blocks(ladder->narrow, at, 16, pieces->body / 16);
	else
		move_words_up(store, at, pieces->body);
	move_blocks(ladder->narrow, at, 16, pieces->tail / 16);
	move_words_down(store, at, pieces->tail & 15);
}

void gdri_copy_split_store(const struct gdri_copy_ladder *ladder, void *mapping, const void *host,
			   size_t size)
{
	struct gdri_copy_pieces pieces = gdri_copy_split((uintptr_t)mapping, size, ladder->block);
	struct cursor at = { .dst = mapping, .src = host };

	move_pieces(true, ladder, &at, &pieces);
}

void gdri_copy_split_load(const struct gdri_copy_ladder *ladder, void *host, const void *mapping,
			  size_t size)
{
	struct gdri_copy_pieces pieces = gdri_copy_split((uintptr_t)mapping, size, ladder->block);
	struct cursor at = { .dst = host, .src = mapping };

	move_pieces(false, ladder, &at, &pieces);
}
