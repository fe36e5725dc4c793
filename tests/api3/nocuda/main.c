/* SPDX-License-Identifier: MIT */
/*
 * No copy calls CUDA.  libcuda is replaced by one that counts (count.c): pins must be
 * counted, which shows that it works; copies of both interfaces must not.
 */
#include <dlfcn.h>
#include <gdrcopy/gdrapi.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"
#include "old.h"

#define SIZE ((size_t)8 << 20)

static volatile unsigned long *calls;
static unsigned long before;
static int failed;

static void require(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void begin(void)
{
	before = *calls;
}

static void end(const char *what, int counted)
{
	const unsigned long made = *calls - before;

	if (counted ? made > 0 : made == 0)
		return;
	fprintf(stderr, "%s: %lu calls of CUDA\n", what, made);
	failed = 1;
}

static CUdeviceptr allocate(int device)
{
	CUdeviceptr ptr = 0;
	CUcontext context;

	begin();
	require(cuInit(0) == CUDA_SUCCESS, "cuInit");
	require(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS,
		"cuDevicePrimaryCtxRetain");
	require(cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent");
	require(cuMemAlloc(&ptr, SIZE) == CUDA_SUCCESS, "cuMemAlloc");
	end("an allocation", 1);
	return ptr;
}

static void copy(gdr_t g, const uint64_t handle[2], char *host)
{
	static const size_t sizes[] = { 1, 8, 100, 4096, 65536, (size_t)1 << 20, SIZE };

	begin();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		require(!gdr_copy_from_host(g, handle[0], 0, host, sizes[i]), "gdr_copy_from_host");
		require(!gdr_copy_to_host(g, handle[0], 0, host, sizes[i]), "gdr_copy_to_host");
		for (int pair = 0; pair < 4; pair++)
			require(!gdr_copy_to_device(g, handle[pair & 1], handle[pair >> 1], 0,
						    SIZE / 2, sizes[i] / 2), "gdr_copy_to_device");
	}
	require(!gdr_flush(g), "gdr_flush");
	end("copies of version 3", 0);
}

static void copy_old(CUdeviceptr ptr, char *host)
{
	struct old old;

	require(old_begin(&old, ptr, SIZE) == 0, "a mapping of version 2.6");
	begin();
	for (size_t size = 1; size <= SIZE; size *= 2)
		require(old_copy(&old, host, size) == 0, "copies of version 2.6");
	end("copies of version 2.6", 0);
	require(old_end(&old) == 0, "the end of a mapping of version 2.6");
}

int main(void)
{
	CUdeviceptr ptr[2];
	uint64_t handle[2];
	char *host = malloc(SIZE);
	gdr_t g;

	calls = dlsym(RTLD_DEFAULT, "count_of_cuda_calls");
	require(calls && host, "finding the counter");
	require(gdr_open(&g) == GDR_SUCCESS, "gdr_open");
	for (int device = 0; device < 2; device++) {
		ptr[device] = allocate(device);
		begin();
		require(!gdr_pin_buffer(g, ptr[device], SIZE, GDR_PIN_BUFFER_UNALIGNED, device,
					&handle[device]), "gdr_pin_buffer");
		end("a pin", 1);
	}
	copy(g, handle, host);
	require(!gdr_host_register(g, host, SIZE), "gdr_host_register");
	copy(g, handle, host);
	copy_old(ptr[1], host);
	require(!gdr_close(g), "gdr_close");
	free(host);
	return failed;
}
