/* SPDX-License-Identifier: MIT */
/* CUDA for one test process: start-up, and access to memory as the GPU sees it. */
#include "gpu.h"

#include "machine.h"

static CUcontext context;

void gpu_require(CUresult result, const char *call, const char *file, int line)
{
	if (result != CUDA_SUCCESS)
		verdict_fail(file, line, "%s failed with %s", call, cuda_driver_describe(result));
}

void gpu_start(void)
{
	const char *why = cuda_driver_try_load();
	CUdevice device;

	if (why)
		FAIL("%s", why);
	GPU(cuDeviceGet, &device, machine.ordinal);
	GPU(cuDevicePrimaryCtxRetain, &context, device);
	gpu_enter_thread();
}

void gpu_enter_thread(void)
{
	GPU(cuCtxSetCurrent, context);
}

void gpu_read(void *dst, uint64_t addr, size_t size)
{
	GPU(cuMemcpyDtoH, dst, addr, size);
}

void gpu_write(uint64_t addr, const void *src, size_t size)
{
	GPU(cuMemcpyHtoD, addr, src, size);
	GPU(cuCtxSynchronize);
}

void gpu_fill(uint64_t addr, uint32_t word, size_t size)
{
	GPU(cuMemsetD32, addr, word, size / sizeof(word));
	GPU(cuCtxSynchronize);
}

uint32_t gpu_word(uint64_t addr)
{
	uint32_t word;

	gpu_read(&word, addr, sizeof(word));
	return word;
}
