/* SPDX-License-Identifier: MIT */
/* What identify.c, ipc.c and vmm.c share: a CUDA pointer on its way to a memory object. */
#ifndef GDRI_RM_IDENTIFY_H
#define GDRI_RM_IDENTIFY_H

#include "rm/memory.h"
#include "rm/range.h"

/* Granularity of CUDA's physical allocations. */
#define GDRI_RM_BLOCK_GRANULE ((uint64_t)2 << 20)

/*
 * Whether the layout of CUDA's opaque data that this library knows holds in
 * this process: client.ipc_layout, client.record_layout.
 */
enum gdri_rm_layout {
	GDRI_RM_LAYOUT_UNKNOWN = 0,
	GDRI_RM_LAYOUT_CONFIRMED,
	GDRI_RM_LAYOUT_REFUTED
};

/* A device pointer as CUDA's attributes describe it.  A block is what CUDA maps as one piece. */
struct gdri_rm_subject {
	struct gdri_rm_client *client;
	struct gdri_rm_device *device;
	const struct gdri_cuda *cuda;
	const struct gdri_log *log;
	uint64_t address;
	int ordinal;
	void *context;		/* NULL for memory that belongs to none (VMM) */
	uint64_t start;		/* of the allocation, or of VMM's reservation */
	uint64_t size;
	uint64_t block_base;
	uint64_t block_size;
	uint64_t block_id;	/* unique in the process, never reused */
	uint64_t buffer_id;	/* likewise, of the allocation */
	bool ipc_capable;	/* cudaMalloc and cuMemAlloc memory */
	bool exportable;	/* VMM memory with a POSIX descriptor handle */
};

/*
 * Whether kernel driver and CUDA driver are a pair on which the opaque layouts
 * were seen; CUDA's compatibility packages bring a younger libcuda.
 */
bool gdri_rm_identify_tested(const struct gdri_rm_subject *subject);

/* Reads the attributes of an address: a CUDA result, 0 for success. */
int gdri_rm_subject_describe(struct gdri_rm_subject *subject, uint64_t address);

/* Each duplicates the memory object of subject's block, or logs why not. */
int gdri_rm_ipc_resolve(const struct gdri_rm_subject *subject, uint32_t *object);
int gdri_rm_vmm_resolve(const struct gdri_rm_subject *subject, uint32_t *object);

/*
 * Whether an object can be a block of that many bytes: video memory of the
 * user class and size from block_size to block_size + slack.
 */
int gdri_rm_identify_check(const struct gdri_rm_subject *subject, uint32_t object,
			   uint64_t block_size, uint64_t slack, uint64_t *size);

/* Logs a failed request that decides the pin, and passes its error on. */
int gdri_rm_identify_failed(const struct gdri_rm_subject *subject, int rc,
			    const struct gdri_rm_failure *failure);

#endif
