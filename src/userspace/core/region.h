/* SPDX-License-Identifier: MIT */
/* A region: one pinned range, and its mapping while it has one. */
#ifndef GDRI_CORE_REGION_H
#define GDRI_CORE_REGION_H

#include "core/context.h"
#include "core/dma.h"

/* Version 3's part of a region; belongs to the lock but for what a copy reads. */
struct gdri_buffer {
	uint64_t addr;		/* as pinned; of an import, as in its pin.  Constant, as all up to skew */
	uint64_t length;
	uint64_t id;		/* CUDA's number for the allocation */
	uint32_t flags;
	int device;
	bool imported;		/* of another process: it has no GPU address here */
	uint64_t skew;		/* of addr in the mapping */
	bool shown;		/* gdr_map gave out its address */
	size_t shown_size;
};

/*
 * States, changed under the region's lock:
 *
 *	free -> pinned <-> mapped
 *	          |          |
 *	          +----------+--> free
 *
 * The copy gate is open in state mapped alone.  A copy holds no lock: inside
 * the gate, mapping and routines stay as they are.  Leaving state mapped
 * closes the gate and waits for running copies before the back end is called.
 */
struct gdri_region {
	void *pool_link;	/* owned by the pool while free */
	struct gdri_gate copies;
	/*
	 * What a copy reads, written before the gate opens.  The first two are
	 * looked at outside the gate as well, so they are accessed as atomics.
	 */
	size_t word_length;	/* of the part where a word may simply be stored: all or 0 */
	unsigned char *base;
	size_t length;
	gdri_copy_fn to_mapping;
	gdri_copy_fn from_mapping;
	struct gdri_dma_road road;
	/* The rest belongs to the lock. */
	pthread_mutex_t lock;
	uint32_t generation;
	bool pinned;
	bool mapped;
	struct gdri_context *context;
	struct gdri_record *record;
	struct gdri_pin pin;
	struct gdri_mapping mapping;
	struct gdri_buffer buffer;
	/* Links in the context's list; its lock. */
	struct gdri_region *next;
	struct gdri_region *previous;
};

/* What gdr_get_info reports; the api lays it out. */
struct gdri_region_info {
	uint64_t va;
	uint64_t size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t tsc_khz;
	gdr_mapping_type_t mapping_type;	/* NONE when not mapped */
};

/*
 * All of these take a session that the caller has entered, and a handle value
 * of the API.  -EINVAL: not a live handle of this session.
 */
int gdri_core_region_pin(struct gdri_context *context, uint64_t addr, size_t size, uint32_t flags,
			 uint64_t p2p_token, uint32_t va_space, uint64_t *handle);
int gdri_core_region_unpin(struct gdri_context *context, uint64_t handle);
int gdri_core_region_map(struct gdri_context *context, uint64_t handle, size_t size, int flags,
			 void **va);
int gdri_core_region_unmap(struct gdri_context *context, uint64_t handle, const void *va,
			   size_t size);
int gdri_core_region_get_info(struct gdri_context *context, uint64_t handle,
			      struct gdri_region_info *info);
int gdri_core_region_get_callback_flag(struct gdri_context *context, uint64_t handle, int *flag);

/* For version 3: a region of memory that another process exported. */
int gdri_core_region_import(struct gdri_context *context, const struct gdri_backend_share *share,
			    int fd, uint64_t *handle);

/*
 * Finds the region of a handle and takes its lock: -EINVAL, logged, when it is
 * not a live one of this session.
 */
int gdri_core_region_lock(struct gdri_context *context, uint64_t handle, const char *call,
			  struct gdri_region **locked);

/*
 * For version 3, with the region's lock: a window of all that is pinned, and the
 * gate open.  Without a window (an error) the copy engines may still serve it.
 */
int gdri_core_region_open(struct gdri_context *context, struct gdri_region *region);

/* Unmaps and unpins what is left of a closing session; the first error. */
int gdri_core_region_release_all(struct gdri_context *context);

/*
 * Copies: no session, no lock, no system call, no allocation.  device points
 * into the mapping of handle; the whole range must lie in it.  They answer as
 * the calls of 2.6 do, 0 or a positive errno, so that those are jumps to here.
 */
int gdri_core_region_copy_to(uint64_t handle, void *device, const void *host, size_t size);
int gdri_core_region_copy_from(uint64_t handle, void *host, const void *device, size_t size);

/* As copy_to; the thread always says in its slot, or at the gate, that it is inside. */
int gdri_core_region_copy_announced(uint64_t handle, void *device, const void *host, size_t size);

#endif
