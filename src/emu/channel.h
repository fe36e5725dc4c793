/* SPDX-License-Identifier: MIT */
/* The model of a copy-engine channel: address spaces, queues and the engine behind them. */
#ifndef EMU_CHANNEL_H
#define EMU_CHANNEL_H

#include <pthread.h>

#include "gdrcopy_emu.h"
#include "memory.h"

/*
 * A channel reads ring entries, each of which names method words in a push
 * buffer.  The host engine executes semaphores, the copy engine moves bytes.
 * The model refuses whatever it does not know for certain, as an Xid: the
 * notifier gets the error's number and the channel does nothing any more.
 *
 * The numbers here and in channel_decode.c are the model's own, read from the
 * class headers of NVIDIA's open kernel modules (clc86f.h, clc8b5.h,
 * nverror.h), so that a wrong number in the library does not meet itself.
 */
enum {
	EMU_CHANNEL_COPY_CLASS = 0xc8b5,	/* HOPPER_DMA_COPY_A */
	EMU_CHANNEL_ENGINES = 5,

	EMU_CHANNEL_MMU_FAULT = 31,		/* ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT */
	EMU_CHANNEL_HOST_ERROR = 32		/* ROBUST_CHANNEL_PBDMA_ERROR */
};

/* Views.  Addresses are not used twice, and nothing lies next to a view. */
struct emu_view {
	uint64_t address, length;
	uint8_t *cpu;
	struct emu_block *block;	/* referenced; NULL: host memory */
	bool own;			/* the space's or a queue's; unmap() does not know it */
};

/*
 * lock guards the views and is held (shared) while an engine touches what they
 * show, so that after unmap() nothing does.  It is never held together with
 * the driver's lock.
 */
struct gdrcopy_emu_space {
	CUdevice device;
	pthread_rwlock_t lock;
	struct emu_view *views;		/* sorted by address */
	size_t count, capacity;
	uint64_t next_low, next_high;	/* addresses that are still unused */
	unsigned queues;		/* open or lost; guarded by the driver's lock */
};

/* Where a view may lie: a ring entry has 40 bits of address. */
enum emu_view_place { EMU_VIEW_LOW, EMU_VIEW_HIGH };

/*
 * Adds a view of cpu; takes the caller's reference of block, and gives it back
 * in emu_view_remove().  The address agrees with skew in its last 16 bits.
 */
int emu_view_add(struct gdrcopy_emu_space *space, const struct emu_view *view,
		 enum emu_view_place place, uint64_t skew, uint64_t *address);
bool emu_view_remove(struct gdrcopy_emu_space *space, uint64_t address, bool own);

/* With the space's lock held, shared: the bytes at a device address, or NULL: a fault. */
void *emu_view_translate(const struct gdrcopy_emu_space *space, uint64_t address,
			 uint64_t length);

/* One launch, or what is left of it. */
struct emu_launch {
	uint64_t source, destination;
	uint64_t length;
};

#define EMU_CHANNEL_PENDING 32

/* What the methods of the host and of the copy engine have set so far. */
struct emu_channel_state {
	bool has_object;
	unsigned written;		/* parameters of the copy engine, one bit each */
	uint32_t host[5];		/* SEM_ADDR_LO to SEM_PAYLOAD_HI */
	uint32_t semaphore[3];		/* SET_SEMAPHORE_A, _B, _PAYLOAD */
	uint32_t offset[4];		/* OFFSET_IN_UPPER, _LOWER, OFFSET_OUT_UPPER, _LOWER */
	uint32_t line[2];		/* LINE_LENGTH_IN, LINE_COUNT */
};

/* What knock() saw of a ring entry; the channel must find the same later. */
struct emu_channel_slot {
	uint64_t entry;
	uint64_t sum;
};

