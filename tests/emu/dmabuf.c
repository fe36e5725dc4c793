/* SPDX-License-Identifier: MIT */
/* Descriptors for ranges of device memory, mappable on drivers from 13.3 on. */
#include "helper_case.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)65536)

static CUresult export(CUdeviceptr ptr, size_t size, int *fd)
{
	return cuMemGetHandleForAddressRange(fd, ptr, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
					     0);
}

static unsigned char *map(int fd, size_t size)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return base == MAP_FAILED ? NULL : base;
}

static void mapping_shows_the_memory(void)
{
	unsigned char in[16], out[16] = { 0 }, *bytes, *same;
	CUdeviceptr before, ptr, start;
	int fd, again;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&before, 70000));
	REQUIRE_CU(cuMemAlloc(&ptr, 5 * PAGE));
	start = (ptr + PAGE - 1) & ~(PAGE - 1);
	CHECK_CU(cuMemsetD8(ptr, 0x44, 5 * PAGE));
	REQUIRE_CU(export(start, 2 * PAGE, &fd));
	bytes = map(fd, 2 * PAGE);
	REQUIRE(bytes != NULL);
	CHECK_EQ(bytes[0], 0x44);
	memset(in, 0x77, sizeof(in));
	CHECK_CU(cuMemcpyHtoD(start + 2 * PAGE - 8, in, 16));
	CHECK_EQ(bytes[2 * PAGE - 1], 0x77);
	bytes[3] = 0x12;
	CHECK_CU(cuMemcpyDtoH(out, start, 16));
	CHECK_EQ(out[3], 0x12);
	/* The same range again, and a shorter one, alias the first. */
	REQUIRE_CU(export(start, PAGE, &again));
	same = map(again, PAGE);
	REQUIRE(same != NULL);
	CHECK_EQ(same[3], 0x12);
	CHECK_EQ(export(start + PAGE, PAGE, &again), CUDA_ERROR_NOT_SUPPORTED);
	/* It lives on after the memory was freed. */
	close(fd);
	CHECK_CU(cuMemFree(ptr));
	CHECK_CU(cuMemFree(before));
	CHECK_EQ(bytes[3], 0x12);
}

static void bad_ranges(void)
{
	CUdeviceptr ptr, managed, pooled;
	CUmemoryPool pool;
	int fd = -1;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 4 * MIB));
	REQUIRE_CU(cuMemAllocManaged(&managed, PAGE, CU_MEM_ATTACH_GLOBAL));
	REQUIRE_CU(cuDeviceGetDefaultMemPool(&pool, 0));
	REQUIRE_CU(cuMemAllocFromPoolAsync(&pooled, 4 * MIB, pool, NULL));
	CHECK_EQ(export(ptr + 8, PAGE, &fd), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(export(ptr, 0, &fd), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(export(ptr, 6 * MIB, &fd), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(export(managed, PAGE, &fd), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(export(pooled, PAGE, &fd), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemGetHandleForAddressRange(&fd, ptr, PAGE,
					       CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
					       CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE),
		 CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(fd, -1);
}

/* A window inside exportable memory moves; memory that others have does not. */
static void exportable_vmm(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle[2];
	unsigned char *bytes, out = 0;
	CUdeviceptr ptr;
	int fd;

	emu_start(0);
	prop.allocFlags.gpuDirectRDMACapable = 1;
	REQUIRE_CU(cuMemAddressReserve(&ptr, 4 * MIB, 0, 0, 0));
	for (unsigned i = 0; i < 2; i++) {
		REQUIRE_CU(cuMemCreate(&handle[i], 2 * MIB, &prop, 0));
		REQUIRE_CU(cuMemMap(ptr + i * 2 * MIB, 2 * MIB, 0, handle[i], 0));
	}
	REQUIRE_CU(cuMemSetAccess(ptr, 4 * MIB, &access, 1));
	REQUIRE_CU(export(ptr + PAGE, PAGE, &fd));
	bytes = map(fd, PAGE);
	REQUIRE(bytes != NULL);
	bytes[1] = 0x31;
	CHECK_CU(cuMemcpyDtoH(&out, ptr + PAGE + 1, 1));
	CHECK_EQ(out, 0x31);
	CHECK_EQ(cuMemExportToShareableHandle(&fd, handle[0],
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		 CUDA_ERROR_NOT_SUPPORTED);
	CHECK_CU(cuMemExportToShareableHandle(&fd, handle[1],
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK_EQ(export(ptr + 2 * MIB + PAGE, PAGE, &fd), CUDA_ERROR_NOT_SUPPORTED);
	REQUIRE_CU(export(ptr + 2 * MIB, PAGE, &fd));
	bytes = map(fd, PAGE);
	REQUIRE(bytes != NULL);
	CHECK_CU(cuMemsetD8(ptr + 2 * MIB, 0x32, 1));
	CHECK_EQ(bytes[0], 0x32);
}

static void older_drivers(void)
{
	CUdeviceptr ptr;
	int fd;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 4 * MIB));
	REQUIRE_CU(export(ptr, PAGE, &fd));
	CHECK(map(fd, PAGE) == NULL);
	CHECK_EQ(errno, ENODEV);
}

static void without_rdma(void)
{
	CUdeviceptr ptr;
	int fd;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 4 * MIB));
	CHECK_EQ(export(ptr, PAGE, &fd), CUDA_ERROR_NOT_SUPPORTED);
}

static const struct emu_case cases[] = {
	{ "mapping_shows_the_memory", "driver=13030", mapping_shows_the_memory, false },
	{ "bad_ranges", "driver=13030", bad_ranges, false },
	{ "exportable_vmm", "driver=13030", exportable_vmm, false },
	{ "older_drivers", "driver=13000", older_drivers, false },
	{ "without_rdma", "driver=13030,no-rdma", without_rdma, false },
};

EMU_CASE_MAIN(cases)
