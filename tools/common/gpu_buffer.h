/* SPDX-License-Identifier: MIT */
/* GPU memory that can be pinned and mapped, from either allocator. */
#ifndef TOOLS_GPU_BUFFER_H
#define TOOLS_GPU_BUFFER_H

#include <stddef.h>

#include "cuda_driver.h"

/* The order of -a's choices. */
enum gpu_alloc { GPU_ALLOC_MALLOC, GPU_ALLOC_VMM };

const char *gpu_alloc_name(enum gpu_alloc alloc);

/* ptr is a multiple of 64 KiB and size is rounded up to it. */
struct gpu_buffer {
	CUdeviceptr ptr;
	size_t size;
	enum gpu_alloc alloc;
	/* What has to be given back. */
	CUdeviceptr raw;
	size_t raw_size;
	CUmemGenericAllocationHandle handle;
};

/*
 * cuMemAlloc gives any address, so 64 KiB - 1 more are taken and the start is
 * rounded up; SYNC_MEMOPS makes CUDA's own calls wait for their copies.
 * cuMemCreate memory is GPUDirect-capable and has no export handle type.
 * Ends the program on failure.
 */
void gpu_buffer_alloc(enum gpu_alloc alloc, CUdevice device, size_t size,
		      struct gpu_buffer *buffer);
void gpu_buffer_free(struct gpu_buffer *buffer);

#endif
