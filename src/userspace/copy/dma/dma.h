/* SPDX-License-Identifier: MIT */
/* The DMA engine of one session: copies by the device's copy engines, without CUDA. */
#ifndef GDRI_COPY_DMA_DMA_H
#define GDRI_COPY_DMA_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copy/dma/port.h"

struct gdri_dma;		/* all devices of one session */
struct gdri_dma_target;		/* a pinned range, attached to it */

/*
 * How the CPU learns that a copy is complete.  HOST is what the library uses:
 * the host engine releases the semaphore after waiting for the copy engine to
 * be idle.  The others are for tests and measurements.
 */
enum gdri_dma_completion {
	GDRI_DMA_BY_HOST,
	GDRI_DMA_BY_ENGINE_FLUSHED,
	GDRI_DMA_BY_ENGINE_UNSAFE	/* delivers stale bytes: only to show that tests see it */
};

/* How the CPU moves bytes that do not overlap; a mapping is one of the two sides, or neither. */
typedef void (*gdri_dma_copy_fn)(void *dst, const void *src, size_t size);

/* Zeroes are the defaults, but for engine. */
struct gdri_dma_options {
	enum gdri_dma_completion completion;
	int engine;			/* n of COPYn for every way, or -1: choose */
	uint64_t timeout_ns;		/* for one wait without progress; 0: 2 seconds */

	/*
	 * Devices whose doorbell is not behind BAR1 read a word through BAR1 before
	 * it, so that what was stored through mappings is there first.
	 */
	bool read_before_submit;

	/*
	 * Measure at the first attach (1 ms), with the CPU's routines for mappings
	 * of this session; otherwise calibrations hold the figures of an H200.
	 */
	bool calibrate;
	gdri_dma_copy_fn to_mapping, from_mapping;	/* NULL: not measured */

	/* Pageable memory; the sizes are tuned by measurements alone. */
	gdri_dma_copy_fn fill, empty;	/* into and out of bounce memory; NULL: memcpy */
	gdri_dma_copy_fn empty_large;	/* out of it in copies beyond the caches; NULL: stream.h's */
	size_t pin_from;		/* reads of this size pin their memory; 0: 4 MiB; SIZE_MAX: none */
	size_t pin_window;		/* in windows of so many bytes; 0: 2 MiB */
	size_t bounce_bytes;		/* per device; 0: 1 MiB */
	size_t chunk_bytes;		/* the largest piece; 0: 64 KiB */
	size_t read_edge, write_edge;	/* the first piece of a read, the last of a write */
	unsigned depth;			/* pieces of one copy under way; 0: 4 */

	/* For tests. */
	uint32_t first_ticket;
	uint64_t launch_bytes;		/* longest launch */
};

/* Makes nothing on any device yet; port must outlive the result. */
int gdri_dma_create(struct gdri_dma_port *port, const struct gdri_dma_options *options,
		    struct gdri_dma **dma);

/* No copy runs and no target is attached. */
int gdri_dma_destroy(struct gdri_dma *dma);

/*
 * Makes memory reachable by the engines of its device.  The first one of a
 * device opens its space, queues and bounce memory and takes milliseconds.
 * -EOPNOTSUPP, -EBUSY: this device has no DMA road; it is asked once and the
 * answer is kept.
 */
int gdri_dma_attach(struct gdri_dma *dma, const struct gdri_dma_memory *memory,
		    struct gdri_dma_target **target);
void gdri_dma_detach(struct gdri_dma_target *target);	/* no copy uses it */

/*
 * Copies.  Each returns when every byte has arrived: at the device, where the
 * next read by any road sees it, or in host memory.  Any alignment and length;
 * offset + size lies in the target.  What the calling thread stored through a
 * mapping of the same device before the call is seen by the copy.
 *
 * From any thread.  A queue's lock is held for the submission alone, never
 * across a wait.  No system call but those that touch fresh pages.
 *
 * -EIO, -ETIMEDOUT: the channel died and is confirmed to be gone, nothing
 * touches the memory any more, and the caller may take another road for the
 * whole range.  -ENODEV: the device has no channel any more, from the start.
 * -EBUSY: no bounce memory became free within twice the time-out; the rest as for -EIO.
 * -EOWNERDEAD: the channel died and could not be confirmed to be gone; the range is
 * in an unknown state for ever, and the caller must report an error.
 */
int gdri_dma_to_device(struct gdri_dma_target *target, uint64_t offset, const void *host,
		       size_t size);
int gdri_dma_from_device(struct gdri_dma_target *target, uint64_t offset, void *host, size_t size);

/*
 * Between two targets, of one device or of two.  Overlapping ranges of one
 * memory object behave like memmove.  *route: the way it took.  STAGED forces the
 * way through host memory, PEER forbids it (-EOPNOTSUPP where the devices do not
 * reach each other).  The first copy of a target to or from a peer maps it
 * there, with system calls.  A channel's death in the middle of an overlapping
 * copy is always -EOWNERDEAD, since some of the source is not there any more.
 */
enum gdri_dma_route { GDRI_DMA_LOCAL, GDRI_DMA_PEER, GDRI_DMA_STAGED };
enum gdri_dma_route_wish { GDRI_DMA_ROUTE_AUTO, GDRI_DMA_ROUTE_PEER, GDRI_DMA_ROUTE_STAGED };
int gdri_dma_between(struct gdri_dma_target *dst, uint64_t dst_offset,
		     struct gdri_dma_target *src, uint64_t src_offset, size_t size,
		     enum gdri_dma_route_wish wish, enum gdri_dma_route *route);

/*
 * Host memory that copies use directly from now on: the whole pages around
 * [base, base + length), pinned for every device that has a target now or later,
 * until unregister, which waits for copies that use them.  No two ranges share
 * a page (-EEXIST).  A copy whose host side is only partly registered goes
 * through bounce memory.  A forked child does not have these pages, and calls
 * in a child are -EACCES.
 */
int gdri_dma_register(struct gdri_dma *dma, void *base, size_t length);

/* -ENOENT.  -EOWNERDEAD: a channel that knew them was lost; they stay pinned. */
int gdri_dma_unregister(struct gdri_dma *dma, void *base);

/* Whether the whole range is registered: decides the crossover. */
bool gdri_dma_is_registered(struct gdri_dma *dma, const void *host, size_t size);

/*
 * Times of this device, measured on memory of our own when its first target
 * was attached.  All in nanoseconds and bytes per second.
 */
struct gdri_dma_calibration {
	uint64_t to_device_ns, from_device_ns;	/* of a 64-byte copy */
	uint64_t to_device_rate, from_device_rate;
	uint64_t bounce_to_rate, bounce_from_rate;
	size_t crossover[2][2];	/* [0 to, 1 from device][1: registered]; SIZE_MAX: never */
};
void gdri_dma_get_calibration(const struct gdri_dma_target *target,
			      struct gdri_dma_calibration *calibration);

/* For gdrcopy_info and tests: one line on the queues of a target's device. */
void gdri_dma_describe(const struct gdri_dma_target *target, char *text, size_t size);

#endif
