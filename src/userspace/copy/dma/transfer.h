/* SPDX-License-Identifier: MIT */
/* Steps that every kind of copy is made of. */
#ifndef GDRI_COPY_DMA_TRANSFER_H
#define GDRI_COPY_DMA_TRANSFER_H

#include "copy/dma/device.h"

/* Chunks that one copy may hold: an upper limit of options.depth. */
#define GDRI_DMA_DEPTH 8

/* Submit and wait on one way of a device; a death of the channel is noted. */
int gdri_dma_run(struct gdri_dma_device *device, enum gdri_dma_way way,
		 struct gdri_dma_target *target, const struct gdri_dma_launch *launches,
		 unsigned count, unsigned flags, uint32_t *first);
int gdri_dma_wait(struct gdri_dma_device *device, enum gdri_dma_way way,
		  struct gdri_dma_target *target, uint32_t ticket);

/* Between two addresses of the device's space, and waits. */
int gdri_dma_copy_straight(struct gdri_dma_device *device, enum gdri_dma_way way,
			   struct gdri_dma_target *target, uint64_t dst, uint64_t src,
			   uint64_t size, unsigned flags);

/*
 * A chunk of bounce memory.  A copy that holds none may wait for one, since
 * whoever holds some goes on without more; one that holds some must not, and
 * takes -EAGAIN for an answer.
 */
int gdri_dma_take_chunk(struct gdri_dma_device *device, bool may_wait, int *chunk);

#endif
