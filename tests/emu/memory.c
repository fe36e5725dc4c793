/* SPDX-License-Identifier: MIT */
/*
 * Memory of every kind: what the real driver does with addresses, neighbours
 * and freed memory is what pins and mappings are tested against.
 */
#include "helper_case.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)

static void small_buffers_share_a_block(void)
{
	CUdeviceptr first, second, large, base;
	size_t size;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&first, 100));
	REQUIRE_CU(cuMemAlloc(&second, 100));
	CHECK_EQ(second - first, 512);
	CHECK_EQ(first % 512, 0);
	REQUIRE_CU(cuMemAlloc(&large, 3 * MIB));
	CHECK_EQ(large % (2 * MIB), 0);
	CHECK_CU(cuMemGetAddressRange(&base, &size, second + 99));
	CHECK_EQ(base, second);
	CHECK_EQ(size, 100);
	CHECK_EQ(cuMemGetAddressRange(&base, &size, second + 100), CUDA_ERROR_NOT_FOUND);
}

static void freed_addresses_are_used_again(void)
{
	CUdeviceptr keep, first, again;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&keep, 512));
	REQUIRE_CU(cuMemAlloc(&first, 65536));
	CHECK_CU(cuMemFree(first));
	CHECK_EQ(cuMemFree(first), CUDA_ERROR_INVALID_VALUE);
	REQUIRE_CU(cuMemAlloc(&again, 65536));
	CHECK_EQ(again, first);
	CHECK_EQ(cuMemFree(again + 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemFree(0));
}

static void memory_is_counted(void)
{
	CUdeviceptr small, large;
	size_t before, after, total;

	emu_start(0);
	REQUIRE_CU(cuMemGetInfo(&before, &total));
	CHECK_EQ(before, total);
	REQUIRE_CU(cuMemAlloc(&small, 1));
	REQUIRE_CU(cuMemAlloc(&large, 5 * MIB));
	REQUIRE_CU(cuMemGetInfo(&after, &total));
	CHECK_EQ(before - after, 8 * MIB);
	CHECK_CU(cuMemFree(small));
	CHECK_CU(cuMemFree(large));
	REQUIRE_CU(cuMemGetInfo(&after, &total));
	CHECK_EQ(before, after);
}

static void many_buffers_few_descriptors(void)
{
	static CUdeviceptr ptrs[2000];
	int before;

	emu_start(0);
	before = harness_count_fds();
	for (size_t i = 0; i < 2000; i++)
		REQUIRE_CU(cuMemAlloc(&ptrs[i], i % 10 == 0 ? 2 * MIB : 70000));
	CHECK(harness_count_fds() <= before + 1);
	for (size_t i = 0; i < 2000; i++)
		CHECK_CU(cuMemFree(ptrs[i]));
}

static void copies(void)
{
	unsigned char host[4096], back[4096];
	uint32_t word;
	uint16_t half;
	CUdeviceptr a, b;

	emu_start(0);
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * 7);
	REQUIRE_CU(cuMemAlloc(&a, 4096));
	REQUIRE_CU(cuMemAlloc(&b, 5 * MIB));
	CHECK_CU(cuMemcpyHtoD(a, host, 4096));
	CHECK_CU(cuMemcpyDtoD(b + 2 * MIB - 5, a, 4096));
	CHECK_CU(cuMemcpyDtoH(back, b + 2 * MIB - 5, 4096));
	CHECK(memcmp(host, back, 4096) == 0);
	CHECK_CU(cuMemcpy((uintptr_t)back, a + 1, 4095));
	CHECK(memcmp(host + 1, back, 4095) == 0);
	CHECK_CU(cuMemsetD32(b, 0x01020304, 2));
	CHECK_CU(cuMemsetD16(b + 4, 0xabcd, 1));
	CHECK_CU(cuMemcpyDtoH(&word, b + 4, 4));
	CHECK_EQ(word, 0x0102abcd);
	CHECK_CU(cuMemsetD8(b + 1, 0xff, 1));
	CHECK_CU(cuMemcpyDtoH(&half, b, 2));
	CHECK_EQ(half, 0xff04);
	CHECK_EQ(cuMemsetD32(b + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemcpyHtoD(a, host, 0));
}