struct emu_channel {
	struct gdrcopy_emu_queue queue;	/* what the program sees; first */
	struct emu_channel *next;	/* lost ones, kept for ever */
	struct gdrcopy_emu_space *space;
	unsigned engine;
	struct emu_block *block;	/* ring, USERD, push buffer */
	uint8_t *host;			/* a page: semaphore, notifier */
	uint64_t push_address, host_address;
	uint64_t *ring;
	uint32_t ring_entries, push_words;
	uint32_t *get;
	uint16_t *notifier;
	struct emu_channel_slot *slots;	/* one for each ring entry */

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asleep;			/* the thread waits for changed */
	bool stop;			/* close: the thread ends */
	bool lost;			/* close was not confirmed: what hung goes on */
	uint64_t published;		/* entries that knock() has seen */
	uint64_t consumed;		/* entries that the thread has taken */
	uint32_t last_put;
	bool dead;			/* the notifier says why */

	/* The thread's alone. */
	struct emu_channel_state state;
	uint64_t submission;		/* number of the entry that is being executed */
	bool misbehaved;
	bool stale;			/* a semaphore went ahead of pending bytes */
	uint64_t random;
	uint32_t *words;		/* of that entry */
	unsigned pending_count;
	struct emu_launch pending[EMU_CHANNEL_PENDING];
};

/* channel_queue.c */
void emu_channel_die(struct emu_channel *channel, unsigned error);
bool emu_channel_stopped(struct emu_channel *channel);
/* Waits that long, or less when the channel is closed. */
void emu_channel_pause(struct emu_channel *channel, uint64_t ns);
/* Waits until the channel is closed: true when it must go on nevertheless. */
bool emu_channel_hang(struct emu_channel *channel);

/*
 * channel_decode.c.  Sums up the words of an entry (0 where it names none), so
 * that a later change is noticed; executes it.  false: the channel died or was
 * closed.
 */
uint64_t emu_channel_sum(struct emu_channel *channel, uint64_t entry);
bool emu_channel_execute(struct emu_channel *channel, const struct emu_channel_slot *slot);

/* channel_engine.c: the same meaning of false. */
bool emu_engine_launch(struct emu_channel *channel, const struct emu_launch *launch,
		       bool pipelined);
/* ordered: every byte is visible before the semaphore; otherwise it may be late. */
bool emu_engine_release(struct emu_channel *channel, uint64_t address, uint32_t payload,
			bool ordered);
/* Moves everything that is pending, in any order. */
bool emu_engine_drain(struct emu_channel *channel);
/* At the end of each entry: dies or hangs where GDRCOPY_EMU asks for it. */
bool emu_engine_misbehave(struct emu_channel *channel);
unsigned emu_engine_error(const struct emu_channel *channel);

/* The entries of the door. */
int emu_dma_space_open(int device, struct gdrcopy_emu_space **space);
int emu_dma_space_close(struct gdrcopy_emu_space *space);
int emu_dma_engines(struct gdrcopy_emu_space *space, struct gdrcopy_emu_engine *engines,
		    unsigned max);
int emu_dma_map_memory(struct gdrcopy_emu_space *space, const struct gdrcopy_emu_range *range,
		       uint64_t offset, uint64_t length, uint64_t *address);
int emu_dma_map_host(struct gdrcopy_emu_space *space, void *base, uint64_t length,
		     uint64_t *address);
int emu_dma_unmap(struct gdrcopy_emu_space *space, uint64_t address);
int emu_dma_scratch(struct gdrcopy_emu_space *space, uint64_t length, void **base,
		    uint64_t *address);
int emu_dma_queue_open(struct gdrcopy_emu_space *space, unsigned engine,
		       struct gdrcopy_emu_queue **queue);
int emu_dma_queue_close(struct gdrcopy_emu_queue *queue);
void emu_dma_knock(struct gdrcopy_emu_queue *queue);

/* A failure that GDRCOPY_EMU=fail=STEP asks for: 0 or a negative errno. */
int emu_dma_injected(const char *step);

#endif
