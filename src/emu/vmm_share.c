/* SPDX-License-Identifier: MIT */
/* Hands cuMemCreate memory to other processes as a descriptor, and takes it from them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm.h"

/* What the importer must know stands behind the memory, at the end of the file. */
struct label {
	uint64_t magic;
	uint64_t size;
	int32_t device;
	uint32_t rdma_capable;
};

#define LABEL_MAGIC 0x6764722d656d7531ull

static CUresult export_fd(struct emu_vmm_handle *handle, int *fd)
{
	const struct emu_extent *extent = &handle->block->extent;
	struct label label = {
		.magic = LABEL_MAGIC,
		.size = extent->size,
		.device = extent->device,
		.rdma_capable = handle->prop.allocFlags.gpuDirectRDMACapable,
	};

	if (handle->prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_PERMITTED;
	if (handle->block->dmabufs)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (pwrite(extent->fd, &label, sizeof(label), (off_t)extent->size) != sizeof(label))
		return CUDA_ERROR_OPERATING_SYSTEM;
	*fd = fcntl(extent->fd, F_DUPFD_CLOEXEC, 0);
	if (*fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	handle->block->shared = true;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle value,
					      CUmemAllocationHandleType type,
					      unsigned long long flags)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct emu_vmm_handle *handle;
	int fd = -1;

	EMU_ENTER();
	if (!shareable || flags != 0)
		return ret;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	emu_lock();
	handle = emu_vmm_find(value);
	if (handle)
		ret = export_fd(handle, &fd);
	emu_unlock();
	if (ret == CUDA_SUCCESS)
		*(int *)shareable = fd;
	return ret;
}

static CUresult read_label(int fd, struct label *label)
{
	struct stat info;

	if (fstat(fd, &info) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (info.st_size < (off_t)sizeof(*label) ||
	    pread(fd, label, sizeof(*label), info.st_size - (off_t)sizeof(*label)) !=
		    sizeof(*label))
		return CUDA_ERROR_INVALID_VALUE;
	if (label->magic != LABEL_MAGIC || label->size == 0 ||
	    label->size != (uint64_t)info.st_size - sizeof(*label) ||
	    label->size % EMU_BLOCK_SIZE != 0 || !emu_device_valid(label->device))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The program keeps its descriptor: CUDA takes a reference of its own. */
static CUresult import_fd(int fd, CUmemGenericAllocationHandle *out)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	struct emu_vmm_handle *handle = NULL;
	struct emu_block *block;
	struct label label;
	CUresult ret;
	int own;

	ret = read_label(fd, &label);
	if (ret != CUDA_SUCCESS)
		return ret;
	prop.location.id = label.device;
	prop.allocFlags.gpuDirectRDMACapable = label.rdma_capable != 0;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	emu_lock();
	ret = emu_block_import(own, label.device, 0, label.size, &block);
	if (ret == CUDA_SUCCESS) {
		handle = emu_vmm_add(block, &prop);
		if (!handle) {
			emu_block_put(block);
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	emu_unlock();
	if (handle)
		*out = (uintptr_t)handle;
	return ret;
}

EMU_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
						void *shareable, CUmemAllocationHandleType type)
{
	EMU_ENTER();
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return import_fd((int)(intptr_t)shareable, handle);
}
