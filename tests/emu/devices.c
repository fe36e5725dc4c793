/* SPDX-License-Identifier: MIT */
/* What the emulated devices say of themselves, peers, and contexts. */
#include "helper_case.h"

#include <pthread.h>
#include <string.h>

static int attribute(CUdevice_attribute which, CUdevice device)
{
	int value = -1;

	CHECK_CU(cuDeviceGetAttribute(&value, which, device));
	return value;
}

static void identity(void)
{
	char name[64], id[16];
	CUuuid uuid[2];
	CUdevice device;
	int count;

	REQUIRE_CU(cuInit(0));
	REQUIRE_CU(cuDeviceGetCount(&count));
	CHECK_EQ(count, 2);
	CHECK_CU(cuDeviceGetName(name, sizeof(name), 1));
	CHECK(strcmp(name, "Emulated GPU (gdrcopy)") == 0);
	CHECK_CU(cuDeviceGetUuid(&uuid[0], 0));
	CHECK_CU(cuDeviceGetUuid(&uuid[1], 1));
	CHECK(memcmp(&uuid[0], &uuid[1], sizeof(uuid[0])) != 0);
	CHECK_CU(cuDeviceGetPCIBusId(id, sizeof(id), 1));
	CHECK_CU(cuDeviceGetByPCIBusId(&device, id));
	CHECK_EQ(device, 1);
	CHECK_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQ(cuDeviceGetByPCIBusId(&device, "0000:00:00.0"), CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0), 1);
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0),
		 0);
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0), CU_COMPUTEMODE_DEFAULT);
	CHECK_EQ(cuDeviceGetAttribute(&count, (CUdevice_attribute)9999, 0),
		 CUDA_ERROR_INVALID_VALUE);
}

static void configured(void)
{
	REQUIRE_CU(cuInit(0));
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0), 0);
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0),
		 1);
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0), CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
	CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), 10);
}

