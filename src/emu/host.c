/* SPDX-License-Identifier: MIT */
/* Page-locked host memory: allocated by CUDA or registered with it. */
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define ALLOC_FLAGS \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)

static CUresult allocate(CUcontext ctx, void **ptr, size_t size, unsigned flags)
{
	struct emu_alloc alloc = {
		.size = size, .kind = EMU_HOST, .device = ctx->device, .ctx = ctx,
		.host_flags = flags | CU_MEMHOSTALLOC_DEVICEMAP,
	};
	CUresult ret;
	void *base;

	alloc.space_size = emu_round_up(size, (uint64_t)sysconf(_SC_PAGESIZE));
	if (alloc.space_size < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	base = mmap(NULL, alloc.space_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (base == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.va = (uintptr_t)base;
	emu_lock();
	ret = emu_alloc_insert(&alloc);
	emu_unlock();
	if (ret != CUDA_SUCCESS)
		munmap(base, alloc.space_size);
	else
		*ptr = base;
	return ret;
}

EMU_API CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!ptr || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	return allocate(ctx, ptr, size, 0);
}

EMU_API CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!ptr || size == 0 || (flags & ~(unsigned)ALLOC_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	return allocate(ctx, ptr, size, flags);
}

/* Removes the allocation of a kind that starts at ptr. */
static bool remove_start(const void *ptr, enum emu_kind kind)
{
	struct emu_alloc *alloc;
	bool found;

	emu_lock();
	alloc = emu_alloc_find((uintptr_t)ptr);
	found = alloc && alloc->kind == kind && alloc->va == (uintptr_t)ptr;
	if (found)
		emu_alloc_remove(alloc);
	emu_unlock();
	return found;
}

EMU_API CUresult cuMemFreeHost(void *ptr)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	return remove_start(ptr, EMU_HOST) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device_ptr, void *ptr, unsigned flags)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct emu_alloc *alloc;
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!device_ptr || flags != 0)
		return ret;
	emu_lock();
	alloc = emu_alloc_find((uintptr_t)ptr);
	if (alloc && (alloc->kind == EMU_HOST || alloc->kind == EMU_HOST_REGISTERED)) {
		*device_ptr = (uintptr_t)ptr;
		ret = CUDA_SUCCESS;
	}
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemHostGetFlags(unsigned *flags, void *ptr)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct emu_alloc *alloc;
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!flags)
		return ret;
	emu_lock();
	alloc = emu_alloc_find((uintptr_t)ptr);
	if (alloc && alloc->kind == EMU_HOST) {
		*flags = alloc->host_flags;
		ret = CUDA_SUCCESS;
	}
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags)
{
	uint64_t va = (uintptr_t)ptr;
	struct emu_alloc alloc = { .va = va, .size = size, .kind = EMU_HOST_REGISTERED };
	const struct emu_alloc *next;
	CUcontext ctx;
	CUresult ret;

	EMU_ENTER_CONTEXT(&ctx);
	if (flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!ptr || size == 0 || va + size < va || (flags & ~(unsigned)REGISTER_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	alloc.device = ctx->device;
	alloc.ctx = ctx;
	alloc.host_flags = flags;
	emu_lock();
	next = emu_alloc_next(va);
	if (emu_space_contains(va))
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (emu_alloc_find(va) || (next && next->va < va + size))
		ret = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else
		ret = emu_alloc_insert(&alloc);
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemHostUnregister(void *ptr)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	return remove_start(ptr, EMU_HOST_REGISTERED) ? CUDA_SUCCESS :
		CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
