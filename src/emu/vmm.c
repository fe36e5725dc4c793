/* SPDX-License-Identifier: MIT */
/* Virtual memory management: physical handles mapped into reserved addresses. */
#include "vmm.h"

#include <stdlib.h>

/* An address range of cuMemAddressReserve. */
struct reservation {
	struct reservation *next;
	uint64_t va, size;
};

static struct emu_vmm_handle *handles;
static struct reservation *reservations;

unsigned emu_vmm_handle_types(const struct emu_alloc *alloc)
{
	return alloc->vmm ? alloc->vmm->prop.requestedHandleTypes : CU_MEM_HANDLE_TYPE_NONE;
}

bool emu_alloc_rdma_capable(const struct emu_alloc *alloc)
{
	if (!emu_config_get()->rdma)
		return false;
	return alloc->vmm ? alloc->vmm->prop.allocFlags.gpuDirectRDMACapable : true;
}

struct emu_vmm_handle *emu_vmm_find(CUmemGenericAllocationHandle value)
{
	struct emu_vmm_handle *handle = handles;

	while (handle && (uintptr_t)handle != value)
		handle = handle->next;
	return handle && handle->users > 0 ? handle : NULL;
}

struct emu_vmm_handle *emu_vmm_add(struct emu_block *block, const CUmemAllocationProp *prop)
{
	struct emu_vmm_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->block = block;
	handle->prop = *prop;
	handle->refs = 1;
	handle->users = 1;
	handle->next = handles;
	handles = handle;
	return handle;
}

