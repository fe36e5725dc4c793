/* SPDX-License-Identifier: MIT */
/* How the CPU empties bounce memory when what it copies does not fit its caches. */
#ifndef GDRI_COPY_DMA_STREAM_H
#define GDRI_COPY_DMA_STREAM_H

#include <stddef.h>

/*
 * memcpy for the parts of a large copy: the destination is not fetched before
 * it is overwritten, and the source is asked for ahead of time.  Both are
 * needed: on a Xeon with an H200, 16 MiB took 1,545 us with plain stores, 2,210 with
 * streaming ones and 1,230 with streaming ones and prefetches; 1 MiB, which
 * fits, took 57 us with plain stores and 93 with this (tests/device/dma_tune).
 *
 * Ordinary memory on both sides.  The stores are complete for other threads
 * when it returns.  Plain memcpy where the CPU has no such stores.
 */
void gdri_dma_stream_copy(void *dst, const void *src, size_t size);

/* From this size of a whole copy on it is the faster way. */
#define GDRI_DMA_STREAM_FROM ((size_t)2 << 20)

#endif
