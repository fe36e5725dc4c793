/* SPDX-License-Identifier: MIT */
/* Emulated GPU memory and sessions for the tests of version 3. */
#include "api3/helper_buffer.h"

void buffer_use_device(int device)
{
	CUcontext context;

	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	REQUIRE_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
	REQUIRE_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

CUdeviceptr buffer_alloc(int device, size_t size)
{
	CUdeviceptr ptr = 0;

	buffer_use_device(device);
	REQUIRE_EQ(cuMemAlloc(&ptr, size), CUDA_SUCCESS);
	return ptr;
}

void buffer_set(CUdeviceptr ptr, const void *data, size_t size)
{
	REQUIRE_EQ(cuMemcpyHtoD(ptr, data, size), CUDA_SUCCESS);
}

void buffer_get(void *data, CUdeviceptr ptr, size_t size)
{
	REQUIRE_EQ(cuMemcpyDtoH(data, ptr, size), CUDA_SUCCESS);
}

gdr_t buffer_session(void)
{
	gdr_t g = NULL;

	REQUIRE_OK(gdr_open(&g));
	REQUIRE(g != NULL);
	return g;
}

void buffer_fill(void *data, size_t size, uint32_t seed)
{
	unsigned char *byte = data;
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < size; i++) {
		state = state * 1664525u + 1013904223u;
		byte[i] = (unsigned char)(state >> 24);
	}
}
