/* SPDX-License-Identifier: MIT */
/* Sharing cuMemAlloc memory with other processes by 64-byte handles. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

/*
 * A handle says in which process and under which descriptor the memory's file
 * is open; the importer opens it through /proc.  The file's identity is part
 * of the handle, so that a descriptor that was closed and used for something
 * else in the meantime is not taken for memory.
 */
struct wire {
	uint32_t magic;
	int32_t pid;
	int32_t fd;
	int32_t device;
	uint64_t file_device, inode;
	uint64_t block_offset, block_size;	/* of the block inside the file */
	uint32_t offset;			/* of the allocation inside the block */
	uint32_t reserved;
	uint64_t size;
};

#define WIRE_MAGIC 0x47454d55u

_Static_assert(sizeof(struct wire) == CU_IPC_HANDLE_SIZE, "a handle has 64 bytes");

static CUresult describe(const struct emu_alloc *alloc, struct wire *wire)
{
	const struct emu_extent *extent = &alloc->block->extent;
	struct stat info;

	if (fstat(extent->fd, &info) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*wire = (struct wire){
		.magic = WIRE_MAGIC,
		.pid = getpid(),
		.fd = extent->fd,
		.device = alloc->device,
		.file_device = info.st_dev,
		.inode = info.st_ino,
		.block_offset = extent->offset,
		.block_size = extent->size,
		.offset = (uint32_t)alloc->block_offset,
		.size = alloc->size,
	};
	alloc->block->shared = true;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct emu_alloc *alloc;
	struct wire wire;
	CUcontext ctx;
	CUresult ret;

	EMU_ENTER_CONTEXT(&ctx);
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	alloc = emu_alloc_find(ptr);
	if (!alloc || alloc->kind != EMU_MALLOC)
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (alloc->block->dmabufs)
		ret = CUDA_ERROR_NOT_SUPPORTED;
	else
		ret = describe(alloc, &wire);
	emu_unlock();
	if (ret == CUDA_SUCCESS)
		memcpy(handle, &wire, sizeof(wire));
	return ret;
}

static CUresult check_wire(const struct wire *wire, CUcontext ctx)
{
	if (wire->magic != WIRE_MAGIC || wire->size == 0 || !emu_device_valid(wire->device) ||
	    wire->block_size % EMU_BLOCK_SIZE != 0 || wire->offset > wire->block_size ||
	    wire->size > wire->block_size - wire->offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (wire->pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (wire->device != ctx->device && !emu_config_get()->peer)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult open_file(const struct wire *wire, int *fd)
{
	struct stat info;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)wire->pid, (int)wire->fd);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fstat(*fd, &info) != 0 || info.st_dev != wire->file_device ||
	    info.st_ino != wire->inode ||
	    (uint64_t)info.st_size < wire->block_offset + wire->block_size) {
		close(*fd);
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* The rest is called with the lock held. */
static struct emu_alloc *find_opened(const struct wire *wire, CUcontext ctx)
{
	struct emu_alloc *alloc;
	uint64_t from = 0;

	while ((alloc = emu_alloc_next(from)) != NULL) {
		if (alloc->kind == EMU_IPC && alloc->ctx == ctx &&
		    memcmp(alloc->ipc_key, wire, sizeof(*wire)) == 0)
			return alloc;
		from = alloc->va + 1;
	}
	return NULL;
}

static CUresult import(const struct wire *wire, CUcontext ctx, CUdeviceptr *ptr)
{
	struct emu_alloc alloc = {
		.size = wire->size, .kind = EMU_IPC, .device = wire->device, .ctx = ctx,
		.block_offset = wire->offset, .space_size = wire->block_size, .opens = 1,
	};
	CUresult ret;
	int fd;

	memcpy(alloc.ipc_key, wire, sizeof(*wire));
	ret = open_file(wire, &fd);
	if (ret != CUDA_SUCCESS)
		return ret;
	ret = emu_block_import(fd, wire->device, wire->block_offset, wire->block_size,
			       &alloc.block);
	if (ret != CUDA_SUCCESS)
		return ret;
	ret = CUDA_ERROR_OUT_OF_MEMORY;
	if (!emu_space_take(wire->block_size, EMU_BLOCK_SIZE, 0, &alloc.space_va))
		goto err_block;
	alloc.va = alloc.space_va + wire->offset;
	ret = emu_alloc_insert(&alloc);
	if (ret != CUDA_SUCCESS)
		goto err_space;
	*ptr = alloc.va;
	return CUDA_SUCCESS;

err_space:
	emu_space_give(alloc.space_va, alloc.space_size);
err_block:
	emu_block_put(alloc.block);
	return ret;
}

EMU_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags)
{
	struct emu_alloc *opened;
	struct wire wire;
	CUcontext ctx;
	CUresult ret;

	EMU_ENTER_CONTEXT(&ctx);
	if (!ptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&wire, &handle, sizeof(wire));
	ret = check_wire(&wire, ctx);
	if (ret != CUDA_SUCCESS)
		return ret;
	emu_lock();
	opened = find_opened(&wire, ctx);
	if (opened) {
		opened->opens++;
		*ptr = opened->va;
	} else {
		ret = import(&wire, ctx, ptr);
	}
	emu_unlock();
	return ret;
}

EMU_API CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct emu_alloc *alloc;
	CUcontext ctx;
	bool found;

	EMU_ENTER_CONTEXT(&ctx);
	emu_lock();
	alloc = emu_alloc_find(ptr);
	found = alloc && alloc->kind == EMU_IPC && alloc->va == ptr;
	if (found && --alloc->opens == 0)
		emu_alloc_remove(alloc);
	emu_unlock();
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
