/* SPDX-License-Identifier: MIT */
/* What the parts of the DMA engine share: the session's devices, their queues, and targets. */
#ifndef GDRI_COPY_DMA_DEVICE_H
#define GDRI_COPY_DMA_DEVICE_H

#include <errno.h>
#include <pthread.h>
#include <sys/types.h>

#include "copy/dma/bounce.h"
#include "copy/dma/hostmem.h"
#include "copy/dma/queue.h"

/* What a channel is for; one may serve several. */
enum gdri_dma_way { GDRI_DMA_WAY_TO, GDRI_DMA_WAY_FROM, GDRI_DMA_WAY_BETWEEN, GDRI_DMA_WAYS };

/* Video memory of our own on every device: for calibration, and overlapping moves. */
#define GDRI_DMA_SCRATCH_BYTES ((uint64_t)1 << 20)

struct gdri_dma_device {
	struct gdri_dma *dma;
	unsigned number;	/* the port's */
	unsigned index;		/* ours: of views */
	struct gdri_dma_space *space;
	struct gdri_dma_channel *way[GDRI_DMA_WAYS];
	struct gdri_dma_channel *channels;
	unsigned channel_count;
	struct gdri_dma_bounce bounce;
	struct gdri_dma_range *bounce_range;
	uint64_t bounce_address;	/* of the first chunk, in the device's space */
	void *scratch;		/* the CPU's mapping, through BAR1 on NVIDIA's devices */
	uint64_t scratch_address;
	struct gdri_dma_calibration calibration;
	/*
	 * 0: ready.  Otherwise what a new copy or attach gets: why the device has no
	 * DMA road, or -ENODEV after the death of a channel.
	 */
	_Atomic int refused;
	_Atomic bool lost;	/* a channel of it may still run */
};

struct gdri_dma {
	struct gdri_dma_port *port;
	struct gdri_dma_options options;	/* defaults filled in */
	pid_t owner;
	pthread_mutex_t lock;	/* attach, detach, register, unregister; never a copy */
	struct gdri_dma_hostmem hostmem;
	struct gdri_dma_device *devices[GDRI_DMA_MAX_DEVICES];
	unsigned device_count;
};

/* A target's memory as another device sees it; made by the first copy that wants it. */
enum { GDRI_DMA_PEER_UNKNOWN, GDRI_DMA_PEER_MAPPED, GDRI_DMA_PEER_NONE };

struct gdri_dma_peer {
	_Atomic int state;
	struct gdri_dma_view view;
};

struct gdri_dma_target {
	struct gdri_dma_device *device;
	struct gdri_dma_memory memory;
	struct gdri_dma_view view;
	_Atomic bool lost;	/* a launch that writes to it may still run */
	struct gdri_dma_peer peer[GDRI_DMA_MAX_DEVICES];
};

/*
 * Opens everything of a device.  It is never NULL on 0; one that is refused
 * has given everything back, or keeps it for ever where it is lost.  The
 * mutex is held.
 */
int gdri_dma_device_open(struct gdri_dma *dma, unsigned number, unsigned index,
			 struct gdri_dma_device **device);
int gdri_dma_device_close(struct gdri_dma_device *device);	/* and frees it, unless lost */

/* Measures a device that was just opened; its first copies. */
int gdri_dma_device_calibrate(struct gdri_dma_device *device);

/*
 * What a copy makes of a failed submission or wait: keeps the device and, if the
 * channel may still run, the target that it writes to (or NULL) out of use.
 * Gives rc back.
 */
int gdri_dma_device_died(struct gdri_dma_device *device, struct gdri_dma_target *written, int rc);

/* Whether a copy may start. */
static inline int gdri_dma_target_check(const struct gdri_dma_target *target)
{
	if (__builtin_expect(atomic_load_explicit(&target->lost, memory_order_relaxed), 0))
		return -EOWNERDEAD;
	return atomic_load_explicit(&target->device->refused, memory_order_acquire);
}

/*
 * Makes what this thread stored through mappings of a device precede what
 * another device does to its memory: reads a word through the same BAR, behind
 * the posted stores.
 */
void gdri_dma_device_settle(const struct gdri_dma_device *device);

#endif
