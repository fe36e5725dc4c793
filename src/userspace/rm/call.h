/* SPDX-License-Identifier: MIT */
/* One request to the resource manager each: builds it, sends it, judges the answer. */
#ifndef GDRI_RM_CALL_H
#define GDRI_RM_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "rm/abi/channel_r580.h"
#include "rm/abi/r580.h"

/*
 * What went wrong, for the log: the step, and either the errno of a system
 * call or the status of the resource manager.  Filled on failure only.
 */
struct gdri_rm_failure {
	const char *step;
	int error;
	uint32_t status;
};

/* "step: errno 2" or "step: status 0x57"; returns text. */
const char *gdri_rm_failure_text(const struct gdri_rm_failure *failure, char *text, size_t size);

/* Records a failed system call and returns its negative errno. */
int gdri_rm_failure_set(struct gdri_rm_failure *failure, const char *step, int error);

/*
 * All return 0 or a negative errno and name their step in *failure.  fd is a
 * descriptor of /dev/nvidiactl; the manager refuses a client handle that comes
 * through another file than the one it was made with (status 0x23).
 */
int gdri_rm_call_version(int fd, char *version, size_t size, struct gdri_rm_failure *failure);
int gdri_rm_call_cards(int fd, struct gdri_rm_card cards[GDRI_RM_MAX_GPUS],
		       struct gdri_rm_failure *failure);
int gdri_rm_call_alloc(int fd, uint32_t client, uint32_t parent, uint32_t *object,
		       uint32_t class_id, void *params, size_t size,
		       struct gdri_rm_failure *failure);
int gdri_rm_call_free(int fd, uint32_t client, uint32_t parent, uint32_t object,
		      struct gdri_rm_failure *failure);
int gdri_rm_call_control(int fd, uint32_t client, uint32_t object, uint32_t command,
			 void *params, size_t size, struct gdri_rm_failure *failure);
int gdri_rm_call_dup(int fd, uint32_t client, uint32_t parent, uint32_t object,
		     uint32_t source_client, uint32_t source_object,
		     struct gdri_rm_failure *failure);

/* map is in and out; map->fd: a registered /dev/nvidiaN that served no map yet. */
int gdri_rm_call_map(int fd, struct gdri_rm_map *map, struct gdri_rm_failure *failure);
int gdri_rm_call_unmap(int fd, uint32_t client, uint32_t device, uint32_t memory,
		       uint64_t linear, struct gdri_rm_failure *failure);

/* Memory as the device's engines see it; map->address is the answer. */
int gdri_rm_call_map_dma(int fd, struct gdri_rm_map_dma *map, struct gdri_rm_failure *failure);
int gdri_rm_call_unmap_dma(int fd, struct gdri_rm_unmap_dma *unmap,
			   struct gdri_rm_failure *failure);

/* Pins memory of this process; device_fd: a registered /dev/nvidiaN. */
int gdri_rm_call_alloc_memory(int device_fd, struct gdri_rm_alloc_memory *request,
			      struct gdri_rm_failure *failure);

/* Ties a descriptor of /dev/nvidiaN to the control descriptor. */
int gdri_rm_call_register(int device_fd, int fd, struct gdri_rm_failure *failure);

#endif
