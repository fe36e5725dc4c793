/* SPDX-License-Identifier: MIT */
/* A device address space of our own, and what is visible in it. */
#ifndef GDRI_RM_SPACE_H
#define GDRI_RM_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "rm/client.h"
#include "rm/memory.h"

/* Engines that are given this space see what was mapped into it and nothing else. */
struct gdri_rm_space {
	struct gdri_rm_client *client;
	struct gdri_rm_device *device;
	uint32_t vaspace;
	uint32_t virtual_memory;	/* all of its addresses */
};

int gdri_rm_space_open(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       struct gdri_rm_space *space, struct gdri_rm_failure *failure);

/* Everything that was mapped into it is gone afterwards. */
int gdri_rm_space_close(struct gdri_rm_space *space);

/*
 * Maps bytes of a memory object; offset and length in pages of 4 KiB.  host:
 * the object is host memory, which the device then accesses coherently with
 * CPU caches.  *address: where the device finds them.
 */
int gdri_rm_space_map(struct gdri_rm_space *space, uint32_t object, uint64_t offset,
		      uint64_t length, bool host, uint64_t *address,
		      struct gdri_rm_failure *failure);
int gdri_rm_space_unmap(struct gdri_rm_space *space, uint32_t object, uint64_t address);

/*
 * Pins whole pages of this process and makes a memory object of them.  The
 * pages stay pinned until the object is freed, whatever the process does with
 * its addresses; MADV_DONTFORK is the caller's to set.
 */
int gdri_rm_space_pin_host(struct gdri_rm_space *space, void *base, size_t length,
			   uint32_t *object, struct gdri_rm_failure *failure);

/* Video memory in one piece, zeroed or not, in the driver's discretion. */
int gdri_rm_space_alloc(struct gdri_rm_space *space, uint64_t length, uint32_t *object,
			struct gdri_rm_failure *failure);

#endif
