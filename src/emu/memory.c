/* SPDX-License-Identifier: MIT */
/* cuMemAlloc and its relatives: device and managed memory, sub-allocated like the real one. */
#include <stdlib.h>
#include <sys/mman.h>

#include "memory.h"

/*
 * Small buffers share a 2 MiB block, as they do on a real GPU; a neighbour in
 * the same 64 KiB GPU page is therefore pinned and mapped along.  Blocks are
 * not shared between contexts or pools.
 */
struct emu_slab {
	struct emu_slab *next;
	struct emu_block *block;
	uint64_t va;
	CUcontext ctx;
	CUmemoryPool pool;
	unsigned parts;
	struct emu_ranges unused;
};

static struct emu_slab *slabs;

static CUresult create_slab(CUcontext ctx, CUdevice device, CUmemoryPool pool,
			    struct emu_slab **out)
{
	struct emu_slab *slab = calloc(1, sizeof(*slab));
	CUresult ret = CUDA_ERROR_OUT_OF_MEMORY;

	if (!slab)
		return ret;
	if (!emu_ranges_give(&slab->unused, 0, EMU_BLOCK_SIZE))
		goto err_free;
	if (!emu_space_take(EMU_BLOCK_SIZE, EMU_BLOCK_SIZE, 0, &slab->va))
		goto err_ranges;
	ret = emu_block_create(device, EMU_BLOCK_SIZE, false, &slab->block);
	if (ret != CUDA_SUCCESS)
		goto err_space;
	slab->ctx = ctx;
	slab->pool = pool;
	slab->next = slabs;
	slabs = slab;
	*out = slab;
	return CUDA_SUCCESS;

err_space:
	emu_space_give(slab->va, EMU_BLOCK_SIZE);
err_ranges:
	emu_ranges_destroy(&slab->unused);
err_free:
	free(slab);
	return ret;
}

static void destroy_slab(struct emu_slab *slab)
{
	struct emu_slab **link = &slabs;

	while (*link != slab)
		link = &(*link)->next;
	*link = slab->next;
	emu_block_put(slab->block);
	emu_space_give(slab->va, EMU_BLOCK_SIZE);
	emu_ranges_destroy(&slab->unused);
	free(slab);
}

void emu_slab_give(struct emu_slab *slab, uint64_t offset, uint64_t size)
{
	emu_ranges_give(&slab->unused, offset, emu_round_up(size, EMU_SMALL_ALIGN));
	if (--slab->parts == 0)
		destroy_slab(slab);
}

static CUresult take_part(CUcontext ctx, CUdevice device, CUmemoryPool pool, uint64_t size,
			  struct emu_slab **out, uint64_t *offset)
{
	struct emu_slab *slab;
	CUresult ret;

