/* SPDX-License-Identifier: MIT */
/* IPC handles between processes that share nothing else. */
#include "helper_case.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

struct message {
	CUipcMemHandle small, large;
};

static int start_importer(const struct message *message, int *socket)
{
	int ends[2], role;

	REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	role = emu_start_role("importer", ends[1]);
	close(ends[1]);
	REQUIRE_EQ(write(ends[0], message, sizeof(*message)), sizeof(*message));
	*socket = ends[0];
	return role;
}

/* Finds the exporter's bytes, also beside a neighbour, and leaves its own. */
static void importer(void)
{
	struct message message;
	CUdeviceptr small, large, again;
	unsigned value = 0;
	CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE;
	size_t size;
	int capable = 1, before;

	emu_start(0);
	REQUIRE_EQ(read(STDIN_FILENO, &message, sizeof(message)), sizeof(message));
	before = harness_count_fds();
	CHECK_EQ(cuIpcOpenMemHandle(&small, message.small, 0), CUDA_ERROR_INVALID_VALUE);
	REQUIRE_CU(cuIpcOpenMemHandle(&small, message.small, 1));
	REQUIRE_CU(cuIpcOpenMemHandle(&large, message.large, 1));
	REQUIRE_CU(cuIpcOpenMemHandle(&again, message.large, 1));
	CHECK_EQ(again, large);
	CHECK_CU(cuMemGetAddressRange(NULL, &size, small));
	CHECK_EQ(size, 1000);
	CHECK_CU(cuMemcpyDtoH(&value, small + 996, 4));
	CHECK_EQ(value, 0x11);
	CHECK_CU(cuMemcpyDtoH(&value, large + 5 * MIB - 4, 4));
	CHECK_EQ(value, 0x22);
	CHECK_CU(cuPointerGetAttribute(&capable, attribute, large));
	CHECK_EQ(capable, 0);
	CHECK_CU(cuMemsetD32(large, 0x33, 1));
	CHECK_EQ(cuMemFree(large), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuIpcCloseMemHandle(large));
	CHECK_CU(cuMemcpyDtoH(&value, large, 4));
	CHECK_CU(cuIpcCloseMemHandle(large));
	CHECK_CU(cuIpcCloseMemHandle(small));
	CHECK_EQ(cuIpcCloseMemHandle(small), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(harness_count_fds(), before);
}

static void share(void)
{
	struct message message;
	CUdeviceptr neighbour, small, large;
	unsigned value = 0;
	int role, socket;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&neighbour, 1000));
	REQUIRE_CU(cuMemAlloc(&small, 1000));
	REQUIRE_CU(cuMemAlloc(&large, 5 * MIB));
	CHECK_CU(cuMemsetD32(neighbour, 0x99, 250));
	CHECK_CU(cuMemsetD32(small, 0x11, 250));
	CHECK_CU(cuMemsetD32(large + 5 * MIB - 4, 0x22, 1));
	REQUIRE_CU(cuIpcGetMemHandle(&message.small, small));
	REQUIRE_CU(cuIpcGetMemHandle(&message.large, large));
	role = start_importer(&message, &socket);
	CHECK(emu_role_passed(role));
	CHECK_CU(cuMemcpyDtoH(&value, large, 4));
	CHECK_EQ(value, 0x33);
}

static void refusals(void)
{
	CUmemoryPool pool;
	CUipcMemHandle handle;
	CUdeviceptr ptr, managed, pooled;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 1000));
	REQUIRE_CU(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
	REQUIRE_CU(cuDeviceGetDefaultMemPool(&pool, 0));
	REQUIRE_CU(cuMemAllocFromPoolAsync(&pooled, 1000, pool, NULL));
	CHECK_EQ(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcGetMemHandle(&handle, (uintptr_t)&handle), CUDA_ERROR_INVALID_VALUE);
	REQUIRE_CU(cuIpcGetMemHandle(&handle, ptr));
	/* Not for the process that made it. */
	CHECK_EQ(cuIpcOpenMemHandle(&ptr, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
	memset(&handle, 0x55, sizeof(handle));
	CHECK_EQ(cuIpcOpenMemHandle(&ptr, handle, 1), CUDA_ERROR_INVALID_VALUE);
}

static const struct emu_case cases[] = {
	{ .name = "share", .run = share },
	{ .name = "refusals", .run = refusals },
	{ .name = "importer", .run = importer, .role = true },
};

EMU_CASE_MAIN(cases)
