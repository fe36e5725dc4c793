/* SPDX-License-Identifier: MIT */
/* Host memory that engines reach directly: what is registered, and where each device sees it. */
#ifndef GDRI_COPY_DMA_HOSTMEM_H
#define GDRI_COPY_DMA_HOSTMEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copy/dma/lock.h"
#include "copy/dma/port.h"

#define GDRI_DMA_MAX_DEVICES 32

/*
 * Whole pages.  A copy holds a range by its count of users.  view[i] is for
 * device i where bit i of mapped is set.
 */
struct gdri_dma_range {
	uintptr_t base;
	uintptr_t end;
	const void *name;	/* the address that register was given; NULL: bounce memory */
	bool closed;		/* is being registered or unregistered: no new users */
	bool lost;		/* a channel that knew it may still write to it */
	uint32_t mapped;
	_Atomic unsigned users;
	struct gdri_dma_view view[GDRI_DMA_MAX_DEVICES];
};

/*
 * Disjoint ranges, sorted by address.  Writers hold the mutex of the gdri_dma
 * throughout, and the lock for the change itself; searching copies take the
 * lock alone.
 */
struct gdri_dma_hostmem {
	struct gdri_dma_lock lock;
	_Atomic size_t count;
	struct gdri_dma_range **range;
	size_t capacity;
};

/*
 * Finds the range that holds all of [host, host + size) and that device
 * `index` sees, and holds it until release.  -ENOENT: goes through bounce
 * memory.  -EOWNERDEAD: some of it is in a lost range.
 */
int gdri_dma_hostmem_hold(struct gdri_dma_hostmem *set, unsigned index, const void *host,
			  size_t size, struct gdri_dma_range **range, uint64_t *address);

static inline void gdri_dma_hostmem_release(struct gdri_dma_range *range)
{
	if (range)
		atomic_fetch_sub_explicit(&range->users, 1, memory_order_release);
}

bool gdri_dma_hostmem_covers(struct gdri_dma_hostmem *set, const void *host, size_t size);

/* The rest is for those who hold the mutex. */

/* The whole pages around [base, base + length), closed, in no set yet.  -EINVAL, -ENOMEM. */
int gdri_dma_hostmem_new(const void *base, size_t length, struct gdri_dma_range **range);

/* -EEXIST: shares a page with another; -ENOMEM. */
int gdri_dma_hostmem_add(struct gdri_dma_hostmem *set, struct gdri_dma_range *range);
void gdri_dma_hostmem_remove(struct gdri_dma_hostmem *set, const struct gdri_dma_range *range);

/* Lets users in, or no new ones; the latter gives NULL when no open range has this name. */
void gdri_dma_hostmem_open(struct gdri_dma_hostmem *set, struct gdri_dma_range *range);
struct gdri_dma_range *gdri_dma_hostmem_close(struct gdri_dma_hostmem *set, const void *name);

/* Shows a range to a device, or takes it away; the device's space is open. */
int gdri_dma_hostmem_map(struct gdri_dma_hostmem *set, struct gdri_dma_range *range,
			 unsigned index, struct gdri_dma_space *space);
int gdri_dma_hostmem_unmap(struct gdri_dma_hostmem *set, struct gdri_dma_range *range,
			   unsigned index, struct gdri_dma_space *space);

/*
 * Pages that a forked child does not inherit (decision 3).  Memory that the
 * system cannot keep out of a child is logged and used all the same: the kernel
 * copies pinned pages for the child, not for the parent.
 */
void gdri_dma_hostmem_forbid_fork(const struct gdri_dma_range *range, const struct gdri_log *log);
void gdri_dma_hostmem_allow_fork(const struct gdri_dma_range *range);

/* A channel of this device was lost: what it was shown is never used again. */
void gdri_dma_hostmem_lose(struct gdri_dma_hostmem *set, unsigned index);

#endif
