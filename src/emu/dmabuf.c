/* SPDX-License-Identifier: MIT */
/* cuMemGetHandleForAddressRange: descriptors that stand for a range of device memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

/* The first driver whose dma-bufs the CPU can map (13.3). */
#define MAPPABLE_VERSION 13030

/*
 * Offset 0 of a dma-buf is the start of its range, which a file shared by many
 * ranges cannot offer.  So the bytes of an exported range move to a file of
 * their own, and the driver's mapping of the block follows.  A part of a block
 * can be in one such file only: overlapping ranges are refused, unless they
 * begin alike and fit.
 */
struct emu_dmabuf {
	struct emu_dmabuf *next;
	uint64_t offset, size;		/* inside the block */
	int fd;
};

void emu_dmabuf_close_all(struct emu_block *block)
{
	struct emu_dmabuf *dmabuf, *next;

	for (dmabuf = block->dmabufs; dmabuf; dmabuf = next) {
		next = dmabuf->next;
		close(dmabuf->fd);
		free(dmabuf);
	}
	block->dmabufs = NULL;
}

/* Fills a new file with the range's bytes and puts it in the range's place. */
static int move_range(uint8_t *cpu, uint64_t size)
{
	int fd = memfd_create("gdrcopy-emu-dmabuf", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) != 0 ||
	    pwrite(fd, cpu, size, 0) != (ssize_t)size ||
	    mmap(cpu, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		close(fd);
		return -1;
	}
	madvise(cpu, size, MADV_DONTFORK);
	return fd;
}

static CUresult find_dmabuf(const struct emu_block *block, uint64_t offset, uint64_t size,
			    struct emu_dmabuf **out)
{
	struct emu_dmabuf *dmabuf;

	*out = NULL;
	for (dmabuf = block->dmabufs; dmabuf; dmabuf = dmabuf->next) {
		if (dmabuf->offset == offset && size <= dmabuf->size) {
			*out = dmabuf;
			return CUDA_SUCCESS;
		}
		if (offset < dmabuf->offset + dmabuf->size && dmabuf->offset < offset + size)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

static CUresult create_dmabuf(struct emu_block *block, uint64_t offset, uint64_t size,
			      struct emu_dmabuf **out)
{
	struct emu_dmabuf *dmabuf = calloc(1, sizeof(*dmabuf));

	if (!dmabuf)
		return CUDA_ERROR_OUT_OF_MEMORY;
	dmabuf->offset = offset;
	dmabuf->size = size;
	dmabuf->fd = move_range(block->cpu + offset, size);
	if (dmabuf->fd < 0) {
		free(dmabuf);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	dmabuf->next = block->dmabufs;
	block->dmabufs = dmabuf;
	*out = dmabuf;
	return CUDA_SUCCESS;
}

static CUresult duplicate(int source, int *fd)
{
	*fd = fcntl(source, F_DUPFD_CLOEXEC, 0);
	return *fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* A block whose file is in use elsewhere must stay where it is. */
static CUresult export_range(struct emu_block *block, uint64_t offset, uint64_t size, int *fd)
{
	struct emu_dmabuf *dmabuf;
	CUresult ret;

	if (block->pins > 0 || block->shared)
		return CUDA_ERROR_NOT_SUPPORTED;
	ret = find_dmabuf(block, offset, size, &dmabuf);
	if (ret == CUDA_SUCCESS && !dmabuf)
		ret = create_dmabuf(block, offset, size, &dmabuf);
	return ret == CUDA_SUCCESS ? duplicate(dmabuf->fd, fd) : ret;
}

/* Older drivers give dma-bufs for network cards only: mmap of this one fails too. */
static CUresult export_opaque(int *fd)
{
	*fd = eventfd(0, EFD_CLOEXEC);
	return *fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult export_dmabuf(uint64_t ptr, uint64_t size, int *fd)
{
	const struct emu_alloc *alloc = emu_alloc_meeting(ptr, ptr + size);
	struct emu_object object;
	uint64_t offset;

	if (!alloc || (alloc->kind != EMU_MALLOC && alloc->kind != EMU_VMM))
		return CUDA_ERROR_INVALID_VALUE;
	object = emu_alloc_object(alloc);
	if (ptr < object.va || ptr + size > object.va + object.size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_alloc_rdma_capable(alloc))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (emu_config_get()->driver_version < MAPPABLE_VERSION)
		return export_opaque(fd);
	/* Memory whose own file begins with the range needs no move. */
	offset = object.block_offset + (ptr - object.va);
	if (alloc->block->extent.own_file && offset == 0 && !alloc->block->dmabufs) {
		alloc->block->shared = true;
		return duplicate(alloc->block->extent.fd, fd);
	}
	return export_range(alloc->block, offset, size, fd);
}

EMU_API CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t size,
					       CUmemRangeHandleType type, unsigned long long flags)
{
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	CUcontext ctx;
	CUresult ret;
	int fd;

	EMU_ENTER_CONTEXT(&ctx);
	if (!handle || size == 0 || ((ptr | size) & mask) != 0 || ptr + size < ptr ||
	    type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
	    (flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags != 0 && !emu_config_get()->coherent)
		return CUDA_ERROR_NOT_SUPPORTED;
	emu_lock();
	ret = export_dmabuf(ptr, size, &fd);
	emu_unlock();
	if (ret == CUDA_SUCCESS)
		*(int *)handle = fd;
	return ret;
}

/* The processor's own ordering is enough: there is no bus in between. */
EMU_API CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
					    CUflushGPUDirectRDMAWritesScope scope)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
	    (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
	     scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
		return CUDA_ERROR_INVALID_VALUE;
	__sync_synchronize();
	return CUDA_SUCCESS;
}
