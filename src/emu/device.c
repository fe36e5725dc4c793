/* SPDX-License-Identifier: MIT */
/* The emulated devices and what they say of themselves. */
#include <stdio.h>

#include "emu.h"
#include "identity.h"

EMU_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	EMU_ENTER();
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetCount(int *count)
{
	EMU_ENTER();
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = emu_config_get()->devices;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	EMU_ENTER();
	if (!name || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)size, "%s", EMU_DEVICE_NAME);
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	EMU_ENTER();
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	emu_identity_uuid(device, (unsigned char *)uuid->bytes);
	return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid
EMU_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

EMU_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	EMU_ENTER();
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = emu_config_get()->memory;
	return CUDA_SUCCESS;
}

/* Attributes that are the same on all emulated devices; those not listed are unknown. */
static const struct {
	CUdevice_attribute attribute;
	int value;
} fixed_attributes[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
	{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000 },
	{ CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1 },
	{ CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0 },
	{ CU_DEVICE_ATTRIBUTE_INTEGRATED, 0 },
	{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
	{ CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0 },
	{ CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000 },
	{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64 },
	{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1048576 },
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
	{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
	{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 49152 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
	{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0 },
	{ CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
	{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 49152 },
	{ CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1 },
	{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32 },
	{ CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 1 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0 },
	{ CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0 },
	{ CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0 },
	{ CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, 0 },
	{ CU_DEVICE_ATTRIBUTE_NUMA_ID, -1 },
	{ CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0 },
};

/* Attributes that the configuration decides; false: not one of them. */
static bool configured_attribute(CUdevice_attribute attribute, CUdevice device, int *value)
{
	const struct emu_config *config = emu_config_get();

	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
		*value = config->exclusive ? CU_COMPUTEMODE_EXCLUSIVE_PROCESS :
					     CU_COMPUTEMODE_DEFAULT;
		return true;
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		*value = EMU_PCI_DOMAIN + device;
		return true;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = config->coherent ? 10 : 9;
		return true;
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
	case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
		*value = config->coherent;
		return true;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		*value = config->rdma;
		return true;
	default:
		return false;
	}
}

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (configured_attribute(attribute, device, value))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < sizeof(fixed_attributes) / sizeof(fixed_attributes[0]); i++) {
		if (fixed_attributes[i].attribute == attribute) {
			*value = fixed_attributes[i].value;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	EMU_ENTER();
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return get_attribute(value, attribute, device);
}

EMU_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	CUresult ret;

	EMU_ENTER();
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	ret = get_attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	if (ret == CUDA_SUCCESS)
		ret = get_attribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
					   device);
	return ret;
}

EMU_API CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	EMU_ENTER();
	if (!id || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(id, (size_t)size, "%04x:00:00.0", (unsigned)(EMU_PCI_DOMAIN + device));
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	unsigned domain, bus, slot, function = 0;

	EMU_ENTER();
	if (!device || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain < EMU_PCI_DOMAIN || bus != 0 || slot != 0 || function != 0 ||
	    !emu_device_valid((int)domain - EMU_PCI_DOMAIN))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = (int)domain - EMU_PCI_DOMAIN;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	EMU_ENTER();
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device) || !emu_device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = device != peer && emu_config_get()->peer;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute,
					 CUdevice from, CUdevice to)
{
	EMU_ENTER();
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(from) || !emu_device_valid(to) || from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attribute) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
		*value = emu_config_get()->peer;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
