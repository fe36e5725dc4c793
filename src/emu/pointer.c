/* SPDX-License-Identifier: MIT */
/* Pointer attributes: what kind of memory lies at an address. */
#include <string.h>

#include "memory.h"

static bool is_host(const struct emu_alloc *alloc)
{
	return alloc->kind == EMU_HOST || alloc->kind == EMU_HOST_REGISTERED;
}

static bool cpu_accessible(const struct emu_alloc *alloc)
{
	return is_host(alloc) || alloc->kind == EMU_MANAGED;
}

static CUresult put_int(void *data, int value)
{
	*(int *)data = value;
	return CUDA_SUCCESS;
}

static CUresult put_64(void *data, unsigned long long value)
{
	*(unsigned long long *)data = value;
	return CUDA_SUCCESS;
}

/* CUDA's booleans are answered as a 4-byte value, as the driver does. */
static CUresult get_attribute(const struct emu_alloc *alloc, CUpointer_attribute attribute,
			      CUdeviceptr ptr, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return put_64(data, (uintptr_t)alloc->ctx);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return put_int(data, is_host(alloc) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return put_64(data, ptr);
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return cpu_accessible(alloc) ? put_64(data, ptr) : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return CUDA_ERROR_NOT_SUPPORTED;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return put_int(data, alloc->sync_memops);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		return put_64(data, alloc->id);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return put_int(data, alloc->kind == EMU_MANAGED);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return put_int(data, alloc->device);
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return put_int(data, alloc->kind == EMU_MALLOC);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return put_64(data, alloc->va);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return put_64(data, alloc->size);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return put_int(data, 1);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return put_64(data, emu_vmm_handle_types(alloc));
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return put_int(data, emu_alloc_rdma_capable(alloc));
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return put_int(data, alloc->kind == EMU_VMM ?
				       alloc->access[alloc->device] :
				       CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return put_64(data, (uintptr_t)alloc->pool);
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return put_64(data, alloc->id);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

EMU_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct emu_alloc *alloc;

	EMU_ENTER();
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	alloc = emu_alloc_find(ptr);
	if (alloc)
		ret = get_attribute(alloc, attribute, ptr, data);
	emu_unlock();
	return ret;
}

/* What the plural form answers where the singular one fails: zero, and ordinal -2. */
static CUresult put_nothing(CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return put_int(data, 0);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return put_int(data, CU_DEVICE_INVALID);
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		if (attribute < CU_POINTER_ATTRIBUTE_CONTEXT ||
		    attribute > CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID)
			return CUDA_ERROR_INVALID_VALUE;
		return put_64(data, 0);
	}
}

EMU_API CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes,
					void **data, CUdeviceptr ptr)
{
	CUresult ret = CUDA_SUCCESS;
	struct emu_alloc *alloc;

	EMU_ENTER();
	if (count == 0 || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	alloc = emu_alloc_find(ptr);
	for (unsigned i = 0; i < count && ret == CUDA_SUCCESS; i++)
		if (!alloc || get_attribute(alloc, attributes[i], ptr, data[i]) != CUDA_SUCCESS)
			ret = put_nothing(attributes[i], data[i]);
	emu_unlock();
	return ret;
}

EMU_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
				       CUdeviceptr ptr)
{
	CUresult ret = CUDA_SUCCESS;
	struct emu_alloc *alloc;

	EMU_ENTER();
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	alloc = emu_alloc_find(ptr);
	if (!alloc || is_host(alloc) || alloc->kind == EMU_MANAGED)
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (alloc->kind == EMU_VMM)
		ret = CUDA_ERROR_NOT_SUPPORTED;
	else
		alloc->sync_memops = *(const int *)value != 0;
	emu_unlock();
	return ret;
}
