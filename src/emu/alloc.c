/* SPDX-License-Identifier: MIT */
/* The table of allocations and the way from an address to bytes. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

static struct emu_alloc **table;
static size_t count, capacity;
static unsigned long long last_id;

/* Position of the first allocation that starts after address. */
static size_t find_after(uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table[middle]->va > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct emu_alloc *emu_alloc_find(uint64_t address)
{
	size_t at = find_after(address);

	if (at == 0 || address - table[at - 1]->va >= table[at - 1]->size)
		return NULL;
	return table[at - 1];
}

struct emu_alloc *emu_alloc_next(uint64_t address)
{
	size_t at = address == 0 ? 0 : find_after(address - 1);

	return at < count ? table[at] : NULL;
}

struct emu_alloc *emu_alloc_meeting(uint64_t start, uint64_t end)
{
	struct emu_alloc *alloc = emu_alloc_find(start);

	if (!alloc)
		alloc = emu_alloc_next(start);
	return alloc && alloc->va < end ? alloc : NULL;
}

struct emu_object emu_alloc_object(const struct emu_alloc *alloc)
{
	if (!alloc->block || alloc->kind == EMU_VMM)
		return (struct emu_object){ alloc->va, alloc->size, alloc->block_offset };
	return (struct emu_object){
		alloc->va - alloc->block_offset, alloc->block->extent.size, 0
	};
}

static bool make_room(void)
{
	size_t larger = capacity * 2 + 64;
	struct emu_alloc **list;

	if (count < capacity)
		return true;
	list = realloc(table, larger * sizeof(*list));
	if (!list)
		return false;
	table = list;
	capacity = larger;
	return true;
}

/*
 * The provider learns the address of the whole memory object, because a pin may
 * reach beyond the one allocation.  What GPUDirect RDMA cannot reach stays unknown.
 */
static const struct emu_provider *binding_provider(const struct emu_alloc *alloc)
{
	const struct emu_provider *provider = alloc->block ? alloc->block->provider : NULL;

	if (!provider || !provider->bind || alloc->kind == EMU_MANAGED ||
	    !emu_alloc_rdma_capable(alloc))
		return NULL;
	return provider;
}

static int bind_address(const struct emu_alloc *alloc)
{
	const struct emu_provider *provider = binding_provider(alloc);
	struct emu_object object = emu_alloc_object(alloc);

	return provider ? provider->bind(&alloc->block->extent, object.block_offset, object.size,
					 object.va) : 0;
}

static void unbind_address(const struct emu_alloc *alloc)
{
	const struct emu_provider *provider = binding_provider(alloc);
	struct emu_object object = emu_alloc_object(alloc);

	if (provider)
		provider->unbind(&alloc->block->extent, object.block_offset, object.size,
				 object.va);
}

CUresult emu_alloc_insert(const struct emu_alloc *alloc)
{
	struct emu_alloc *copy = malloc(sizeof(*copy));
	size_t at;
	int ret;

	if (!copy || !make_room()) {
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ret = bind_address(alloc);
	if (ret != 0) {
		free(copy);
		return emu_result(ret);
	}
	*copy = *alloc;
	copy->id = ++last_id;
	at = find_after(copy->va);
	memmove(&table[at + 1], &table[at], (count - at) * sizeof(*table));
	table[at] = copy;
	count++;
	return CUDA_SUCCESS;
}

/* Managed memory is accessible at its address; afterwards nothing is again. */
static void close_address(uint64_t va, uint64_t size)
{
	mmap((void *)(uintptr_t)va, size, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void emu_alloc_remove(struct emu_alloc *alloc)
{
	size_t at = find_after(alloc->va) - 1;

	memmove(&table[at], &table[at + 1], (count - at - 1) * sizeof(*table));
	count--;
	unbind_address(alloc);
	if (alloc->kind == EMU_MANAGED)
		close_address(alloc->space_va, alloc->space_size);
	if (alloc->kind == EMU_HOST)
		munmap((void *)(uintptr_t)alloc->va, alloc->space_size);
	else if (alloc->space_size > 0)
		emu_space_give(alloc->space_va, alloc->space_size);
	if (alloc->block)
		emu_block_put(alloc->block);
	if (alloc->slab)
		emu_slab_give(alloc->slab, alloc->block_offset, alloc->size);
	if (alloc->pool)
		emu_pool_freed(alloc->pool, alloc->size);
	free(alloc);
}

static bool access_allows(const struct emu_alloc *alloc, bool write)
{
	unsigned needed = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE :
				  CU_MEM_ACCESS_FLAGS_PROT_READ;

	if (alloc->kind != EMU_VMM)
		return true;
	for (int device = 0; device < EMU_MAX_DEVICES; device++)
		if ((alloc->access[device] & needed) == needed)
			return true;
	return false;
}

CUresult emu_span_get(uint64_t address, size_t size, bool write, struct emu_span *span)
{
	struct emu_alloc *alloc = emu_alloc_find(address);
	uint64_t left;

	if (!alloc) {
		if (emu_space_contains(address))
			return CUDA_ERROR_INVALID_VALUE;
		*span = (struct emu_span){
			.cpu = (uint8_t *)(uintptr_t)address, .size = size, .pageable = true
		};
		return CUDA_SUCCESS;
	}
	if (!access_allows(alloc, write))
		return CUDA_ERROR_INVALID_VALUE;
	left = alloc->va + alloc->size - address;
	*span = (struct emu_span){ .size = size < left ? size : (size_t)left };
	if (alloc->block) {
		span->block = emu_block_get(alloc->block);
		span->cpu = alloc->block->cpu + alloc->block_offset + (address - alloc->va);
	} else {
		span->cpu = (uint8_t *)(uintptr_t)address;
	}
	return CUDA_SUCCESS;
}
