/* SPDX-License-Identifier: MIT */
/* The runtime's memory calls, each one or two calls of the driver. */
#include <string.h>

#include "runtime.h"

/* The driver's outputs are numbers; the runtime's are pointers of the same size. */
static CUdeviceptr *as_device_ptr(void **ptr)
{
	return (CUdeviceptr *)(void *)ptr;
}

_Static_assert(sizeof(void *) == sizeof(CUdeviceptr), "a pointer holds a device address");

EMU_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	EMU_RUNTIME(cuMemGetInfo(free_bytes, total));
}

EMU_API cudaError_t cudaMalloc(void **ptr, size_t size)
{
	if (ptr && size == 0) {
		*ptr = NULL;
		EMU_RUNTIME(CUDA_SUCCESS);
	}
	EMU_RUNTIME(cuMemAlloc(as_device_ptr(ptr), size));
}

EMU_API cudaError_t cudaFree(void *ptr)
{
	EMU_RUNTIME(cuMemFree(emu_runtime_ptr(ptr)));
}

EMU_API cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned flags)
{
	EMU_RUNTIME(cuMemAllocManaged(as_device_ptr(ptr), size, flags));
}

EMU_API cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	EMU_RUNTIME(cuMemAllocHost(ptr, size));
}

EMU_API cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned flags)
{
	EMU_RUNTIME(cuMemHostAlloc(ptr, size, flags));
}

EMU_API cudaError_t cudaFreeHost(void *ptr)
{
	if (!ptr)
		return cudaSuccess;
	EMU_RUNTIME(cuMemFreeHost(ptr));
}

EMU_API cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned flags)
{
	EMU_RUNTIME(cuMemHostRegister(ptr, size, flags));
}

EMU_API cudaError_t cudaHostUnregister(void *ptr)
{
	EMU_RUNTIME(cuMemHostUnregister(ptr));
}

EMU_API cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *ptr, unsigned flags)
{
	EMU_RUNTIME(cuMemHostGetDevicePointer(as_device_ptr(device_ptr), ptr, flags));
}

static CUresult get_attributes(struct cudaPointerAttributes *out, const void *ptr)
{
	CUmemorytype type = (CUmemorytype)0;
	CUdeviceptr device_ptr = 0;
	void *host_ptr = NULL;
	int managed = 0, device = cudaInvalidDeviceId;
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
	};
	void *where[] = { &type, &managed, &device, &device_ptr, &host_ptr };
	CUresult ret = cuPointerGetAttributes(5, which, where, emu_runtime_ptr(ptr));

	if (ret != CUDA_SUCCESS)
		return ret;
	memset(out, 0, sizeof(*out));
	out->type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type;
	out->device = device;
	out->devicePointer = (void *)(uintptr_t)device_ptr;
	out->hostPointer = host_ptr;
	return CUDA_SUCCESS;
}

EMU_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
					     const void *ptr)
{
	if (!attributes)
		return emu_runtime_result(CUDA_ERROR_INVALID_VALUE);
	EMU_RUNTIME(get_attributes(attributes, ptr));
}

EMU_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	EMU_RUNTIME(cuDeviceGetDefaultMemPool(pool, device));
}

EMU_API cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream)
{
	EMU_RUNTIME(cuMemAllocAsync(as_device_ptr(ptr), size, stream));
}

EMU_API cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	EMU_RUNTIME(cuMemFreeAsync(emu_runtime_ptr(ptr), stream));
}

EMU_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	EMU_RUNTIME(cuIpcGetMemHandle((CUipcMemHandle *)(void *)handle, emu_runtime_ptr(ptr)));
}

EMU_API cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned flags)
{
	CUipcMemHandle driver_handle;

	memcpy(&driver_handle, &handle, sizeof(driver_handle));
	EMU_RUNTIME(cuIpcOpenMemHandle(as_device_ptr(ptr), driver_handle, flags));
}

EMU_API cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	EMU_RUNTIME(cuIpcCloseMemHandle(emu_runtime_ptr(ptr)));
}
