/* SPDX-License-Identifier: MIT */
/* The set of registered ranges: search, hold, and change. */
#include "copy/dma/hostmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"

/* The first range that ends after the address: where it is, or where it would be. */
static size_t find_place(const struct gdri_dma_hostmem *set, uintptr_t address)
{
	size_t low = 0, high = atomic_load_explicit(&set->count, memory_order_relaxed);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->range[middle]->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first range that touches [address, address + size), or NULL. */
static struct gdri_dma_range *find_range(const struct gdri_dma_hostmem *set, uintptr_t address,
					 size_t size)
{
	const size_t place = find_place(set, address);

	if (place == atomic_load_explicit(&set->count, memory_order_relaxed))
		return NULL;
	return set->range[place]->base < address + size ? set->range[place] : NULL;
}

static bool has_lost_part(const struct gdri_dma_hostmem *set, uintptr_t address, size_t size)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_relaxed);

	for (size_t i = find_place(set, address); i < count; i++) {
		if (set->range[i]->base >= address + size)
			return false;
		if (set->range[i]->lost)
			return true;
	}
	return false;
}

static bool covers(const struct gdri_dma_range *range, uintptr_t address, size_t size)
{
	return range && address >= range->base && size <= range->end - address;
}

int gdri_dma_hostmem_hold(struct gdri_dma_hostmem *set, unsigned index, const void *host,
			  size_t size, struct gdri_dma_range **range, uint64_t *address)
{
	const uintptr_t start = (uintptr_t)host;
	struct gdri_dma_range *found;
	int rc = -ENOENT;

	/* Who registers while another thread copies has no say in the road that it takes. */
	if (atomic_load_explicit(&set->count, memory_order_acquire) == 0)
		return -ENOENT;
	gdri_dma_lock_take(&set->lock);
	found = find_range(set, start, size);
	if (found && has_lost_part(set, start, size)) {
		rc = -EOWNERDEAD;
	} else if (covers(found, start, size) && !found->closed &&
		   found->mapped >> index & 1) {
		atomic_fetch_add_explicit(&found->users, 1, memory_order_relaxed);
		*address = found->view[index].address + (start - found->base);
		*range = found;
		rc = 0;
	}
	gdri_dma_lock_drop(&set->lock);
	return rc;
}

bool gdri_dma_hostmem_covers(struct gdri_dma_hostmem *set, const void *host, size_t size)
{
	struct gdri_dma_range *found;
	bool whole;

	if (atomic_load_explicit(&set->count, memory_order_acquire) == 0)
		return false;
	gdri_dma_lock_take(&set->lock);
	found = find_range(set, (uintptr_t)host, size);
	whole = covers(found, (uintptr_t)host, size) && !found->closed && !found->lost;
	gdri_dma_lock_drop(&set->lock);
	return whole;
}

int gdri_dma_hostmem_new(const void *base, size_t length, struct gdri_dma_range **range)
{
	const uintptr_t page = gdri_os_page_size();
	const uintptr_t start = (uintptr_t)base & -page;
	struct gdri_dma_range *made;
	uintptr_t end;

	if (!base || length == 0 || __builtin_add_overflow((uintptr_t)base, length, &end) ||
	    end > -page)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->base = start;
	made->end = (end + page - 1) & -page;
	made->closed = true;
	*range = made;
	return 0;
}

static int grow_set(struct gdri_dma_hostmem *set)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_relaxed);
	const size_t capacity = set->capacity ? 2 * set->capacity : 16;
	struct gdri_dma_range **old = set->range;
	struct gdri_dma_range **grown = malloc(capacity * sizeof(struct gdri_dma_range *));

	if (!grown)
		return -ENOMEM;
	if (count > 0)
		memcpy(grown, old, count * sizeof(struct gdri_dma_range *));
	gdri_dma_lock_take(&set->lock);
	set->range = grown;
	gdri_dma_lock_drop(&set->lock);
	set->capacity = capacity;
	free(old);
	return 0;
}

