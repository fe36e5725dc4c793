/* SPDX-License-Identifier: MIT */
/* One open channel: submissions, tickets, waits, and its death. */
#ifndef GDRI_COPY_DMA_QUEUE_H
#define GDRI_COPY_DMA_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copy/dma/dma.h"
#include "copy/dma/lock.h"
#include "copy/dma/port.h"

/*
 * One launch: size bytes from one address of the space to another.  Launches
 * of a channel run in order; each begins when the one before it is complete,
 * and has a ticket of its own.
 */
struct gdri_dma_launch {
	uint64_t src;
	uint64_t dst;
	uint64_t size;		/* 1 to GDRI_DMA_LAUNCH_MAX */
};

/*
 * The engine's line length has 32 bits.  A launch is also what a wait may take
 * as progress, so it must be over well within the time-out on the slowest link:
 * 256 MiB take 0.3 s at 0.8 GB/s (one lane of the third PCIe generation).
 */
#define GDRI_DMA_LAUNCH_MAX ((uint64_t)1 << 28)

/* Launches of one submission; a channel has room for no fewer. */
#define GDRI_DMA_BATCH 4

/* How launches are carried out, over what the library's way of completion asks for. */
enum gdri_dma_flag {
	GDRI_DMA_NON_PIPELINED = 1,	/* reads what the launch before it wrote */
	GDRI_DMA_FLUSH = 2		/* the bytes land at another device */
};

/*
 * What a waiter finds out about a channel.  OPEN and CLOSING are not results;
 * the others stay.
 */
enum gdri_dma_queue_state {
	GDRI_DMA_QUEUE_OPEN = 0,
	GDRI_DMA_QUEUE_CLOSING = 1	/* one thread is closing it; results are negative */
};

struct gdri_dma_channel {
	/* Constant while the channel is open. */
	struct gdri_dma_queue queue;
	enum gdri_dma_completion completion;
	uint64_t timeout_ns;
	uint32_t lines;			/* launches that may be under way; a power of two */
	volatile const uint32_t *read_first;	/* NULL, or read before the doorbell */

	/* Of submissions: under the lock. */
	_Alignas(64) struct gdri_dma_lock lock;
	_Atomic uint32_t issued;	/* the last ticket given out */
	uint32_t entries;		/* ring entries written, ever */

	/* Of waits. */
	_Alignas(64) _Atomic int state;
	_Atomic unsigned pollers;	/* threads that read the semaphore or the notifier */
};

/*
 * Opens a channel on this engine, names its copy object, and waits until the
 * channel released its first ticket, so that it is known to work.  behind_bar1: a
 * word that is read before the doorbell where that is somewhere else.
 */
int gdri_dma_channel_open(struct gdri_dma_space *space, const struct gdri_dma_engine *engine,
			  const struct gdri_dma_options *options,
			  volatile const uint32_t *behind_bar1,
			  struct gdri_dma_channel *channel);

/*
 * No copy uses it.  0: the device does not touch anything on its account any
 * more; -EOWNERDEAD: nobody knows.  Closing what died already gives the
 * outcome of that.
 */
int gdri_dma_channel_close(struct gdri_dma_channel *channel);

/*
 * Submits 1 to GDRI_DMA_BATCH launches, together, and waits before that for
 * room, without a lock.  On success launch i has ticket *first + i.  Nothing was
 * submitted when it fails; results as for wait.
 */
int gdri_dma_channel_submit(struct gdri_dma_channel *channel,
			    const struct gdri_dma_launch *launches, unsigned count,
			    unsigned flags, uint32_t *first);

/*
 * Waits until the ticket is over: 0, and what the launch wrote to host memory
 * can be read.  -EIO, -ETIMEDOUT: the channel died and is gone; -EOWNERDEAD: it
 * died, and nobody knows what it still does.
 *
 * Polls.  After 100 us it begins to offer the processor to other threads
 * (sched_yield) now and then.
 */
int gdri_dma_channel_wait(struct gdri_dma_channel *channel, uint32_t ticket);

static inline bool gdri_dma_channel_is_open(struct gdri_dma_channel *channel)
{
	return atomic_load_explicit(&channel->state, memory_order_acquire) ==
	       GDRI_DMA_QUEUE_OPEN;
}

#endif
