/* SPDX-License-Identifier: MIT */
/*
 * GDRCOPY_EMU: a key that means nothing must not leave a half-configured
 * machine behind, and an injected failure must hit the call that it names.
 */
#include "helper_case.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cuInit's error text, as it appears on stderr. */
static void capture_init(char *text, size_t size)
{
	int keep = dup(STDERR_FILENO), ends[2];
	ssize_t length;

	REQUIRE(keep >= 0);
	REQUIRE_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	REQUIRE(dup2(ends[1], STDERR_FILENO) >= 0);
	CHECK_EQ(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
	REQUIRE(dup2(keep, STDERR_FILENO) >= 0);
	length = read(ends[0], text, size - 1);
	text[length > 0 ? length : 0] = '\0';
	close(keep);
	close(ends[0]);
	close(ends[1]);
}

static void unknown_key(void)
{
	char text[512];

	capture_init(text, sizeof(text));
	CHECK(strstr(text, "\"bogus=1\"") != NULL);
}

static void bad_value(void)
{
	char text[512];

	capture_init(text, sizeof(text));
	CHECK(strstr(text, "\"mem=lots\"") != NULL);
}

static void bad_failure(void)
{
	char text[512];

	capture_init(text, sizeof(text));
	CHECK(strstr(text, "\"fail=cuMemAlloc:0\"") != NULL);
}

static void bad_provider(void)
{
	char text[512];

	capture_init(text, sizeof(text));
	CHECK(strstr(text, "\"provider=disk\"") != NULL);
}

/* Outside the guest of the kernel tests there is no such memory. */
static void provider_without_its_device(void)
{
	CUcontext context;
	CUdeviceptr ptr;

	if (access("/dev/nvidia-emu", F_OK) == 0)
		SKIP("this machine has the stand-in's device");
	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	REQUIRE_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc(&ptr, 4096), CUDA_ERROR_OPERATING_SYSTEM);
}

static void no_device(void)
{
	CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void driver_version(void)
{
	int version = 0;

	CHECK_CU(cuDriverGetVersion(&version));
	CHECK_EQ(version, 13030);
}

static void sizes(void)
{
	size_t total;
	CUdeviceptr ptr;

	emu_start(0);
	CHECK_CU(cuDeviceTotalMem(&total, 0));
	CHECK_EQ(total, 8 << 20);
	CHECK_EQ(cuMemAlloc(&ptr, (8 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_CU(cuMemAlloc(&ptr, 8 << 20));
	CHECK_CU(cuMemFree(ptr));
}

static void third_call_fails(void)
{
	CUdeviceptr ptr;

	emu_start(0);
	CHECK_CU(cuMemAlloc(&ptr, 100));
	CHECK_CU(cuMemAlloc(&ptr, 100));
	CHECK_EQ(cuMemAlloc(&ptr, 100), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_CU(cuMemAlloc(&ptr, 100));
}

static void each_call_fails(void)
{
	size_t free_bytes, total;

	emu_start(0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(cuMemGetInfo(&free_bytes, &total), 719);
}

static void init_fails(void)
{
	CHECK_EQ(cuInit(0), CUDA_ERROR_UNKNOWN);
	CHECK_CU(cuInit(0));
}

static void before_init(void)
{
	CUdeviceptr ptr;
	int count;

	CHECK_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(cuMemAlloc(&ptr, 1), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

static const struct emu_case cases[] = {
	{ .name = "unknown_key", .emu = "devices=2,bogus=1", .run = unknown_key },
	{ .name = "bad_value", .emu = "mem=lots", .run = bad_value },
	{ .name = "bad_provider", .emu = "provider=disk", .run = bad_provider },
	{ .name = "provider_without_its_device", .emu = "provider=bar",
	  .run = provider_without_its_device },
	{ .name = "bad_failure", .emu = "fail=cuMemAlloc:0", .run = bad_failure },
	{ .name = "no_device", .emu = "devices=0", .run = no_device },
	{ .name = "driver_version", .emu = "driver=13030", .run = driver_version },
	{ .name = "sizes", .emu = "mem=8M", .run = sizes },
	{ .name = "third_call_fails", .emu = "fail=cuMemAlloc:3", .run = third_call_fails },
	{ .name = "each_call_fails", .emu = "fail=cuMemGetInfo:*:719", .run = each_call_fails },
	{ .name = "init_fails", .emu = "fail=cuInit", .run = init_fails },
	{ .name = "before_init", .run = before_init },
};

EMU_CASE_MAIN(cases)
