/* SPDX-License-Identifier: MIT */
/* After fork, CUDA does not work in the child of a process that had initialised it. */
#include "helper_case.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_of_initialised(void *arg)
{
	CUdeviceptr ptr;
	CUcontext ctx;
	int count;

	(void)arg;
	CHECK_EQ(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(cuMemAlloc(&ptr, 1), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
}

static void initialised_parent(void)
{
	unsigned char out = 0;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 1));
	CHECK_CU(cuMemsetD8(ptr, 5, 1));
	CHECK_EQ(harness_fork(child_of_initialised, NULL), 0);
	CHECK_CU(cuMemcpyDtoH(&out, ptr, 1));
	CHECK_EQ(out, 5);
}

static void child_of_fresh(void *arg)
{
	CUdeviceptr ptr;

	(void)arg;
	emu_start(0);
	CHECK_CU(cuMemAlloc(&ptr, 1));
}

static void fresh_parent(void)
{
	int version;

	CHECK_CU(cuDriverGetVersion(&version));
	CHECK_EQ(harness_fork(child_of_fresh, NULL), 0);
	CHECK_EQ(harness_fork(child_of_fresh, NULL), 0);
	child_of_fresh(NULL);
}

/*
 * Managed memory is not inherited: its address is unmapped in the child, or
 * by now something else's.
 */
static void touch_managed(void *ptr)
{
	signal(SIGSEGV, SIG_DFL);
	if (*(volatile int *)ptr == 77)
		_exit(3);
	*(volatile int *)ptr = 1;
}

static void managed_is_not_inherited(void)
{
	CUdeviceptr ptr;
	int status;

	emu_start(0);
	REQUIRE_CU(cuMemAllocManaged(&ptr, 4096, CU_MEM_ATTACH_GLOBAL));
	*(int *)(uintptr_t)ptr = 77;
	status = harness_fork(touch_managed, (void *)(uintptr_t)ptr);
	CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 3);
	CHECK_EQ(*(int *)(uintptr_t)ptr, 77);
}

static const struct emu_case cases[] = {
	{ .name = "initialised_parent", .run = initialised_parent },
	{ .name = "fresh_parent", .run = fresh_parent },
	{ .name = "managed_is_not_inherited", .run = managed_is_not_inherited },
};

EMU_CASE_MAIN(cases)