static void peers(void)
{
	CUcontext a = emu_start(0), b = emu_start(1);
	CUdeviceptr from, to;
	unsigned char out[4] = { 0 };
	int can;

	CHECK_CU(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK_EQ(can, 1);
	CHECK_CU(cuCtxEnablePeerAccess(a, 0));
	CHECK_EQ(cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	CHECK_CU(cuCtxDisablePeerAccess(a));
	CHECK_EQ(cuCtxDisablePeerAccess(a), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	REQUIRE_CU(cuMemAlloc(&to, 4096));
	REQUIRE_CU(cuCtxSetCurrent(a));
	REQUIRE_CU(cuMemAlloc(&from, 4096));
	CHECK_CU(cuMemsetD8(from, 0x5a, 4096));
	CHECK_CU(cuMemcpyPeer(to, b, from, a, 4096));
	CHECK_CU(cuMemcpyDtoH(out, to + 4092, 4));
	CHECK_EQ(out[3], 0x5a);
}

static void no_peers(void)
{
	CUcontext a = emu_start(0);
	int can;

	emu_start(1);
	CHECK_CU(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK_EQ(can, 0);
	CHECK_EQ(cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

static void context_stack(void)
{
	CUcontext a = emu_start(0), b = emu_start(1), current;
	CUdeviceptr ptr;
	CUdevice device;

	CHECK_CU(cuCtxGetDevice(&device));
	CHECK_EQ(device, 1);
	CHECK_CU(cuCtxPopCurrent(&current));
	CHECK(current == b);
	CHECK_CU(cuCtxGetCurrent(&current));
	CHECK(current == a);
	CHECK_CU(cuCtxPushCurrent(b));
	CHECK_CU(cuCtxDestroy(b));
	CHECK_CU(cuCtxGetCurrent(&current));
	CHECK(current == a);
	CHECK_EQ(cuCtxPushCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQ(cuCtxDestroy(b), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_CU(cuCtxSetCurrent(NULL));
	CHECK_EQ(cuMemAlloc(&ptr, 1), CUDA_ERROR_INVALID_CONTEXT);
}

static void *other_thread(void *ctx)
{
	CUcontext current = ctx;

	CHECK_CU(cuCtxGetCurrent(&current));
	CHECK(current == NULL);
	CHECK_CU(cuCtxSetCurrent(ctx));
	CHECK_CU(cuCtxSynchronize());
	return NULL;
}

static void context_is_per_thread(void)
{
	CUcontext ctx = emu_start(0);
	pthread_t thread;

	REQUIRE_EQ(pthread_create(&thread, NULL, other_thread, ctx), 0);
	pthread_join(thread, NULL);
}

static void primary_context(void)
{
	CUcontext first, second;
	CUdeviceptr ptr;
	size_t free_bytes, total;
	unsigned flags;
	int active;

	REQUIRE_CU(cuInit(0));
	CHECK_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	REQUIRE_CU(cuDevicePrimaryCtxRetain(&first, 0));
	REQUIRE_CU(cuDevicePrimaryCtxRetain(&second, 0));
	CHECK(first == second);
	CHECK_EQ(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
	REQUIRE_CU(cuCtxSetCurrent(first));
	REQUIRE_CU(cuMemAlloc(&ptr, 4 << 20));
	CHECK_CU(cuDevicePrimaryCtxRelease(0));
	CHECK_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 1);
	CHECK_CU(cuDevicePrimaryCtxRelease(0));
	CHECK_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 0);
	CHECK_EQ(cuMemAlloc(&ptr, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	/* Its memory went with it. */
	REQUIRE_CU(cuDevicePrimaryCtxRetain(&first, 0));
	REQUIRE_CU(cuCtxSetCurrent(first));
	CHECK_CU(cuMemGetInfo(&free_bytes, &total));
	CHECK_EQ(free_bytes, total);
}

static void entry_points(void)
{
	CUdriverProcAddressQueryResult status;
	CUresult (*create)(CUcontext *, unsigned, CUdevice);
	void *entry;
	CUcontext ctx;

	REQUIRE_CU(cuInit(0));
	CHECK_CU(cuGetProcAddress("cuMemAlloc", &entry, 12000, 0, &status));
	CHECK(entry == (void *)cuMemAlloc);
	CHECK_CU(cuGetProcAddress("cuCtxCreate", &entry, 11030, 0, &status));
	*(void **)&create = entry;
	CHECK_CU(create(&ctx, 0, 0));
	CHECK_CU(cuGetProcAddress("cuMemAlloc", &entry, 2000, 0, &status));
	CHECK(entry == NULL);
	CHECK_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	CHECK_CU(cuGetProcAddress("cuNoSuchCall", &entry, 13000, 0, &status));
	CHECK_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK_EQ(cuGetProcAddress("cuNoSuchCall", &entry, 13000, 0, NULL), CUDA_ERROR_NOT_FOUND);
	/* The private door is not CUDA's. */
	CHECK_CU(cuGetProcAddress("gdrcopy_emu_entry_v1", &entry, 13000, 0, &status));
	CHECK(entry == NULL);
}

static void error_names(void)
{
	const char *text;

	CHECK_CU(cuGetErrorName(CUDA_ERROR_NOT_SUPPORTED, &text));
	CHECK(strcmp(text, "CUDA_ERROR_NOT_SUPPORTED") == 0);
	CHECK_CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CHECK(strcmp(text, "out of memory") == 0);
	CHECK_EQ(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

static const struct emu_case cases[] = {
	{ .name = "identity", .emu = "devices=2", .run = identity },
	{ .name = "configured", .emu = "no-rdma,coherent,exclusive", .run = configured },
	{ .name = "peers", .emu = "devices=2", .run = peers },
	{ .name = "no_peers", .emu = "devices=2,no-peer", .run = no_peers },
	{ .name = "context_stack", .emu = "devices=2", .run = context_stack },
	{ .name = "context_is_per_thread", .run = context_is_per_thread },
	{ .name = "primary_context", .run = primary_context },
	{ .name = "entry_points", .run = entry_points },
	{ .name = "error_names", .run = error_names },
};

EMU_CASE_MAIN(cases)
