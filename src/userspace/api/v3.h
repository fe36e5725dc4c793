/* SPDX-License-Identifier: MIT */
/*
 * The types of gdrcopy/gdrapi.h under names of their own, since that header and
 * the one of 2.6, which core uses, cannot be in one file.  api/v3_types.c asserts
 * that they are the same.
 */
#ifndef GDRI_API_V3_H
#define GDRI_API_V3_H

#include <stddef.h>
#include <stdint.h>

#include "visibility.h"

typedef enum gdri_v3_result {
	GDRI_V3_SUCCESS,
	GDRI_V3_INVALID_ARG,
	GDRI_V3_NO_DEVICE,
	GDRI_V3_OP_NOT_SUPPORTED,
	GDRI_V3_PERMISSION,
	GDRI_V3_NO_MEMORY,
	GDRI_V3_BUSY,
	GDRI_V3_TIMEOUT,
	GDRI_V3_IO,
	GDRI_V3_DRIVER_MISMATCH,
	GDRI_V3_STALE_HANDLE,
	GDRI_V3_RESULTS
} gdri_v3_result;

typedef struct gdr_context *gdri_v3;

struct gdri_v3_info {
	uint64_t size;
	uint64_t addr;
	uint64_t length;
	int32_t device_id;
	uint32_t flags;
	uint32_t mapping_type;
	uint32_t has_engine;
	uint64_t read_crossover;
	uint64_t write_crossover;
};

struct gdri_v3_status {
	uint64_t size;
	uint32_t mapped;
	uint32_t freed;
	uint32_t revoked;
	uint32_t reserved;
};

struct gdri_v3_export {
	uint64_t size;
	uint32_t version;
	uint32_t flags;
	unsigned char uuid[16];
	uint64_t object_size;
	uint64_t offset;
	uint64_t length;
};
enum { GDRI_V3_EXPORT_VERSION = 1 };

/* The result for an errno of core's. */
gdri_v3_result gdri_api_v3_result(int rc);

GDRI_PUBLIC const char *gdr_strerror_v3(gdri_v3_result result);
GDRI_PUBLIC gdri_v3_result gdr_open_v3(gdri_v3 *g);
GDRI_PUBLIC gdri_v3_result gdr_close_v3(gdri_v3 g);
GDRI_PUBLIC gdri_v3_result gdr_pin_buffer_v3(gdri_v3 g, uint64_t addr, size_t size,
					     uint32_t flags, int device_id, uint64_t *handle);
GDRI_PUBLIC gdri_v3_result gdr_unpin_v3(gdri_v3 g, uint64_t handle);
GDRI_PUBLIC gdri_v3_result gdr_map_v3(gdri_v3 g, uint64_t handle, void **va, size_t size);
GDRI_PUBLIC gdri_v3_result gdr_unmap_v3(gdri_v3 g, uint64_t handle, void *va, size_t size);
GDRI_PUBLIC gdri_v3_result gdr_copy_to_device_v3(gdri_v3 g, uint64_t src_handle,
						 uint64_t dst_handle, uint64_t src_offset,
						 uint64_t dst_offset, size_t length);
GDRI_PUBLIC gdri_v3_result gdr_copy_from_host_v3(gdri_v3 g, uint64_t handle, uint64_t offset,
						 const void *host, size_t size);
GDRI_PUBLIC gdri_v3_result gdr_copy_to_host_v3(gdri_v3 g, uint64_t handle, uint64_t offset,
					       void *host, size_t size);
GDRI_PUBLIC gdri_v3_result gdr_host_register_v3(gdri_v3 g, void *ptr, size_t size);
GDRI_PUBLIC gdri_v3_result gdr_host_unregister_v3(gdri_v3 g, void *ptr);
GDRI_PUBLIC gdri_v3_result gdr_flush_v3(gdri_v3 g);
GDRI_PUBLIC gdri_v3_result gdr_get_info_v3(gdri_v3 g, uint64_t handle, struct gdri_v3_info *info);
GDRI_PUBLIC gdri_v3_result gdr_query_v3(gdri_v3 g, uint64_t handle,
					struct gdri_v3_status *status);
GDRI_PUBLIC gdri_v3_result gdr_export_v3(gdri_v3 g, uint64_t handle, uint32_t flags,
					 struct gdri_v3_export *desc, int *fd);
GDRI_PUBLIC gdri_v3_result gdr_import_v3(gdri_v3 g, const struct gdri_v3_export *desc, int fd,
					 int device_id, uint64_t *handle);

#endif
