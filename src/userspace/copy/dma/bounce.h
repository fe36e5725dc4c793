/* SPDX-License-Identifier: MIT */
/* Host memory between the engines and pageable memory, in chunks that copies take and give back. */
#ifndef GDRI_COPY_DMA_BOUNCE_H
#define GDRI_COPY_DMA_BOUNCE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A copy that holds a chunk never waits for another one, so there is always
 * somebody who can go on.  The lowest free chunk goes first: it is the likeliest to be
 * in the cache.
 */
struct gdri_dma_bounce {
	uint8_t *base;
	size_t chunk;		/* bytes of one */
	size_t length;		/* of the mapping */
	_Alignas(64) _Atomic uint64_t free;	/* one bit a chunk */
};

#define GDRI_DMA_MAX_CHUNKS 64

/* bytes / chunk chunks, 1 to GDRI_DMA_MAX_CHUNKS; both are multiples of the page size. */
int gdri_dma_bounce_create(struct gdri_dma_bounce *bounce, size_t bytes, size_t chunk);
void gdri_dma_bounce_destroy(struct gdri_dma_bounce *bounce);

/* The number of a chunk, now the caller's, or -1. */
static inline int gdri_dma_bounce_take(struct gdri_dma_bounce *bounce)
{
	uint64_t free = atomic_load_explicit(&bounce->free, memory_order_relaxed);

	while (free != 0)
		if (atomic_compare_exchange_weak_explicit(&bounce->free, &free, free & (free - 1),
							  memory_order_acquire,
							  memory_order_relaxed))
			return __builtin_ctzll(free);
	return -1;
}

static inline void gdri_dma_bounce_give(struct gdri_dma_bounce *bounce, int chunk)
{
	atomic_fetch_or_explicit(&bounce->free, UINT64_C(1) << chunk, memory_order_release);
}

static inline uint8_t *gdri_dma_bounce_at(const struct gdri_dma_bounce *bounce, int chunk)
{
	return bounce->base + (size_t)chunk * bounce->chunk;
}

#endif
