/* SPDX-License-Identifier: MIT */
/* Large reads straight into pageable memory, which is pinned window by window. */
#ifndef GDRI_COPY_DMA_WINDOW_H
#define GDRI_COPY_DMA_WINDOW_H

#include "copy/dma/transfer.h"

/*
 * Reads whole pages from a device address.  While the engine fills one window
 * the next is being pinned; each is unpinned as soon as it is full.  *done: the
 * bytes that have arrived, all of size unless the driver would not pin a window
 * (memory of a device, a limit), which is no error: the rest takes another way.
 *
 * Pinning costs system calls, 60 us for each MiB, which a CPU that copies out of
 * bounce memory needs as well and which do not pass the data through its caches.
 */
int gdri_dma_read_windows(struct gdri_dma_target *target, uint64_t address, uint8_t *host,
			  size_t size, size_t *done);

#endif
