/* SPDX-License-Identifier: MIT */
/* A set of disjoint address ranges that copies may search without a lock. */
#include "core/intervals.h"

#include <errno.h>
#include <sys/mman.h>

#define CAPACITY ((size_t)1 << 20)

int gdri_core_intervals_init(struct gdri_intervals *set)
{
	/* RLIMIT_AS may forbid the large one; fewer ranges serve as well. */
	for (set->capacity = CAPACITY; set->capacity >= 1024; set->capacity /= 4) {
		void *memory = mmap(NULL, set->capacity * sizeof(set->entry[0]),
				    PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory != MAP_FAILED) {
			set->entry = memory;
			return 0;
		}
	}
	return -ENOMEM;
}

void gdri_core_intervals_destroy(struct gdri_intervals *set)
{
	if (set->entry)
		munmap(set->entry, set->capacity * sizeof(set->entry[0]));
}

static uintptr_t base_at(const struct gdri_intervals *set, size_t index)
{
	return atomic_load_explicit(&set->entry[index].base, memory_order_acquire);
}

static uintptr_t end_at(const struct gdri_intervals *set, size_t index)
{
	return atomic_load_explicit(&set->entry[index].end, memory_order_acquire);
}

/* Release stores: whoever sees one of them sees the odd sequence before it. */
static void put(struct gdri_intervals *set, size_t index, uintptr_t base, uintptr_t end)
{
	atomic_store_explicit(&set->entry[index].base, base, memory_order_release);
	atomic_store_explicit(&set->entry[index].end, end, memory_order_release);
}

/* The first index whose range begins at or below address; count if there is none. */
static size_t find(const struct gdri_intervals *set, size_t count, uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (base_at(set, middle) <= address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void begin_change(struct gdri_intervals *set)
{
	atomic_fetch_add_explicit(&set->sequence, 1, memory_order_relaxed);
}

static void end_change(struct gdri_intervals *set, size_t count)
{
	atomic_store_explicit(&set->count, count, memory_order_release);
	atomic_fetch_add_explicit(&set->sequence, 1, memory_order_release);
}

int gdri_core_intervals_add(struct gdri_intervals *set, const void *base, size_t length)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_relaxed);
	const uintptr_t start = (uintptr_t)base;
	const size_t index = find(set, count, start);

	if (count == set->capacity)
		return -ENOMEM;
	begin_change(set);
	for (size_t i = count; i > index; i--)
		put(set, i, base_at(set, i - 1), end_at(set, i - 1));
	put(set, index, start, start + length);
	end_change(set, count + 1);
	return 0;
}

void gdri_core_intervals_remove(struct gdri_intervals *set, const void *base)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_relaxed);
	const size_t index = find(set, count, (uintptr_t)base);

	if (index == count || base_at(set, index) != (uintptr_t)base)
		return;
	begin_change(set);
	for (size_t i = index; i + 1 < count; i++)
		put(set, i, base_at(set, i + 1), end_at(set, i + 1));
	end_change(set, count - 1);
}

/* The only range that can meet [first, last] is the highest that begins at or below last. */
static bool look(const struct gdri_intervals *set, uintptr_t first, uintptr_t last)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_acquire);
	const size_t index = find(set, count, last);

	return index < count && end_at(set, index) > first;
}

bool gdri_core_intervals_meet(const struct gdri_intervals *set, const void *address, size_t size)
{
	const uintptr_t first = (uintptr_t)address;

	for (;;) {
		const uint32_t before = atomic_load_explicit(&set->sequence,
							     memory_order_acquire);
		const bool met = size > 0 && look(set, first, first + (size - 1));

		if (!(before & 1) &&
		    atomic_load_explicit(&set->sequence, memory_order_relaxed) == before)
			return met;
	}
}
