/* SPDX-License-Identifier: MIT */
/* The CUDA driver, loaded at run time: the few calls that back ends need. */
#ifndef GDRI_OS_CUDA_H
#define GDRI_OS_CUDA_H

#include <stddef.h>
#include <stdint.h>

/*
 * Numbers of the CUDA driver interface (cuda.h of CUDA 13.0); the names are
 * ours, since the toolkit's header is not needed to build.
 */
enum {
	GDRI_CU_SUCCESS = 0,
	GDRI_CU_POINTER_CONTEXT = 1,
	GDRI_CU_POINTER_MEMORY_TYPE = 2,
	GDRI_CU_POINTER_SYNC_MEMOPS = 6,
	GDRI_CU_POINTER_BUFFER_ID = 7,
	GDRI_CU_POINTER_IS_MANAGED = 8,
	GDRI_CU_POINTER_DEVICE_ORDINAL = 9,
	GDRI_CU_POINTER_IS_LEGACY_IPC_CAPABLE = 10,
	GDRI_CU_POINTER_RANGE_START_ADDR = 11,
	GDRI_CU_POINTER_RANGE_SIZE = 12,
	GDRI_CU_POINTER_MAPPED = 13,
	GDRI_CU_POINTER_ALLOWED_HANDLE_TYPES = 14,
	GDRI_CU_POINTER_MEMPOOL_HANDLE = 17,
	GDRI_CU_POINTER_MAPPING_SIZE = 18,
	GDRI_CU_POINTER_MAPPING_BASE_ADDR = 19,
	GDRI_CU_POINTER_MEMORY_BLOCK_ID = 20,
	GDRI_CU_MEMORY_TYPE_DEVICE = 2,
	GDRI_CU_DEVICE_DMA_BUF_SUPPORTED = 124,
	GDRI_CU_DEVICE_GPU_DIRECT_RDMA_SUPPORTED = 116,
	GDRI_CU_DEVICE_PCI_BUS_ID = 33,
	GDRI_CU_DEVICE_PCI_DEVICE_ID = 34,
	GDRI_CU_DEVICE_PCI_DOMAIN_ID = 50,
	GDRI_CU_DEVICE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
	GDRI_CU_HANDLE_TYPE_POSIX_FD = 1,
	GDRI_CU_RANGE_HANDLE_DMA_BUF_FD = 1,
	GDRI_CU_RANGE_FLAG_PCIE = 1
};

typedef uint64_t gdri_cu_ptr;
struct gdri_cu_ipc_handle { unsigned char bytes[64]; };
struct gdri_cu_uuid { unsigned char bytes[16]; };

/*
 * The loaded driver.  A back-end session owns one: load at open, unload at
 * close; the library stays mapped meanwhile, whatever the application drops.
 * A pointer is NULL where the driver lacks the call.  Nothing here calls
 * cuInit.  Loading with RTLD_LAZY | RTLD_LOCAL tries libcuda.so.1, then
 * libcuda.so.
 */
struct gdri_cuda {
	void *library;
	int (*driver_get_version)(int *version);
	int (*init)(unsigned flags);
	int (*device_get_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_get_attribute)(int *value, int attribute, int device);
	int (*device_get_uuid)(struct gdri_cu_uuid *uuid, int device);
	int (*pointer_get_attribute)(void *value, int attribute, gdri_cu_ptr ptr);
	int (*pointer_set_attribute)(const void *value, int attribute, gdri_cu_ptr ptr);
	int (*mem_get_address_range)(gdri_cu_ptr *base, size_t *size, gdri_cu_ptr ptr);
	int (*ipc_get_mem_handle)(struct gdri_cu_ipc_handle *handle, gdri_cu_ptr ptr);
	int (*mem_create)(uint64_t *handle, size_t size, const void *prop,
			  unsigned long long flags);
	int (*mem_retain_allocation_handle)(uint64_t *handle, void *addr);
	int (*mem_release)(uint64_t handle);
	int (*mem_export_to_shareable_handle)(void *shareable, uint64_t handle, int type,
					      unsigned long long flags);
	int (*mem_get_allocation_properties)(void *prop, uint64_t handle);
	int (*mem_get_handle_for_address_range)(void *handle, gdri_cu_ptr ptr, size_t size,
						int type, unsigned long long flags);
	int (*mem_alloc)(gdri_cu_ptr *ptr, size_t size);
	int (*mem_free)(gdri_cu_ptr ptr);
	int (*memcpy_dtoh)(void *dst, gdri_cu_ptr src, size_t size);
	int (*memset_d8)(gdri_cu_ptr dst, unsigned char value, size_t size);
	int (*ctx_get_current)(void **ctx);
	int (*ctx_set_current)(void *ctx);
	int (*ctx_push_current)(void *ctx);
	int (*ctx_pop_current)(void **ctx);
	int (*primary_ctx_retain)(void **ctx, int device);
	int (*primary_ctx_release)(int device);
	int (*get_error_name)(int result, const char **name);
};

/* 0; -ENOENT: no CUDA driver; -ENOSYS: a libcuda without the basic calls. */
int gdri_os_cuda_load(struct gdri_cuda *cuda);
void gdri_os_cuda_unload(struct gdri_cuda *cuda);

/* The negative errno that stands for a CUDA result; 0 for success. */
int gdri_os_cuda_errno(int result);

#endif
