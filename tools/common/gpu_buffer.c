/* SPDX-License-Identifier: MIT */
/* Allocates GPU memory for the tools. */
#include "gpu_buffer.h"

#include "gdrapi.h"

const char *gpu_alloc_name(enum gpu_alloc alloc)
{
	return alloc == GPU_ALLOC_VMM ? "cuMemCreate" : "cuMemAlloc";
}

static void alloc_malloc(size_t size, struct gpu_buffer *buffer)
{
	unsigned sync = 1;

	buffer->raw_size = size + GPU_PAGE_OFFSET;
	CU(cuMemAlloc, &buffer->raw, buffer->raw_size);
	buffer->ptr = (buffer->raw + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
	CU(cuPointerSetAttribute, &sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, buffer->ptr);
}

static void alloc_vmm(CUdevice device, size_t size, struct gpu_buffer *buffer)
{
	struct cuda_mem_prop prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requested_handle_types = CU_MEM_HANDLE_TYPE_NONE,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
		.gpu_direct_rdma_capable = 1
	};
	struct cuda_mem_access access = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	};
	size_t granularity = 0;

	CU(cuMemGetAllocationGranularity, &granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (granularity < GPU_PAGE_SIZE)
		granularity = GPU_PAGE_SIZE;
	buffer->raw_size = (size + granularity - 1) / granularity * granularity;
	CU(cuMemCreate, &buffer->handle, buffer->raw_size, &prop, 0);
	CU(cuMemAddressReserve, &buffer->raw, buffer->raw_size, granularity, 0, 0);
	CU(cuMemMap, buffer->raw, buffer->raw_size, 0, buffer->handle, 0);
	CU(cuMemSetAccess, buffer->raw, buffer->raw_size, &access, 1);
	buffer->ptr = buffer->raw;
}

void gpu_buffer_alloc(enum gpu_alloc alloc, CUdevice device, size_t size,
		      struct gpu_buffer *buffer)
{
	*buffer = (struct gpu_buffer){ .alloc = alloc };
	buffer->size = (size + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
	if (alloc == GPU_ALLOC_VMM)
		alloc_vmm(device, buffer->size, buffer);
	else
		alloc_malloc(buffer->size, buffer);
}

void gpu_buffer_free(struct gpu_buffer *buffer)
{
	if (buffer->alloc == GPU_ALLOC_MALLOC) {
		CU(cuMemFree, buffer->raw);
		return;
	}
	CU(cuMemUnmap, buffer->raw, buffer->raw_size);
	CU(cuMemAddressFree, buffer->raw, buffer->raw_size);
	CU(cuMemRelease, buffer->handle);
}