static void copies_outside_are_refused(void)
{
	unsigned char host[200] = { 0 };
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 100));
	CHECK_EQ(cuMemcpyHtoD(ptr, host, 101), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemcpyHtoD(ptr + 101, host, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemcpyDtoH(host, (uintptr_t)host, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemcpyHtoD(ptr, host, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemcpyHtoD(0, host, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemFree(ptr));
	CHECK_EQ(cuMemcpyHtoD(ptr, host, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemsetD8(ptr, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAlloc(&ptr, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAlloc(NULL, 1), CUDA_ERROR_INVALID_VALUE);
}

/*
 * The child inherits the inaccessible range, not CUDA.  A sanitizer turns the
 * signal into an exit, hence the default action.
 */
static void touch(void *ptr)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	*(volatile char *)ptr = 1;
}

static void device_memory_is_no_cpu_memory(void)
{
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 4096));
	CHECK_EQ(WTERMSIG(harness_fork(touch, (void *)(uintptr_t)ptr)), SIGSEGV);
}

static void managed_memory(void)
{
	CUdeviceptr ptr;
	unsigned char *bytes, out = 0;
	int managed = 0;

	emu_start(0);
	REQUIRE_CU(cuMemAllocManaged(&ptr, 3 * MIB, CU_MEM_ATTACH_GLOBAL));
	bytes = (unsigned char *)(uintptr_t)ptr;
	bytes[2 * MIB] = 42;
	CHECK_CU(cuMemcpyDtoH(&out, ptr + 2 * MIB, 1));
	CHECK_EQ(out, 42);
	CHECK_CU(cuMemsetD8(ptr, 9, 10));
	CHECK_EQ(bytes[9], 9);
	CHECK_CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr + 5));
	CHECK_EQ(managed, 1);
	CHECK_CU(cuMemFree(ptr));
	CHECK_EQ(WTERMSIG(harness_fork(touch, bytes)), SIGSEGV);
}

static void host_memory(void)
{
	unsigned char *pinned, out[4];
	CUdeviceptr device_ptr, ptr;
	CUmemorytype type;
	char stack[64];

	emu_start(0);
	REQUIRE_CU(cuMemHostAlloc((void **)&pinned, 10000, CU_MEMHOSTALLOC_PORTABLE));
	REQUIRE_CU(cuMemHostGetDevicePointer(&device_ptr, pinned, 0));
	REQUIRE_CU(cuMemAlloc(&ptr, 10000));
	memset(pinned, 3, 10000);
	CHECK_CU(cuMemcpyDtoD(ptr, device_ptr, 10000));
	CHECK_CU(cuMemcpyDtoH(out, ptr + 9996, 4));
	CHECK_EQ(out[3], 3);
	CHECK_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_ptr));
	CHECK_EQ(type, CU_MEMORYTYPE_HOST);
	CHECK_CU(cuMemFreeHost(pinned));
	CHECK_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);

	CHECK_CU(cuMemHostRegister(stack, sizeof(stack), 0));
	CHECK_EQ(cuMemHostRegister(stack + 8, 8, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_CU(cuMemHostUnregister(stack));
	CHECK_EQ(cuMemHostUnregister(stack), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQ(cuMemHostRegister(stack, 8, CU_MEMHOSTREGISTER_IOMEMORY),
		 CUDA_ERROR_NOT_SUPPORTED);
}

static void pointer_attributes(void)
{
	unsigned long long first_id, second_id;
	CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
	CUcontext ctx = emu_start(0), found;
	CUdeviceptr ptr, start;
	int ordinal = -1, flag = 1;
	size_t size;
	void *host;

	REQUIRE_CU(cuMemAlloc(&ptr, 1000));
	CHECK_CU(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
	CHECK(found == ctx);
	CHECK_CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr));
	CHECK_EQ(ordinal, 0);
	CHECK_CU(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ptr + 999));
	CHECK_EQ(start, ptr);
	CHECK_CU(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, ptr));
	CHECK_EQ(size, 1000);
	CHECK_EQ(cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, ptr),
		 CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, ptr),
		 CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
	flag = 0;
	CHECK_CU(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
	CHECK_EQ(flag, 1);
	CHECK_EQ(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, (uintptr_t)&size),
		 CUDA_ERROR_INVALID_VALUE);
	/* An address that is used again is another buffer. */
	CHECK_CU(cuPointerGetAttribute(&first_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
	CHECK_CU(cuMemFree(ptr));
	REQUIRE_CU(cuMemAlloc(&start, 1000));
	CHECK_EQ(start, ptr);
	CHECK_CU(cuPointerGetAttribute(&second_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
	CHECK(first_id != second_id);
}

static void attributes_of_unknown_pointers(void)
{
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
	};
	CUmemorytype type = CU_MEMORYTYPE_ARRAY;
	int ordinal = 5;
	void *where[] = { &type, &ordinal };

	emu_start(0);
	CHECK_CU(cuPointerGetAttributes(2, which, where, (uintptr_t)&ordinal));
	CHECK_EQ(type, 0);
	CHECK_EQ(ordinal, CU_DEVICE_INVALID);
}

static void pools(void)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemoryPool pool, own, found;
	cuuint64_t used;
	CUdeviceptr ptr;
	int capable = 1;

	emu_start(0);
	REQUIRE_CU(cuDeviceGetDefaultMemPool(&pool, 0));
	REQUIRE_CU(cuMemAllocAsync(&ptr, 4096, NULL));
	CHECK_CU(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ptr));
	CHECK(found == pool);
	CHECK_CU(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
				       ptr));
	CHECK_EQ(capable, 0);
	CHECK_CU(cuMemsetD8(ptr, 1, 4096));
	CHECK_CU(cuMemFreeAsync(ptr, NULL));
	CHECK_EQ(cuMemFreeAsync(ptr, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK_EQ(used, 0);
	CHECK_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);

	props.maxSize = 8192;
	REQUIRE_CU(cuMemPoolCreate(&own, &props));
	REQUIRE_CU(cuMemAllocFromPoolAsync(&ptr, 8000, own, NULL));
	CHECK_EQ(cuMemAllocFromPoolAsync(&ptr, 8000, own, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	/* Destroyed with memory out: usable until that is freed. */
	CHECK_CU(cuMemPoolDestroy(own));
	CHECK_EQ(cuMemAllocFromPoolAsync(&ptr, 1, own, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemFree(ptr));
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CHECK_EQ(cuMemPoolCreate(&own, &props), CUDA_ERROR_NOT_SUPPORTED);
}

static void *churn(void *ctx)
{
	unsigned char in[300], out[300];
	unsigned seed = (unsigned)(uintptr_t)&in;

	CHECK_CU(cuCtxSetCurrent(ctx));
	for (int i = 0; i < 300; i++) {
		size_t size = 1 + (size_t)rand_r(&seed) % (3 * MIB);
		CUdeviceptr ptr;

		REQUIRE_CU(cuMemAlloc(&ptr, size));
		memset(in, rand_r(&seed), sizeof(in));
		if (size > sizeof(in)) {
			CHECK_CU(cuMemcpyHtoD(ptr + size - sizeof(in), in, sizeof(in)));
			CHECK_CU(cuMemcpyDtoH(out, ptr + size - sizeof(in), sizeof(in)));
			CHECK(memcmp(in, out, sizeof(in)) == 0);
		}
		CHECK_CU(cuMemFree(ptr));
	}
	return NULL;
}

static void threads(void)
{
	CUcontext ctx = emu_start(0);
	size_t free_bytes, total;
	pthread_t ids[4];

	for (int i = 0; i < 4; i++)
		REQUIRE_EQ(pthread_create(&ids[i], NULL, churn, ctx), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	CHECK_CU(cuMemGetInfo(&free_bytes, &total));
	CHECK_EQ(free_bytes, total);
}

static const struct emu_case cases[] = {
	{ .name = "small_buffers_share_a_block", .run = small_buffers_share_a_block },
	{ .name = "freed_addresses_are_used_again", .run = freed_addresses_are_used_again },
	{ .name = "memory_is_counted", .run = memory_is_counted },
	{ .name = "many_buffers_few_descriptors", .run = many_buffers_few_descriptors },
	{ .name = "copies", .run = copies },
	{ .name = "copies_outside_are_refused", .run = copies_outside_are_refused },
	{ .name = "device_memory_is_no_cpu_memory", .run = device_memory_is_no_cpu_memory },
	{ .name = "managed_memory", .run = managed_memory },
	{ .name = "host_memory", .run = host_memory },
	{ .name = "pointer_attributes", .run = pointer_attributes },
	{ .name = "attributes_of_unknown_pointers", .run = attributes_of_unknown_pointers },
	{ .name = "pools", .run = pools },
	{ .name = "threads", .run = threads },
};

EMU_CASE_MAIN(cases)