	size = emu_round_up(size, EMU_SMALL_ALIGN);
	for (slab = slabs; slab; slab = slab->next)
		if (slab->ctx == ctx && slab->pool == pool &&
		    slab->block->extent.device == device &&
		    emu_ranges_take(&slab->unused, size, EMU_SMALL_ALIGN, offset))
			goto found;
	ret = create_slab(ctx, device, pool, &slab);
	if (ret != CUDA_SUCCESS)
		return ret;
	if (!emu_ranges_take(&slab->unused, size, EMU_SMALL_ALIGN, offset)) {
		destroy_slab(slab);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
found:
	slab->parts++;
	*out = slab;
	return CUDA_SUCCESS;
}

static CUresult allocate_small(struct emu_alloc *alloc)
{
	CUresult ret = take_part(alloc->ctx, alloc->device, alloc->pool, alloc->size,
				 &alloc->slab, &alloc->block_offset);

	if (ret != CUDA_SUCCESS)
		return ret;
	alloc->block = emu_block_get(alloc->slab->block);
	alloc->va = alloc->slab->va + alloc->block_offset;
	ret = emu_alloc_insert(alloc);
	if (ret != CUDA_SUCCESS) {
		emu_block_put(alloc->block);
		emu_slab_give(alloc->slab, alloc->block_offset, alloc->size);
	}
	return ret;
}

/* Lets the CPU use managed memory at its address, but not a forked child. */
static CUresult open_address(const struct emu_alloc *alloc)
{
	const struct emu_extent *extent = &alloc->block->extent;
	void *va = (void *)(uintptr_t)alloc->va;

	if (mmap(va, extent->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, extent->fd,
		 (off_t)extent->offset) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	madvise(va, extent->size, MADV_DONTFORK);
	return CUDA_SUCCESS;
}

static CUresult allocate_large(struct emu_alloc *alloc)
{
	uint64_t size = emu_round_up(alloc->size, EMU_BLOCK_SIZE);
	CUresult ret = emu_block_create(alloc->device, size, false, &alloc->block);

	if (ret != CUDA_SUCCESS)
		return ret;
	if (!emu_space_take(size, EMU_BLOCK_SIZE, 0, &alloc->va)) {
		emu_block_put(alloc->block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	alloc->space_va = alloc->va;
	alloc->space_size = size;
	if (alloc->kind == EMU_MANAGED)
		ret = open_address(alloc);
	if (ret == CUDA_SUCCESS)
		ret = emu_alloc_insert(alloc);
	if (ret != CUDA_SUCCESS) {
		emu_block_put(alloc->block);
		emu_space_give(alloc->space_va, alloc->space_size);
	}
	return ret;
}

CUresult emu_memory_allocate(CUcontext ctx, CUdevice device, enum emu_kind kind,
			     CUmemoryPool pool, uint64_t size, CUdeviceptr *ptr)
{
	struct emu_alloc alloc = {
		.size = size, .kind = kind, .device = device, .ctx = ctx, .pool = pool
	};
	CUresult ret;

	if (size > emu_config_get()->memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (size < EMU_BLOCK_SIZE && kind != EMU_MANAGED)
		ret = allocate_small(&alloc);
	else
		ret = allocate_large(&alloc);
	if (ret == CUDA_SUCCESS)
		*ptr = alloc.va;
	return ret;
}

void emu_memory_free_context(CUcontext ctx)
{
	struct emu_alloc *alloc;
	uint64_t from = 0;

	emu_lock();
	while ((alloc = emu_alloc_next(from)) != NULL) {
		from = alloc->va + 1;
		if (alloc->ctx == ctx)
			emu_alloc_remove(alloc);
	}
	emu_unlock();
}

EMU_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	*total = emu_config_get()->memory;
	*free_bytes = *total - emu_block_used(ctx->device);
	emu_unlock();
	return CUDA_SUCCESS;
}

EMU_API CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	CUcontext ctx;
	CUresult ret;

	EMU_ENTER_CONTEXT(&ctx);
	if (!ptr || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	ret = emu_memory_allocate(ctx, ctx->device, EMU_MALLOC, NULL, size, ptr);
	emu_unlock();
	return ret;
}

EMU_API CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned flags)
{
	CUcontext ctx;
	CUresult ret;

	EMU_ENTER_CONTEXT(&ctx);
	if (!ptr || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	ret = emu_memory_allocate(ctx, ctx->device, EMU_MANAGED, NULL, size, ptr);
	emu_unlock();
	return ret;
}

/* cuMemFree takes the start of what cuMemAlloc, ...Managed or ...Async gave. */
EMU_API CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	struct emu_alloc *alloc;
	CUcontext ctx;
	bool found;

	EMU_ENTER_CONTEXT(&ctx);
	if (ptr == 0)
		return CUDA_SUCCESS;
	emu_lock();
	alloc = emu_alloc_find(ptr);
	found = alloc && alloc->va == ptr && !alloc->freeing &&
		(alloc->kind == EMU_MALLOC || alloc->kind == EMU_MANAGED ||
		 alloc->kind == EMU_POOL);
	if (found)
		emu_alloc_remove(alloc);
	emu_unlock();
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct emu_alloc *alloc;
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	emu_lock();
	alloc = emu_alloc_find(ptr);
	if (alloc) {
		if (base)
			*base = alloc->va;
		if (size)
			*size = alloc->size;
	}
	emu_unlock();
	return alloc ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
