/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver, loaded at run time, for tools and test programs.
 *
 * The table has the driver's own names: CU(cuMemAlloc, &ptr, size) calls it
 * and ends the program with one line when it fails; CU_TRY gives the result
 * instead.  No toolkit header is needed to build.
 */
#ifndef TOOLS_CUDA_DRIVER_H
#define TOOLS_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types and numbers of the CUDA driver interface (cuda.h of CUDA 13.0). */
typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef uint64_t CUmemGenericAllocationHandle;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_NOT_SUPPORTED = 801
};

enum {
	CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
	CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
	CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
	CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
	CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
	CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
	CU_COMPUTEMODE_DEFAULT = 0,
	CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
};

enum {
	CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,	/* struct of u64 token, u32 va_space */
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_MEM_ATTACH_GLOBAL = 1,
	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_STREAM_NON_BLOCKING = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
	CU_MEM_ALLOCATION_TYPE_PINNED = 1,
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_HANDLE_TYPE_NONE = 0,
	CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
	CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0
};

struct cuda_p2p_tokens {
	uint64_t token;
	uint32_t va_space;
};

struct cuda_mem_location {
	int type;
	int id;
};

/* CUmemAllocationProp. */
struct cuda_mem_prop {
	int type;
	int requested_handle_types;
	struct cuda_mem_location location;
	void *win32_meta;
	unsigned char compression_type;
	unsigned char gpu_direct_rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};

/* CUmemAccessDesc. */
struct cuda_mem_access {
	struct cuda_mem_location location;
	int flags;
};

struct cuda_uuid {
	unsigned char bytes[16];
};

struct cuda_ipc_handle {
	unsigned char bytes[64];
};