void emu_vmm_put(struct emu_vmm_handle *handle)
{
	struct emu_vmm_handle **link = &handles;

	if (--handle->refs > 0)
		return;
	while (*link != handle)
		link = &(*link)->next;
	*link = handle->next;
	emu_block_put(handle->block);
	free(handle);
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!emu_device_valid(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (prop->allocFlags.compressionType != 0 || prop->allocFlags.usage != 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuMemGetAllocationGranularity(size_t *granularity,
					       const CUmemAllocationProp *prop,
					       CUmemAllocationGranularity_flags option)
{
	CUresult ret;

	EMU_ENTER();
	if (!granularity || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
			     option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	ret = check_prop(prop);
	if (ret == CUDA_SUCCESS)
		*granularity = EMU_BLOCK_SIZE;
	return ret;
}

EMU_API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
			     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct emu_vmm_handle *handle;
	struct emu_block *block;
	CUresult ret;

	EMU_ENTER();
	if (!out || flags != 0 || size == 0 || size % EMU_BLOCK_SIZE != 0)
		return CUDA_ERROR_INVALID_VALUE;
	ret = check_prop(prop);
	if (ret != CUDA_SUCCESS)
		return ret;
	if (prop->allocFlags.gpuDirectRDMACapable && !emu_config_get()->rdma)
		return CUDA_ERROR_NOT_SUPPORTED;
	emu_lock();
	ret = emu_block_create(prop->location.id, size,
			       prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE, &block);
	if (ret == CUDA_SUCCESS) {
		handle = emu_vmm_add(block, prop);
		if (handle) {
			*out = (uintptr_t)handle;
		} else {
			emu_block_put(block);
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemRelease(CUmemGenericAllocationHandle value)
{
	struct emu_vmm_handle *handle;

	EMU_ENTER();
	emu_lock();
	handle = emu_vmm_find(value);
	if (handle) {
		handle->users--;
		emu_vmm_put(handle);
	}
	emu_unlock();
	return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
				     CUdeviceptr addr, unsigned long long flags)
{
	struct reservation *reservation;
	CUresult ret = CUDA_SUCCESS;

	EMU_ENTER();
	if (!ptr || flags != 0 || size == 0 || size % EMU_BLOCK_SIZE != 0 ||
	    (alignment & (alignment - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < EMU_BLOCK_SIZE)
		alignment = EMU_BLOCK_SIZE;
	reservation = calloc(1, sizeof(*reservation));
	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reservation->size = size;
	emu_lock();
	if (emu_space_take(size, alignment, addr, &reservation->va)) {
		reservation->next = reservations;
		reservations = reservation;
		*ptr = reservation->va;
	} else {
		free(reservation);
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	emu_unlock();
	return ret;
}

static bool anything_mapped(uint64_t va, uint64_t size)
{
	const struct emu_alloc *alloc = emu_alloc_find(va);

	if (!alloc)
		alloc = emu_alloc_next(va);
	return alloc && alloc->va < va + size;
}

EMU_API CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct reservation **link = &reservations, *found;

	EMU_ENTER();
	emu_lock();
	while (*link && ((*link)->va != ptr || (*link)->size != size))
		link = &(*link)->next;
	found = *link;
	if (found && anything_mapped(ptr, size))
		found = NULL;
	if (found) {
		*link = found->next;
		emu_space_give(found->va, found->size);
	}
	emu_unlock();
	free(found);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool reserved(uint64_t va, uint64_t size)
{
	const struct reservation *r;

	for (r = reservations; r; r = r->next)
		if (va >= r->va && va - r->va <= r->size && size <= r->size - (va - r->va))
			return true;
	return false;
}

EMU_API CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
			  CUmemGenericAllocationHandle value, unsigned long long flags)
{
	struct emu_vmm_handle *handle;
	struct emu_alloc alloc = { .va = ptr, .size = size, .kind = EMU_VMM };
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	EMU_ENTER();
	if (flags != 0 || size == 0 || (ptr | size | offset) % EMU_BLOCK_SIZE != 0)
		return ret;
	emu_lock();
	handle = emu_vmm_find(value);
	if (handle && reserved(ptr, size) && !anything_mapped(ptr, size) &&
	    offset <= handle->block->extent.size &&
	    size <= handle->block->extent.size - offset) {
		alloc.device = handle->prop.location.id;
		alloc.block = handle->block;
		alloc.block_offset = offset;
		alloc.vmm = handle;
		ret = emu_alloc_insert(&alloc);
	}
	if (ret == CUDA_SUCCESS) {
		emu_block_get(handle->block);
		handle->refs++;
	}
	emu_unlock();
	return ret;
}

/*
 * Calls visit for each mapping of [ptr, ptr + size), which must consist of
 * whole mappings without gaps.
 */
static CUresult for_mappings(CUdeviceptr ptr, size_t size,
			     void (*visit)(struct emu_alloc *alloc, void *arg), void *arg)
{
	uint64_t end = ptr + size, at;
	struct emu_alloc *alloc;

	if (size == 0 || end < ptr)
		return CUDA_ERROR_INVALID_VALUE;
	for (at = ptr; at < end; at = alloc->va + alloc->size) {
		alloc = emu_alloc_find(at);
		if (!alloc || alloc->kind != EMU_VMM || alloc->va != at ||
		    alloc->size > end - at)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (at = ptr; at < end;) {
		alloc = emu_alloc_find(at);
		at = alloc->va + alloc->size;
		visit(alloc, arg);
	}
	return CUDA_SUCCESS;
}

static void unmap(struct emu_alloc *alloc, void *arg)
{
	struct emu_vmm_handle *handle = alloc->vmm;

	(void)arg;
	emu_alloc_remove(alloc);
	emu_vmm_put(handle);
}

EMU_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult ret;

	EMU_ENTER();
	emu_lock();
	ret = for_mappings(ptr, size, unmap, NULL);
	emu_unlock();
	return ret;
}

/* The devices that cuMemSetAccess names and what they may do. */
struct access_request {
	const CUmemAccessDesc *desc;
	size_t count;
	bool foreign;	/* a device that does not own the memory is among them */
};

static void note_foreign(struct emu_alloc *alloc, void *arg)
{
	struct access_request *request = arg;

	for (size_t i = 0; i < request->count; i++)
		request->foreign |= request->desc[i].location.id != alloc->device;
}

static void set_access(struct emu_alloc *alloc, void *arg)
{
	const struct access_request *request = arg;

	for (size_t i = 0; i < request->count; i++)
		alloc->access[request->desc[i].location.id] =
			(unsigned char)request->desc[i].flags;
}

static CUresult check_access(const CUmemAccessDesc *desc)
{
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!emu_device_valid(desc->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	    desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
				size_t count)
{
	struct access_request request = { .desc = desc, .count = count };
	CUresult ret = CUDA_SUCCESS;

	EMU_ENTER();
	if (!desc || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && ret == CUDA_SUCCESS; i++)
		ret = check_access(&desc[i]);
	if (ret != CUDA_SUCCESS)
		return ret;
	emu_lock();
	ret = for_mappings(ptr, size, note_foreign, &request);
	if (ret == CUDA_SUCCESS && request.foreign && !emu_config_get()->peer)
		ret = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (ret == CUDA_SUCCESS)
		ret = for_mappings(ptr, size, set_access, &request);
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
				CUdeviceptr ptr)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct emu_alloc *alloc;

	EMU_ENTER();
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !emu_device_valid(location->id))
		return ret;
	emu_lock();
	alloc = emu_alloc_find(ptr);
	if (alloc && alloc->kind == EMU_VMM) {
		*flags = alloc->access[location->id];
		ret = CUDA_SUCCESS;
	}
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							CUmemGenericAllocationHandle value)
{
	struct emu_vmm_handle *handle;

	EMU_ENTER();
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	handle = emu_vmm_find(value);
	if (handle)
		*prop = handle->prop;
	emu_unlock();
	return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *addr)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct emu_alloc *alloc;

	EMU_ENTER();
	if (!out)
		return ret;
	emu_lock();
	alloc = emu_alloc_find((uintptr_t)addr);
	if (alloc && alloc->vmm) {
		alloc->vmm->refs++;
		alloc->vmm->users++;
		*out = (uintptr_t)alloc->vmm;
		ret = CUDA_SUCCESS;
	}
	emu_unlock();
	return ret;
}
