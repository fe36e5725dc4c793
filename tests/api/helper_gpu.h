/* SPDX-License-Identifier: MIT */
/* Emulated GPU memory, sessions and mappings for the API tests. */
#ifndef TESTS_API_HELPER_GPU_H
#define TESTS_API_HELPER_GPU_H

#include "cuda.h"
#include "gdrapi.h"
#include "harness.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

struct gpu_buffer {
	CUdeviceptr allocation;
	CUdeviceptr ptr;	/* the first multiple of 64 KiB inside */
	size_t size;
};

/* CUDA made ready in the calling thread; idempotent. */
void gpu_start(void);

/* From cuMemAlloc, with room for the alignment. */
struct gpu_buffer gpu_alloc(size_t size);
void gpu_free(struct gpu_buffer buffer);

/* What the GPU holds, by CUDA's own copies. */
void gpu_write(CUdeviceptr ptr, const void *data, size_t size);
void gpu_read(void *data, CUdeviceptr ptr, size_t size);

gdr_t gpu_open(void);
gdr_mh_t gpu_pin(gdr_t g, CUdeviceptr ptr, size_t size);
void *gpu_map(gdr_t g, gdr_mh_t handle, size_t size);

/* A buffer that is pinned and mapped as a whole. */
struct gpu_mapping {
	struct gpu_buffer buffer;
	gdr_t g;
	gdr_mh_t handle;
	unsigned char *va;
};

struct gpu_mapping gpu_map_new(gdr_t g, size_t size);
void gpu_unmap(struct gpu_mapping mapping);

/* Resident memory of this process in bytes. */
size_t gpu_rss(void);

void gpu_fill(void *data, size_t size, unsigned seed);

/* A dead end for a handle: unpins and gives the old value. */
gdr_mh_t gpu_stale_handle(gdr_t g, struct gpu_buffer buffer);

#endif