/* X(name, exported symbol, parameters) */
#define CUDA_DRIVER_CALLS(X)                                                              \
	X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                       \
	X(cuInit, "cuInit", (unsigned flags))                                             \
	X(cuGetErrorName, "cuGetErrorName", (CUresult result, const char **name))         \
	X(cuGetErrorString, "cuGetErrorString", (CUresult result, const char **text))     \
	X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                             \
	X(cuDeviceGet, "cuDeviceGet", (CUdevice *device, int ordinal))                    \
	X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))    \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute",                                   \
	  (int *value, int attribute, CUdevice device))                                   \
	X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (struct cuda_uuid *uuid, CUdevice device)) \
	X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device))      \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                           \
	  (CUcontext *ctx, CUdevice device))                                              \
	X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))   \
	X(cuCtxCreate, "cuCtxCreate_v2", (CUcontext *ctx, unsigned flags, CUdevice device)) \
	X(cuCtxDestroy, "cuCtxDestroy_v2", (CUcontext ctx))                               \
	X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext *ctx))                           \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext ctx))                            \
	X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext ctx))                       \
	X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *ctx))                        \
	X(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice *device))                           \
	X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                   \
	X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                 \
	X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *ptr, size_t size))                   \
	X(cuMemFree, "cuMemFree_v2", (CUdeviceptr ptr))                                   \
	X(cuMemGetAddressRange, "cuMemGetAddressRange_v2",                                \
	  (CUdeviceptr *base, size_t *size, CUdeviceptr ptr))                             \
	X(cuMemAllocManaged, "cuMemAllocManaged",                                         \
	  (CUdeviceptr *ptr, size_t size, unsigned flags))                                \
	X(cuMemAllocAsync, "cuMemAllocAsync", (CUdeviceptr *ptr, size_t size, CUstream stream)) \
	X(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr ptr, CUstream stream))           \
	X(cuMemHostAlloc, "cuMemHostAlloc", (void **ptr, size_t size, unsigned flags))    \
	X(cuMemFreeHost, "cuMemFreeHost", (void *ptr))                                    \
	X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                      \
	  (CUdeviceptr *ptr, void *host, unsigned flags))                                 \
	X(cuMemHostRegister, "cuMemHostRegister_v2", (void *ptr, size_t size, unsigned flags)) \
	X(cuMemHostUnregister, "cuMemHostUnregister", (void *ptr))                        \
	X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr dst, const void *src, size_t size)) \
	X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *dst, CUdeviceptr src, size_t size))     \
	X(cuMemcpyDtoD, "cuMemcpyDtoD_v2", (CUdeviceptr dst, CUdeviceptr src, size_t size)) \
	X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                      \
	  (CUdeviceptr dst, const void *src, size_t size, CUstream stream))               \
	X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                      \
	  (void *dst, CUdeviceptr src, size_t size, CUstream stream))                     \
	X(cuMemsetD8, "cuMemsetD8_v2", (CUdeviceptr dst, unsigned char value, size_t size)) \
	X(cuMemsetD32, "cuMemsetD32_v2", (CUdeviceptr dst, unsigned value, size_t words)) \
	X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",                 \
	  (size_t *granularity, const struct cuda_mem_prop *prop, int option))            \
	X(cuMemAddressReserve, "cuMemAddressReserve",                                     \
	  (CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,             \
	   unsigned long long flags))                                                     \
	X(cuMemAddressFree, "cuMemAddressFree", (CUdeviceptr ptr, size_t size))           \
	X(cuMemCreate, "cuMemCreate",                                                     \
	  (CUmemGenericAllocationHandle *handle, size_t size,                             \
	   const struct cuda_mem_prop *prop, unsigned long long flags))                   \
	X(cuMemRelease, "cuMemRelease", (CUmemGenericAllocationHandle handle))            \
	X(cuMemMap, "cuMemMap",                                                           \
	  (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, \
	   unsigned long long flags))                                                     \
	X(cuMemUnmap, "cuMemUnmap", (CUdeviceptr ptr, size_t size))                       \
	X(cuMemSetAccess, "cuMemSetAccess",                                               \
	  (CUdeviceptr ptr, size_t size, const struct cuda_mem_access *access, size_t count)) \
	X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle",                   \
	  (void *shareable, CUmemGenericAllocationHandle handle, int type,                \
	   unsigned long long flags))                                                     \
	X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle",               \
	  (CUmemGenericAllocationHandle *handle, void *shareable, int type))              \
	X(cuPointerGetAttribute, "cuPointerGetAttribute",                                 \
	  (void *value, int attribute, CUdeviceptr ptr))                                  \
	X(cuPointerSetAttribute, "cuPointerSetAttribute",                                 \
	  (const void *value, int attribute, CUdeviceptr ptr))                            \
	X(cuIpcGetMemHandle, "cuIpcGetMemHandle",                                         \
	  (struct cuda_ipc_handle *handle, CUdeviceptr ptr))                              \
	X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2",                                    \
	  (CUdeviceptr *ptr, struct cuda_ipc_handle handle, unsigned flags))              \
	X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (CUdeviceptr ptr))                  \
	X(cuStreamCreate, "cuStreamCreate", (CUstream *stream, unsigned flags))           \
	X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                       \
	X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                  \
	X(cuStreamQuery, "cuStreamQuery", (CUstream stream))                              \
	X(cuEventCreate, "cuEventCreate", (CUevent *event, unsigned flags))               \
	X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                           \
	X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))               \
	X(cuEventQuery, "cuEventQuery", (CUevent event))                                  \
	X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                      \
	X(cuModuleLoadData, "cuModuleLoadData", (CUmodule *module, const void *image))    \
	X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                            \
	X(cuModuleGetFunction, "cuModuleGetFunction",                                     \
	  (CUfunction *function, CUmodule module, const char *name))                      \
	X(cuLaunchKernel, "cuLaunchKernel",                                               \
	  (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,        \
	   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,   \
	   CUstream stream, void **params, void **extra))

struct cuda_driver {
	void *library;
#define CUDA_DRIVER_MEMBER(name, symbol, params) CUresult(*name) params;
	CUDA_DRIVER_CALLS(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
};

/* Filled by cuda_driver_load; a call that the driver lacks is NULL. */
extern struct cuda_driver cuda;

/* Loads libcuda without initialising it.  NULL, or why not, as one line. */
const char *cuda_driver_find(void);

/* Loads libcuda and calls cuInit.  NULL, or why not, as one line. */
const char *cuda_driver_try_load(void);

/* The same; ends the program with that line on failure. */
void cuda_driver_load(void);

/* "CUDA_ERROR_INVALID_VALUE (invalid argument)" in a static buffer. */
const char *cuda_driver_describe(CUresult result);

/* Ends the program with status 1 and one line unless result is success. */
void cuda_driver_check(CUresult result, const char *call, const char *file, int line);

/* The result; CUDA_ERROR_NOT_FOUND where the driver lacks the call. */
#define CU_TRY(call, ...) (cuda.call ? cuda.call(__VA_ARGS__) : (CUresult)CUDA_ERROR_NOT_FOUND)

/* Calls and insists on success. */
#define CU(call, ...) cuda_driver_check(CU_TRY(call, __VA_ARGS__), #call, __FILE__, __LINE__)

#endif
