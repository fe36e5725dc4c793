/* SPDX-License-Identifier: MIT */
/* Emulated GPU memory: physical blocks, addresses, and what lies at an address. */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "context.h"
#include "provider.h"
#include "ranges.h"

#define EMU_GPU_PAGE ((uint64_t)65536)
#define EMU_SMALL_ALIGN ((uint64_t)512)	/* cuMemAlloc's alignment on real GPUs */

static inline uint64_t emu_round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

/*
 * Physical memory.  It stays while an allocation, a pin, a handle or a running
 * operation refers to it, so that freeing memory that is mapped, pinned or
 * being copied behaves as on a real GPU: the old bytes stay where they were.
 */
struct emu_block {
	struct emu_extent extent;
	const struct emu_provider *provider;	/* NULL: imported, fd is ours to close */
	uint8_t *cpu;		/* the driver's own mapping; device addresses are not accessible */
	unsigned refs;
	unsigned pins;			/* references that gdrcopy_emu_entry's hold() took */
	bool shared;			/* its file was given to others, so it must not move */
	struct emu_dmabuf *dmabufs;	/* parts that were moved to files of their own */
};

enum emu_kind {
	EMU_MALLOC,
	EMU_VMM,
	EMU_MANAGED,
	EMU_POOL,
	EMU_IPC,
	EMU_HOST,		/* cuMemHostAlloc */
	EMU_HOST_REGISTERED
};

/* One allocation.  Host kinds have no block. */
struct emu_alloc {
	uint64_t va, size;		/* as the program asked */
	enum emu_kind kind;
	CUdevice device;
	CUcontext ctx;			/* NULL: VMM memory belongs to no context */
	struct emu_block *block;
	uint64_t block_offset;		/* of va inside the block */
	struct emu_slab *slab;		/* the shared block that it is a part of */
	uint64_t space_va, space_size;	/* addresses to give back; 0: somebody else's */
	unsigned long long id;		/* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	bool sync_memops;
	bool freeing;			/* cuMemFreeAsync is under way */
	unsigned host_flags;
	CUmemoryPool pool;
	struct emu_vmm_handle *vmm;
	unsigned char access[EMU_MAX_DEVICES];	/* VMM: CUmemAccess_flags of each device */
	unsigned opens;			/* IPC: opened this often */
	unsigned char ipc_key[CU_IPC_HANDLE_SIZE];	/* IPC: the handle that was opened */
};

/* All of the following is called with the lock held, unless it says otherwise. */

/* Addresses: parts of reserved, inaccessible ranges of this process. */
bool emu_space_take(uint64_t size, uint64_t alignment, uint64_t wanted, uint64_t *va);
bool emu_space_contains(uint64_t address);	/* a device address, in use or not */
void emu_space_give(uint64_t va, uint64_t size);

/* Blocks; size is a multiple of EMU_BLOCK_SIZE.  A new one has one reference. */
CUresult emu_block_create(CUdevice device, uint64_t size, bool shareable,
			  struct emu_block **block);
/* Takes fd, also on failure. */
CUresult emu_block_import(int fd, CUdevice device, uint64_t offset, uint64_t size,
			  struct emu_block **block);
struct emu_block *emu_block_get(struct emu_block *block);
void emu_block_put(struct emu_block *block);
uint64_t emu_block_used(CUdevice device);

/* The table of allocations, sorted by address. */
struct emu_alloc *emu_alloc_find(uint64_t address);
struct emu_alloc *emu_alloc_next(uint64_t address);	/* first that starts at or after */
struct emu_alloc *emu_alloc_meeting(uint64_t start, uint64_t end);

/*
 * The memory object that an allocation is part of, which a pin or an export
 * cannot leave: that of cuMemAlloc is the whole block, gaps and neighbours
 * included, as on a real GPU; that of a VMM mapping is the mapped part.
 */
struct emu_object {
	uint64_t va, size;
	uint64_t block_offset;		/* of va inside the block */
};
struct emu_object emu_alloc_object(const struct emu_alloc *alloc);

CUresult emu_alloc_insert(const struct emu_alloc *alloc);
/* Gives back what the allocation holds: block, addresses, table entry. */
void emu_alloc_remove(struct emu_alloc *alloc);

/* Device memory of a kind that shares blocks (MALLOC, POOL) or owns one (MANAGED). */
CUresult emu_memory_allocate(CUcontext ctx, CUdevice device, enum emu_kind kind,
			     CUmemoryPool pool, uint64_t size, CUdeviceptr *ptr);

/* Everything that the context allocated; takes the lock itself. */
void emu_memory_free_context(CUcontext ctx);

/*
 * What the driver uses to reach bytes: as much of [address, address + size) as
 * lies in one allocation.  Addresses outside the device's are the host's own.
 * write decides whether VMM access rights suffice (those of any device: copies
 * between devices need no peer access).  The block is referenced (NULL for the
 * host's memory); give it back with the lock held.
 */
struct emu_span {
	uint8_t *cpu;
	size_t size;
	struct emu_block *block;
	bool pageable;		/* the host's own memory, unknown to CUDA */
};
CUresult emu_span_get(uint64_t address, size_t size, bool write, struct emu_span *span);

/* Handle types that the memory can be exported as, and whether it may be pinned. */
unsigned emu_vmm_handle_types(const struct emu_alloc *alloc);
bool emu_alloc_rdma_capable(const struct emu_alloc *alloc);

/* Pools count what they have given out; dma-bufs go with their block. */
void emu_pool_freed(CUmemoryPool pool, uint64_t size);
void emu_dmabuf_close_all(struct emu_block *block);

/* The slab that a part belongs to: gives the part back. */
void emu_slab_give(struct emu_slab *slab, uint64_t offset, uint64_t size);

#endif
