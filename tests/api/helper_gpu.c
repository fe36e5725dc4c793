/* SPDX-License-Identifier: MIT */
/* Emulated GPU memory, sessions and mappings for the API tests. */
#include "api/helper_gpu.h"

#include <stdio.h>
#include <unistd.h>

void gpu_start(void)
{
	CUcontext context;

	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	REQUIRE_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

struct gpu_buffer gpu_alloc(size_t size)
{
	struct gpu_buffer buffer = { .size = size };

	gpu_start();
	REQUIRE_EQ(cuMemAlloc(&buffer.allocation, size + GPU_PAGE_OFFSET), CUDA_SUCCESS);
	buffer.ptr = (buffer.allocation + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
	return buffer;
}

void gpu_free(struct gpu_buffer buffer)
{
	CHECK_EQ(cuMemFree(buffer.allocation), CUDA_SUCCESS);
}

void gpu_write(CUdeviceptr ptr, const void *data, size_t size)
{
	CHECK_EQ(cuMemcpyHtoD(ptr, data, size), CUDA_SUCCESS);
}

void gpu_read(void *data, CUdeviceptr ptr, size_t size)
{
	CHECK_EQ(cuMemcpyDtoH(data, ptr, size), CUDA_SUCCESS);
}

gdr_t gpu_open(void)
{
	gdr_t g = gdr_open();

	REQUIRE(g != NULL);
	return g;
}

gdr_mh_t gpu_pin(gdr_t g, CUdeviceptr ptr, size_t size)
{
	gdr_mh_t handle = { 0 };

	REQUIRE_EQ(gdr_pin_buffer(g, (unsigned long)ptr, size, 0, 0, &handle), 0);
	REQUIRE(handle.h != 0);
	return handle;
}

void *gpu_map(gdr_t g, gdr_mh_t handle, size_t size)
{
	void *va = NULL;

	REQUIRE_EQ(gdr_map(g, handle, &va, size), 0);
	REQUIRE(va != NULL);
	return va;
}

struct gpu_mapping gpu_map_new(gdr_t g, size_t size)
{
	struct gpu_mapping mapping = { .buffer = gpu_alloc(size), .g = g };

	mapping.handle = gpu_pin(g, mapping.buffer.ptr, size);
	mapping.va = gpu_map(g, mapping.handle, size);
	return mapping;
}

void gpu_unmap(struct gpu_mapping mapping)
{
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, mapping.buffer.size), 0);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	gpu_free(mapping.buffer);
}

size_t gpu_rss(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long total = 0, resident = 0;

	if (statm) {
		if (fscanf(statm, "%lu %lu", &total, &resident) != 2)
			resident = 0;
		fclose(statm);
	}
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

void gpu_fill(void *data, size_t size, unsigned seed)
{
	unsigned char *bytes = data;
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < size; i++) {
		state = state * 1664525u + 1013904223u;
		bytes[i] = (unsigned char)(state >> 24);
	}
}

gdr_mh_t gpu_stale_handle(gdr_t g, struct gpu_buffer buffer)
{
	gdr_mh_t handle = gpu_pin(g, buffer.ptr, buffer.size);

	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	return handle;
}
