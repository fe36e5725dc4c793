/* SPDX-License-Identifier: MIT */
/* The runtime's devices: primary contexts, made when they are first needed. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "runtime.h"

#define MAX_DEVICES 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[MAX_DEVICES];
static __thread int chosen_device;

static CUresult primary_context(int device, CUcontext *ctx)
{
	CUresult ret = CUDA_SUCCESS;

	if (device < 0 || device >= MAX_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device])
		ret = cuDevicePrimaryCtxRetain(&primaries[device], device);
	if (ret == CUDA_SUCCESS)
		*ctx = primaries[device];
	else
		primaries[device] = NULL;
	pthread_mutex_unlock(&lock);
	return ret;
}

static CUresult use_primary(int device)
{
	CUcontext ctx;
	CUresult ret = primary_context(device, &ctx);

	return ret == CUDA_SUCCESS ? cuCtxSetCurrent(ctx) : ret;
}

CUresult emu_runtime_enter(void)
{
	CUcontext ctx;
	CUresult ret = cuInit(0);

	if (ret == CUDA_SUCCESS)
		ret = cuCtxGetCurrent(&ctx);
	if (ret == CUDA_SUCCESS && !ctx)
		ret = use_primary(chosen_device);
	return ret;
}

EMU_API cudaError_t cudaDriverGetVersion(int *version)
{
	return emu_runtime_result(cuDriverGetVersion(version));
}

EMU_API cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return emu_runtime_result(CUDA_ERROR_INVALID_VALUE);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

/* Needs the driver, not a context. */
static CUresult start(void)
{
	return cuInit(0);
}

EMU_API cudaError_t cudaGetDeviceCount(int *count)
{
	CUresult ret = start();

	if (ret == CUDA_SUCCESS)
		ret = cuDeviceGetCount(count);
	else if (count && ret == CUDA_ERROR_NO_DEVICE)
		*count = 0;
	return emu_runtime_result(ret);
}

EMU_API cudaError_t cudaSetDevice(int device)
{
	CUresult ret = start();

	if (ret == CUDA_SUCCESS)
		ret = use_primary(device);
	if (ret == CUDA_SUCCESS)
		chosen_device = device;
	return emu_runtime_result(ret);
}

EMU_API cudaError_t cudaGetDevice(int *device)
{
	CUcontext ctx;
	CUresult ret = start();

	if (!device)
		return emu_runtime_result(CUDA_ERROR_INVALID_VALUE);
	if (ret == CUDA_SUCCESS)
		ret = cuCtxGetCurrent(&ctx);
	if (ret != CUDA_SUCCESS)
		return emu_runtime_result(ret);
	if (ctx)
		return emu_runtime_result(cuCtxGetDevice(device));
	*device = chosen_device;
	return cudaSuccess;
}

EMU_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	CUresult ret = start();

	if (ret == CUDA_SUCCESS)
		ret = cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device);
	return emu_runtime_result(ret);
}

EMU_API cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
	CUresult ret = start();

	if (ret == CUDA_SUCCESS)
		ret = cuDeviceGetPCIBusId(id, size, device);
	return emu_runtime_result(ret);
}

EMU_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	CUresult ret = start();

	if (ret == CUDA_SUCCESS)
		ret = cuDeviceGetByPCIBusId(device, id);
	return emu_runtime_result(ret);
}

EMU_API cudaError_t cudaDeviceSynchronize(void)
{
	EMU_RUNTIME(cuCtxSynchronize());
}

/* Other threads find the context destroyed, as with the real runtime. */
EMU_API cudaError_t cudaDeviceReset(void)
{
	CUdevice device;
	CUresult ret = emu_runtime_enter();

	if (ret == CUDA_SUCCESS)
		ret = cuCtxGetDevice(&device);
	if (ret != CUDA_SUCCESS)
		return emu_runtime_result(ret);
	if (device < MAX_DEVICES) {
		pthread_mutex_lock(&lock);
		primaries[device] = NULL;
		pthread_mutex_unlock(&lock);
	}
	ret = cuDevicePrimaryCtxReset(device);
	if (ret == CUDA_SUCCESS)
		ret = cuCtxSetCurrent(NULL);
	return emu_runtime_result(ret);
}

EMU_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	CUresult ret = start();

	if (ret == CUDA_SUCCESS)
		ret = cuDeviceCanAccessPeer(can, device, peer);
	return emu_runtime_result(ret);
}

static CUresult change_peer(int peer, CUresult (*change)(CUcontext ctx))
{
	CUcontext ctx;
	CUresult ret = primary_context(peer, &ctx);

	return ret == CUDA_SUCCESS ? change(ctx) : ret;
}

static CUresult enable_peer(CUcontext ctx)
{
	return cuCtxEnablePeerAccess(ctx, 0);
}

EMU_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	if (flags != 0)
		return emu_runtime_result(CUDA_ERROR_INVALID_VALUE);
	EMU_RUNTIME(change_peer(peer, enable_peer));
}

EMU_API cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	EMU_RUNTIME(change_peer(peer, cuCtxDisablePeerAccess));
}

static int attribute(CUdevice_attribute number, int device)
{
	int value = 0;

	cuDeviceGetAttribute(&value, number, device);
	return value;
}

/* What the emulated device lacks (textures, surfaces) stays zero. */
static void fill_properties(struct cudaDeviceProp *prop, int device)
{
	prop->sharedMemPerBlock =
		(size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
	prop->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device);
	prop->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
	prop->memPitch = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device);
	prop->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
	for (int i = 0; i < 3; i++) {
		prop->maxThreadsDim[i] =
			attribute((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i),
				  device);
		prop->maxGridSize[i] =
			attribute((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i),
				  device);
	}
	prop->totalConstMem =
		(size_t)attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
	prop->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	prop->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	prop->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	prop->canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device);
	prop->concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, device);
	prop->pciDomainID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device);
	prop->asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, device);
	prop->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
	prop->maxThreadsPerMultiProcessor =
		attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
	prop->managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device);
	prop->concurrentManagedAccess =
		attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
	prop->pageableMemoryAccessUsesHostPageTables = attribute(
		CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, device);
	prop->hostRegisterSupported =
		attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, device);
	prop->memoryPoolsSupported =
		attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
	prop->gpuDirectRDMASupported =
		attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device);
	prop->gpuDirectRDMAFlushWritesOptions = (unsigned)attribute(
		CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, device);
}

EMU_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	CUuuid uuid;
	CUresult ret = start();

	if (!prop)
		return emu_runtime_result(CUDA_ERROR_INVALID_VALUE);
	memset(prop, 0, sizeof(*prop));
	if (ret == CUDA_SUCCESS)
		ret = cuDeviceGetName(prop->name, sizeof(prop->name), device);
	if (ret == CUDA_SUCCESS)
		ret = cuDeviceTotalMem(&prop->totalGlobalMem, device);
	if (ret == CUDA_SUCCESS)
		ret = cuDeviceGetUuid(&uuid, device);
	if (ret != CUDA_SUCCESS)
		return emu_runtime_result(ret);
	memcpy(prop->uuid.bytes, uuid.bytes, sizeof(uuid.bytes));
	fill_properties(prop, device);
	return cudaSuccess;
}
