/* SPDX-License-Identifier: MIT */
/* The emulated CUDA driver on the stand-in's memory: GDRCOPY_EMU=provider=bar. */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "harness.h"
#include "nvidia_emu.h"

static CUcontext context;
static int standin;

static struct nvidia_emu_stats stats(void)
{
	struct nvidia_emu_stats now = { 0 };

	CHECK_EQ(ioctl(standin, NVIDIA_EMU_GET_STATS, &now), 0);
	return now;
}

static void start(void)
{
	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	REQUIRE_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
	standin = open(NVIDIA_EMU_PATH, O_RDWR | O_CLOEXEC);
	REQUIRE(standin >= 0);
}

static void memory_lies_in_the_bar(void)
{
	struct nvidia_emu_stats before;
	unsigned char bytes[4096];
	CUdeviceptr small, large;

	start();
	before = stats();
	REQUIRE_EQ(cuMemAlloc(&small, 1000), CUDA_SUCCESS);
	CHECK_EQ(stats().used_pages, before.used_pages + 32);
	CHECK_EQ(stats().bindings, before.bindings + 1);
	REQUIRE_EQ(cuMemAlloc(&large, 3 << 20), CUDA_SUCCESS);
	CHECK_EQ(stats().used_pages, before.used_pages + 96);
	CHECK_EQ(stats().bindings, before.bindings + 2);
	CHECK_EQ(cuMemsetD8(large, 0x5c, 3 << 20), CUDA_SUCCESS);
	memset(bytes, 0, sizeof(bytes));
	CHECK_EQ(cuMemcpyDtoH(bytes, large + (2 << 20), sizeof(bytes)), CUDA_SUCCESS);
	CHECK_EQ(bytes[0], 0x5c);
	CHECK_EQ(bytes[4095], 0x5c);
	CHECK_EQ(cuMemFree(small), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree(large), CUDA_SUCCESS);
	CHECK_EQ(stats().used_pages, before.used_pages);
	CHECK_EQ(stats().bindings, before.bindings);
}

/* Two buffers of one block have one address range, which goes with the last of them. */
static void shared_block_is_bound_once(void)
{
	struct nvidia_emu_stats before;
	CUdeviceptr a, b;

	start();
	before = stats();
	REQUIRE_EQ(cuMemAlloc(&a, 70000), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemAlloc(&b, 70000), CUDA_SUCCESS);
	CHECK_EQ(stats().bindings, before.bindings + 1);
	CHECK_EQ(cuMemFree(a), CUDA_SUCCESS);
	CHECK_EQ(stats().bindings, before.bindings + 1);
	CHECK_EQ(cuMemFree(b), CUDA_SUCCESS);
	CHECK_EQ(stats().bindings, before.bindings);
	CHECK_EQ(stats().objects, before.objects);
}

static void full_bar_is_out_of_memory(void)
{
	struct nvidia_emu_stats before;
	CUdeviceptr buffers[64];
	int count = 0;
	CUresult ret;

	start();
	before = stats();
	do
		ret = cuMemAlloc(&buffers[count], 16 << 20);
	while (ret == CUDA_SUCCESS && ++count < 64);
	CHECK_EQ(ret, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(count > 8);
	while (count > 0)
		CHECK_EQ(cuMemFree(buffers[--count]), CUDA_SUCCESS);
	CHECK_EQ(stats().used_pages, before.used_pages);
}

/* Managed memory cannot be pinned, so the stand-in never learns its address. */
static void managed_memory_is_not_bound(void)
{
	struct nvidia_emu_stats before;
	CUdeviceptr managed;

	start();
	before = stats();
	REQUIRE_EQ(cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	*(volatile int *)(uintptr_t)managed = 3;
	CHECK_EQ(stats().bindings, before.bindings);
	CHECK(stats().used_pages > before.used_pages);
	CHECK_EQ(cuMemFree(managed), CUDA_SUCCESS);
	CHECK_EQ(stats().used_pages, before.used_pages);
}

static const struct harness_case cases[] = {
	{ "memory_lies_in_the_bar", memory_lies_in_the_bar },
	{ "shared_block_is_bound_once", shared_block_is_bound_once },
	{ "full_bar_is_out_of_memory", full_bar_is_out_of_memory },
	{ "managed_memory_is_not_bound", managed_memory_is_not_bound },
};
HARNESS_MAIN(cases)
