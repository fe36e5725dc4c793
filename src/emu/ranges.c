/* SPDX-License-Identifier: MIT */
/* Hands out parts of a number range, lowest first. */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

/*
 * Room for one more part than now is kept at all times, so that cutting a hole
 * into a part, and giving it back, cannot fail for want of memory.
 */
static bool reserve_slot(struct emu_ranges *ranges)
{
	size_t capacity = ranges->capacity * 2 + 8;
	struct emu_range *list;

	if (ranges->count + 2 <= ranges->capacity)
		return true;
	list = realloc(ranges->list, capacity * sizeof(*list));
	if (!list)
		return false;
	ranges->list = list;
	ranges->capacity = capacity;
	return true;
}

static void insert(struct emu_ranges *ranges, size_t at, uint64_t start, uint64_t size)
{
	struct emu_range *slot = &ranges->list[at];

	memmove(slot + 1, slot, (ranges->count - at) * sizeof(*slot));
	*slot = (struct emu_range){ start, size };
	ranges->count++;
}

static void erase(struct emu_ranges *ranges, size_t at)
{
	struct emu_range *slot = &ranges->list[at];

	memmove(slot, slot + 1, (ranges->count - at - 1) * sizeof(*slot));
	ranges->count--;
}

/* The first part that starts after position. */
static size_t find_after(const struct emu_ranges *ranges, uint64_t position)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges->list[middle].start > position)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

bool emu_ranges_give(struct emu_ranges *ranges, uint64_t start, uint64_t size)
{
	size_t at = find_after(ranges, start);
	struct emu_range *next, *previous;

	if (!reserve_slot(ranges))
		return false;
	next = at < ranges->count ? &ranges->list[at] : NULL;
	previous = at > 0 ? &ranges->list[at - 1] : NULL;
	if (next && next->start != start + size)
		next = NULL;
	if (previous && previous->start + previous->size != start)
		previous = NULL;
	if (previous && next) {
		previous->size += size + next->size;
		erase(ranges, at);
	} else if (previous) {
		previous->size += size;
	} else if (next) {
		next->start = start;
		next->size += size;
	} else {
		insert(ranges, at, start, size);
	}
	return true;
}

/* Takes [start, start + size) out of part at, which contains it. */
static bool carve(struct emu_ranges *ranges, size_t at, uint64_t start, uint64_t size)
{
	struct emu_range part = ranges->list[at];
	uint64_t tail = part.start + part.size - (start + size);

	if (!reserve_slot(ranges))
		return false;
	ranges->list[at].size = start - part.start;
	if (tail > 0)
		insert(ranges, at + 1, start + size, tail);
	if (ranges->list[at].size == 0)
		erase(ranges, at);
	return true;
}

bool emu_ranges_take(struct emu_ranges *ranges, uint64_t size, uint64_t alignment,
		     uint64_t *start)
{
	for (size_t i = 0; i < ranges->count; i++) {
		const struct emu_range *part = &ranges->list[i];
		uint64_t first = (part->start + alignment - 1) & ~(alignment - 1);
		uint64_t skipped = first - part->start;

		if (skipped > part->size || part->size - skipped < size)
			continue;
		if (!carve(ranges, i, first, size))
			return false;
		*start = first;
		return true;
	}
	return false;
}

bool emu_ranges_take_at(struct emu_ranges *ranges, uint64_t start, uint64_t size)
{
	size_t at = find_after(ranges, start);
	const struct emu_range *part;

	if (at == 0)
		return false;
	part = &ranges->list[at - 1];
	if (start - part->start > part->size || part->size - (start - part->start) < size)
		return false;
	return carve(ranges, at - 1, start, size);
}

void emu_ranges_destroy(struct emu_ranges *ranges)
{
	free(ranges->list);
	*ranges = (struct emu_ranges){ 0 };
}