int gdri_dma_hostmem_add(struct gdri_dma_hostmem *set, struct gdri_dma_range *range)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_relaxed);
	size_t place;
	int rc;

	if (find_range(set, range->base, range->end - range->base))
		return -EEXIST;
	if (count == set->capacity) {
		rc = grow_set(set);
		if (rc != 0)
			return rc;
	}
	gdri_dma_lock_take(&set->lock);
	place = find_place(set, range->base);
	memmove(set->range + place + 1, set->range + place,
		(count - place) * sizeof(struct gdri_dma_range *));
	set->range[place] = range;
	atomic_store_explicit(&set->count, count + 1, memory_order_release);
	gdri_dma_lock_drop(&set->lock);
	return 0;
}

void gdri_dma_hostmem_remove(struct gdri_dma_hostmem *set, const struct gdri_dma_range *range)
{
	const size_t count = atomic_load_explicit(&set->count, memory_order_relaxed) - 1;
	size_t place;

	gdri_dma_lock_take(&set->lock);
	place = find_place(set, range->base);
	memmove(set->range + place, set->range + place + 1,
		(count - place) * sizeof(struct gdri_dma_range *));
	atomic_store_explicit(&set->count, count, memory_order_release);
	gdri_dma_lock_drop(&set->lock);
}

void gdri_dma_hostmem_open(struct gdri_dma_hostmem *set, struct gdri_dma_range *range)
{
	gdri_dma_lock_take(&set->lock);
	range->closed = false;
	gdri_dma_lock_drop(&set->lock);
}

struct gdri_dma_range *gdri_dma_hostmem_close(struct gdri_dma_hostmem *set, const void *name)
{
	struct gdri_dma_range *range = find_range(set, (uintptr_t)name, 1);

	if (!name || !range || range->name != name || range->closed)
		return NULL;
	gdri_dma_lock_take(&set->lock);
	range->closed = true;
	gdri_dma_lock_drop(&set->lock);
	return range;
}

void gdri_dma_hostmem_forbid_fork(const struct gdri_dma_range *range, const struct gdri_log *log)
{
	if (gdri_os_dontfork((void *)range->base, range->end - range->base) != 0)
		gdri_debug(log, "DMA: children inherit the registered memory at %p",
			   (void *)range->base);
}

void gdri_dma_hostmem_allow_fork(const struct gdri_dma_range *range)
{
	const int saved = errno;

	madvise((void *)range->base, range->end - range->base, MADV_DOFORK);
	errno = saved;
}

int gdri_dma_hostmem_map(struct gdri_dma_hostmem *set, struct gdri_dma_range *range,
			 unsigned index, struct gdri_dma_space *space)
{
	struct gdri_dma_view view;
	int rc;

	rc = space->port->ops->map_host(space, (void *)range->base, range->end - range->base,
					&view);
	if (rc != 0)
		return rc;
	gdri_dma_lock_take(&set->lock);
	range->view[index] = view;
	range->mapped |= UINT32_C(1) << index;
	gdri_dma_lock_drop(&set->lock);
	return 0;
}

int gdri_dma_hostmem_unmap(struct gdri_dma_hostmem *set, struct gdri_dma_range *range,
			   unsigned index, struct gdri_dma_space *space)
{
	bool mapped;

	gdri_dma_lock_take(&set->lock);
	mapped = range->mapped >> index & 1;
	range->mapped &= ~(UINT32_C(1) << index);
	gdri_dma_lock_drop(&set->lock);
	return mapped ? space->port->ops->unmap(space, &range->view[index]) : 0;
}

void gdri_dma_hostmem_lose(struct gdri_dma_hostmem *set, unsigned index)
{
	gdri_dma_lock_take(&set->lock);
	for (size_t i = 0; i < atomic_load(&set->count); i++)
		if (set->range[i]->name && set->range[i]->mapped >> index & 1)
			set->range[i]->lost = true;
	gdri_dma_lock_drop(&set->lock);
}
