/* SPDX-License-Identifier: MIT */
/* A copy-engine channel as this library drives it, and what it needs from the machine below. */
#ifndef GDRI_COPY_DMA_PORT_H
#define GDRI_COPY_DMA_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/log.h"

/*
 * A port is a machine with copy engines: NVIDIA's resource manager
 * (port_rm.c) or the emulated driver (port_emu.c).  Everything above this
 * header is the same code on both.
 *
 * Results are 0 or a negative errno; outputs are written on success alone; the
 * function that decides an error logs one line, at debug level where the
 * caller has another road.  Calls on one space may come from several threads.
 * No call is made on the way of a copy: those touch the queue's memory alone.
 */
struct gdri_dma_port_ops;

struct gdri_dma_port {
	const struct gdri_dma_port_ops *ops;
	const struct gdri_log *log;
};

/* A GPU address space of our own on one device, with the queues in it. */
struct gdri_dma_space {
	struct gdri_dma_port *port;
};

/* Bytes of a memory object of some device; from the range that core attached to a pin. */
struct gdri_dma_memory {
	unsigned device;	/* the port's number for the device that has the memory */
	const void *object;	/* the port's: struct gdri_rm_range or gdrcopy_emu_range */
	uint64_t offset;	/* of the first byte in that object */
	uint64_t length;
	uint64_t va;		/* CUDA's address of it; 0: unknown.  Tells what overlaps. */
};

/* One view of memory in a space: the engines read and write it at address. */
struct gdri_dma_view {
	uint64_t address;
	uint64_t length;
	uint64_t priv[4];	/* the port's, to undo it */
};

/* A copy engine of a device. */
struct gdri_dma_engine {
	unsigned number;	/* n of COPYn */
	unsigned width;		/* physical engines behind it; 0: unknown */
	bool shared;		/* its physical engines serve another COPYn as well */
};
#define GDRI_DMA_MAX_ENGINES 32

/*
 * One channel.  ring, push, put and get lie in memory that the device reads;
 * all of it is write-combined or uncached for the CPU and must only be stored
 * to, except get.  semaphore and notifier are host memory that the device
 * writes.  The members are constant while the queue is open.
 */
struct gdri_dma_queue {
	struct gdri_dma_space *space;
	volatile uint64_t *ring;	/* entries: format.h */
	uint32_t ring_entries;		/* a power of two */
	volatile uint32_t *push;	/* method words */
	uint64_t push_address;		/* of push[0] for the device */
	uint32_t push_words;		/* a power of two */
	volatile uint32_t *put;		/* GP_PUT of the channel's USERD */
	volatile const uint32_t *get;	/* GP_GET */
	volatile uint32_t *doorbell;	/* takes token */
	uint32_t token;
	bool doorbell_apart;		/* not behind BAR1, so stores through BAR1 may be later */
	void (*knock)(struct gdri_dma_queue *queue);	/* instead of the doorbell; NULL: none */
	uint32_t copy_class;		/* object class to name with SET_OBJECT */
	volatile const uint32_t *semaphore;	/* last ticket that was released */
	uint64_t semaphore_address;
	volatile const uint16_t *notifier;	/* not 0: the channel's error (an Xid number) */
	struct gdri_dma_engine engine;
	void *priv;
};

struct gdri_dma_port_ops {
	const char *name;

	/*
	 * A space on the device.  -EOPNOTSUPP: this device, driver or mode (vGPU,
	 * MIG, confidential computing, an unknown generation) has no road here.
	 */
	int (*open_space)(struct gdri_dma_port *port, unsigned device,
			  struct gdri_dma_space **space);

	/* After its queues and views. */
	int (*close_space)(struct gdri_dma_space *space);

	/* Number of engines written, at most GDRI_DMA_MAX_ENGINES, or a negative errno. */
	int (*list_engines)(struct gdri_dma_space *space, struct gdri_dma_engine *engines);

	/* -EBUSY: no free channel. */
	int (*open_queue)(struct gdri_dma_space *space, const struct gdri_dma_engine *engine,
			  struct gdri_dma_queue *queue);

	/*
	 * Stops and frees the channel.  0: the device cannot touch anything on its
	 * account any more.  Anything else: nobody knows, and the memory that it
	 * was given must never be used for something else.
	 */
	int (*close_queue)(struct gdri_dma_queue *queue);

	/*
	 * Makes a device's memory visible in a space.  The memory of another
	 * device than the space's needs a peer link: -EOPNOTSUPP without one.
	 */
	int (*map_memory)(struct gdri_dma_space *space, const struct gdri_dma_memory *memory,
			  struct gdri_dma_view *view);

	/* Pins whole pages of host memory and makes them visible; base and length in pages. */
	int (*map_host)(struct gdri_dma_space *space, void *base, size_t length,
			struct gdri_dma_view *view);

	/* Of either kind; no queue uses it any more. */
	int (*unmap)(struct gdri_dma_space *space, struct gdri_dma_view *view);

	/*
	 * Video memory of our own that both sides see, for calibration: at least
	 * length bytes, mapped for the CPU at *base.  Lives as long as the space.
	 */
	int (*scratch)(struct gdri_dma_space *space, size_t length, void **base,
		       uint64_t *address);
};

#endif
