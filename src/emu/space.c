/* SPDX-License-Identifier: MIT */
/* Device addresses: parts of ranges that this process reserves and cannot access. */
#include <sys/mman.h>

#include "memory.h"

/*
 * Reserved ranges are never given back, so that a device address never becomes
 * the address of something else in this process.  A CPU access to one faults,
 * as it does on a machine with a real GPU, because nothing is mapped there.
 */
#define ARENA_SIZE ((uint64_t)16 << 30)

#define MAX_ARENAS 64

static struct emu_ranges space;
static struct emu_range arenas[MAX_ARENAS];
static unsigned arena_count;

static bool add_arena(uint64_t size)
{
	uint64_t start, end;
	void *base;

	if (arena_count == MAX_ARENAS)
		return false;
	size = emu_round_up(size, EMU_BLOCK_SIZE) + EMU_BLOCK_SIZE;
	base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return false;
	start = emu_round_up((uint64_t)(uintptr_t)base, EMU_BLOCK_SIZE);
	end = ((uint64_t)(uintptr_t)base + size) & ~(EMU_BLOCK_SIZE - 1);
	arenas[arena_count++] = (struct emu_range){ start, end - start };
	return emu_ranges_give(&space, start, end - start);
}

bool emu_space_contains(uint64_t address)
{
	for (unsigned i = 0; i < arena_count; i++)
		if (address - arenas[i].start < arenas[i].size)
			return true;
	return false;
}

bool emu_space_take(uint64_t size, uint64_t alignment, uint64_t wanted, uint64_t *va)
{
	uint64_t needed = size + alignment;

	if (wanted != 0 && emu_ranges_take_at(&space, wanted, size)) {
		*va = wanted;
		return true;
	}
	if (emu_ranges_take(&space, size, alignment, va))
		return true;
	if (needed < size)
		return false;
	if (!add_arena(needed > ARENA_SIZE ? needed : ARENA_SIZE) && !add_arena(needed))
		return false;
	return emu_ranges_take(&space, size, alignment, va);
}

void emu_space_give(uint64_t va, uint64_t size)
{
	emu_ranges_give(&space, va, size);
}
