/* SPDX-License-Identifier: MIT */
/* A device range: which bytes of which memory object a pinned range is. */
#ifndef GDRI_RM_RANGE_H
#define GDRI_RM_RANGE_H

#include <stdint.h>

#include "core/log.h"
#include "os/cuda.h"
#include "rm/client.h"

/*
 * The object is our own duplicate: it keeps the memory alive after its owner
 * freed it, and dies with release.  The client must outlive the range.
 */
struct gdri_rm_range {
	struct gdri_rm_client *client;
	struct gdri_rm_device *device;
	uint32_t object;
	uint64_t object_size;
	uint64_t offset;	/* of the range's first byte in the object */
	uint64_t length;
};

/*
 * Finds the memory object of [addr, addr + length) and duplicates it.  The
 * range may start and end anywhere in the 64 KiB pages of one allocation.
 *
 * Nothing in here waits for kernels, changes the caller's current context or
 * needs one.  Either the object is proven to be the range's own, in the sense
 * of docs/nvrm.md, or the call fails; the one that decides it logs why.
 *
 * -EINVAL: not device memory of this process, freed, managed, pool or foreign
 * memory, or more than one allocation.  -EOPNOTSUPP: the driver cannot tell.
 */
int gdri_rm_range_acquire(struct gdri_rm_client *client, const struct gdri_cuda *cuda,
			  uint64_t addr, uint64_t length, const struct gdri_log *log,
			  struct gdri_rm_range *range);

/*
 * The range that another process exported: range->device, object_size, offset and
 * length are given and compared with what fd holds; the rest is filled.  fd stays the
 * caller's.  -EINVAL: fd holds no object, or another one.
 */
int gdri_rm_range_import(struct gdri_rm_client *client, int fd, const struct gdri_log *log,
			 struct gdri_rm_range *range);

/* A descriptor of the range's whole object, for any process. */
int gdri_rm_range_export(const struct gdri_rm_range *range, const struct gdri_log *log, int *fd);
int gdri_rm_range_release(struct gdri_rm_range *range);

#endif
