/* SPDX-License-Identifier: MIT */
/* Hands out parts of a number range: addresses, file offsets, parts of a block. */
#ifndef EMU_RANGES_H
#define EMU_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The free parts, sorted, never adjacent.  The caller locks. */
struct emu_range {
	uint64_t start, size;
};

struct emu_ranges {
	struct emu_range *list;
	size_t count, capacity;
};

/* Adds [start, start + size) to the free parts; false when host memory is out. */
bool emu_ranges_give(struct emu_ranges *ranges, uint64_t start, uint64_t size);

/* Takes the lowest fit; alignment is a power of two. */
bool emu_ranges_take(struct emu_ranges *ranges, uint64_t size, uint64_t alignment,
		     uint64_t *start);

/* Takes exactly [start, start + size), if it is free. */
bool emu_ranges_take_at(struct emu_ranges *ranges, uint64_t start, uint64_t size);

void emu_ranges_destroy(struct emu_ranges *ranges);

#endif
