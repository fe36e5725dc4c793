/* SPDX-License-Identifier: MIT */
/* Memory objects of the resource manager: taking, asking, mapping, freeing. */
#ifndef GDRI_RM_MEMORY_H
#define GDRI_RM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rm/client.h"

/* Duplicates another client's object of this process under our device. */
int gdri_rm_memory_dup(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       uint32_t source_client, uint32_t source_object, uint32_t *object,
		       struct gdri_rm_failure *failure);

/* Takes the object out of a descriptor that CUDA exported; fd stays the caller's. */
int gdri_rm_memory_import(struct gdri_rm_client *client, struct gdri_rm_device *device, int fd,
			  uint32_t *object, struct gdri_rm_failure *failure);

/* A new descriptor that holds a duplicate of the object, for any process: *fd. */
int gdri_rm_memory_export(struct gdri_rm_client *client, struct gdri_rm_device *device,
			  uint32_t object, int *fd, struct gdri_rm_failure *failure);

/*
 * The instance of the device whose object the descriptor holds.  The manager would
 * import it under any other device too.
 */
int gdri_rm_memory_exporter(struct gdri_rm_client *client, int fd, uint32_t *instance,
			    struct gdri_rm_failure *failure);
int gdri_rm_memory_free(struct gdri_rm_client *client, struct gdri_rm_device *device,
			uint32_t object);

/* What the manager knows of an object. */
struct gdri_rm_memory_info {
	uint64_t size;
	uint32_t class_id;
	uint32_t address_space;
};
int gdri_rm_memory_info(struct gdri_rm_client *client, uint32_t object,
			struct gdri_rm_memory_info *info, struct gdri_rm_failure *failure);

/* Whether two objects of the client are the same memory: exact, not a guess. */
int gdri_rm_memory_same(struct gdri_rm_client *client, uint32_t object1, uint32_t object2,
			bool *same, struct gdri_rm_failure *failure);

/* A window of an object that the CPU can reach. */
struct gdri_rm_window {
	void *base;
	size_t length;
	uint64_t linear;	/* the manager's name for it */
	uint32_t caching;	/* GDRI_RM_CACHING_* */
};

/*
 * offset and length in whole host pages.  The window takes no descriptor, is
 * absent from forked children, and outlives every process's free of the memory.
 */
int gdri_rm_memory_map(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       uint32_t object, uint64_t offset, size_t length,
		       struct gdri_rm_window *window, struct gdri_rm_failure *failure);
int gdri_rm_memory_unmap(struct gdri_rm_client *client, struct gdri_rm_device *device,
			 uint32_t object, struct gdri_rm_window *window);

/* mmap of a /dev/nvidiaN descriptor that a map request was tied to; absent from children. */
int gdri_rm_memory_map_file(int fd, size_t length, void **base, struct gdri_rm_failure *failure);

#endif
