/* SPDX-License-Identifier: MIT */
/* Copy-engine channels: which engines a device has, and a channel on one of them. */
#ifndef GDRI_RM_CHANNEL_H
#define GDRI_RM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rm/space.h"

/* The classes of one generation of devices, taken from the device's own list. */
struct gdri_rm_generation {
	const char *name;
	uint32_t channel;	/* *_CHANNEL_GPFIFO_* */
	uint32_t copy;		/* *_DMA_COPY_* */
	uint32_t usermode;	/* *_USERMODE_* */
	bool doorbell_in_bar1;	/* posted writes through BAR1 stay ahead of it */
};

/* NULL with -EOPNOTSUPP: none of them is known here. */
int gdri_rm_channel_generation(const struct gdri_rm_space *space,
			       const struct gdri_rm_generation **generation,
			       struct gdri_rm_failure *failure);

/*
 * Copy engines: numbers n of COPYn and the physical engines behind each, one
 * bit each, 0 where the driver does not tell.  The count, or a negative errno.
 */
struct gdri_rm_copy_engine {
	unsigned number;
	uint32_t physical;
};
int gdri_rm_channel_engines(const struct gdri_rm_space *space,
			    struct gdri_rm_copy_engine engines[GDRI_RM_MAX_COPY_ENGINES],
			    struct gdri_rm_failure *failure);

/* Rings a device's channels; one serves all of them. */
struct gdri_rm_doorbell {
	uint32_t object;
	uint64_t linear;
	void *base;
	volatile uint32_t *word;	/* takes the token of a channel */
};
int gdri_rm_doorbell_open(struct gdri_rm_space *space,
			  const struct gdri_rm_generation *generation,
			  struct gdri_rm_doorbell *doorbell, struct gdri_rm_failure *failure);
int gdri_rm_doorbell_close(struct gdri_rm_space *space, struct gdri_rm_doorbell *doorbell);

/* Where a channel finds its ring and its USERD, and writes its errors. */
struct gdri_rm_channel_memory {
	uint64_t ring_address;		/* for the device */
	uint32_t ring_entries;
	uint32_t userd_object;
	uint64_t userd_offset;		/* a multiple of GDRI_RM_USERD_SIZE */
	uint32_t notifier_object;	/* host memory; notifiers begin at its first byte */
};

struct gdri_rm_channel {
	uint32_t group;
	uint32_t channel;
	uint32_t copy;
	uint32_t token;
};

/* -EBUSY, -ENOMEM: the device has no channel left. */
int gdri_rm_channel_open(struct gdri_rm_space *space, const struct gdri_rm_generation *generation,
			 unsigned engine, const struct gdri_rm_channel_memory *memory,
			 struct gdri_rm_channel *channel, struct gdri_rm_failure *failure);

/*
 * 0: the driver has taken the channel off its engine and freed it, so that
 * nothing happens on its account any more.  Otherwise nobody knows.
 */
int gdri_rm_channel_close(struct gdri_rm_space *space, struct gdri_rm_channel *channel);

#endif
