/* SPDX-License-Identifier: MIT */
/* Memory that is not plain device memory: refused with its error, or really served. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "machine.h"
#include "peer.h"
#include "process.h"
#include "tests.h"

#define PAGE ((size_t)GPU_PAGE_SIZE)

static uint64_t round_up(uint64_t addr)
{
	return (addr + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
}

/* What the mapping shows is what CUDA sees at the pinned address, both ways. */
static void require_served(gdr_t g, gdr_mh_t mh, uint64_t addr, size_t size)
{
	uint32_t last = (uint32_t)(size / sizeof(uint32_t)) - 1;
	volatile uint32_t *words;
	void *va = NULL;

	REQUIRE(mh.h != 0);
	gpu_fill(addr, 0x13572468, size);
	REQUIRE_OK(gdr_map(g, mh, &va, size));
	words = va;
	REQUIRE_EQ(words[0], 0x13572468);
	REQUIRE_EQ(words[last], 0x13572468);
	words[0] = 0xfeedbeef;
	words[last] = 0xbeeffeed;
	REQUIRE_EQ(words[0], 0xfeedbeef);
	REQUIRE_EQ(gpu_word(addr), 0xfeedbeef);
	REQUIRE_EQ(gpu_word(addr + last * sizeof(uint32_t)), 0xbeeffeed);
	REQUIRE_OK(gdr_unmap(g, mh, va, size));
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
}

/*
 * Whether a driver pins such memory is its own affair where the kernel module
 * or CUDA's dma-bufs decide; the other back ends know that they cannot.
 */
static void refuse_or_serve(uint64_t addr, size_t size, const char *what)
{
	gdr_t g = open_session();
	gdr_mh_t mh = { .h = 1 };
	int error = gdr_pin_buffer(g, addr, size, 0, 0, &mh);

	DEBUG("pin of %s: %d", what, error);
	if (error) {
		if (error != EINVAL || mh.h != 0)
			FAIL("pin of %s: returned %d and handle 0x%lx, expected EINVAL and 0", what,
			     error, mh.h);
	} else {
		if (!machine.gdrdrv && !machine.dmabuf)
			FAIL("pin of %s succeeded", what);
		require_served(g, mh, addr, size);
	}
	REQUIRE_OK(gdr_close(g));
}

void test_plus_memory_managed(enum memory memory)
{
	CUdeviceptr base = 0;
	CUresult result;

	(void)memory;
	gpu_start();
	result = CU_TRY(cuMemAllocManaged, &base, 2 * PAGE, CU_MEM_ATTACH_GLOBAL);
	if (result != CUDA_SUCCESS)
		WAIVE("no managed memory here (%s)", cuda_driver_describe(result));
	refuse_or_serve(round_up(base), PAGE, "managed memory");
	GPU(cuMemFree, base);
}

void test_plus_memory_pool(enum memory memory)
{
	CUdeviceptr base = 0;
	CUresult result;

	(void)memory;
	gpu_start();
	result = CU_TRY(cuMemAllocAsync, &base, 2 * PAGE, NULL);
	if (result != CUDA_SUCCESS)
		WAIVE("no stream-ordered memory here (%s)", cuda_driver_describe(result));
	GPU(cuStreamSynchronize, NULL);
	refuse_or_serve(round_up(base), PAGE, "stream-ordered memory");
	GPU(cuMemFreeAsync, base, NULL);
	GPU(cuStreamSynchronize, NULL);
}

static void refuse_host(gdr_t g, const void *host, const char *what)
{
	gdr_mh_t mh = { .h = 1 };
	int error = gdr_pin_buffer(g, round_up((uintptr_t)host), PAGE, 0, 0, &mh);

	if (error != EINVAL || mh.h != 0)
		FAIL("pin of %s: returned %d and handle 0x%lx, expected EINVAL and 0", what, error,
		     mh.h);
}

void test_plus_memory_host(enum memory memory)
{
	void *pinned = NULL, *registered = NULL;
	gdr_t g;

	(void)memory;
	gpu_start();
	g = open_session();
	REQUIRE_EQ(posix_memalign(&registered, PAGE, 2 * PAGE), 0);
	memset(registered, 0, 2 * PAGE);
	refuse_host(g, registered, "host memory");
	if (CU_TRY(cuMemHostRegister, registered, 2 * PAGE, CU_MEMHOSTALLOC_DEVICEMAP) ==
	    CUDA_SUCCESS) {
		refuse_host(g, registered, "registered host memory");
		GPU(cuMemHostUnregister, registered);
	}
	GPU(cuMemHostAlloc, &pinned, 2 * PAGE, CU_MEMHOSTALLOC_DEVICEMAP);
	refuse_host(g, pinned, "CUDA's host memory");
	GPU(cuMemFreeHost, pinned);
	refuse_host(g, &registered, "the stack");
	free(registered);
	REQUIRE_OK(gdr_close(g));
}

static void lend_memory(struct peer *borrower, void *arg)
{
	struct cuda_ipc_handle handle;
	CUdeviceptr base = 0;

	(void)arg;
	gpu_start();
	GPU(cuMemAlloc, &base, (size_t)2 << 20);
	GPU(cuIpcGetMemHandle, &handle, base);
	peer_send(borrower, &handle, sizeof(handle));
	peer_wait(borrower);
	GPU(cuMemFree, base);
}

void test_plus_memory_ipc(enum memory memory)
{
	struct cuda_ipc_handle handle;
	struct peer lender;
	CUdeviceptr base = 0;
	CUresult result;

	(void)memory;
	peer_start(&lender, lend_memory, NULL);
	gpu_start();
	peer_receive(&lender, &handle, sizeof(handle));
	result = CU_TRY(cuIpcOpenMemHandle, &base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (result != CUDA_SUCCESS)
		WAIVE("memory of another process cannot be opened (%s)",
		      cuda_driver_describe(result));
	refuse_or_serve(round_up(base), PAGE, "memory of another process");
	GPU(cuIpcCloseMemHandle, base);
	peer_signal(&lender);
	peer_finish(&lender);
}

/* VMM memory of one or two physical pieces, side by side in one range of addresses. */
struct pieces {
	CUdeviceptr addr;
	size_t size;		/* of one piece */
	size_t count;
	CUmemGenericAllocationHandle handles[2];
};

static CUresult open_pieces(size_t count, bool rdma, struct pieces *p)
{
	struct cuda_mem_prop prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = machine.ordinal },
		.gpu_direct_rdma_capable = rdma
	};
	struct cuda_mem_access access = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	};
	CUresult result;

	p->count = count;
	GPU(cuMemGetAllocationGranularity, &p->size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	GPU(cuMemAddressReserve, &p->addr, count * p->size, 0, 0, 0);
	for (size_t i = 0; i < count; i++) {
		result = CU_TRY(cuMemCreate, &p->handles[i], p->size, &prop, 0);
		if (result != CUDA_SUCCESS)
			return result;
		GPU(cuMemMap, p->addr + i * p->size, p->size, 0, p->handles[i], 0);
	}
	GPU(cuMemSetAccess, p->addr, count * p->size, &access, 1);
	return CUDA_SUCCESS;
}

static void close_pieces(const struct pieces *p)
{
	for (size_t i = 0; i < p->count; i++) {
		GPU(cuMemUnmap, p->addr + i * p->size, p->size);
		GPU(cuMemRelease, p->handles[i]);
	}
	GPU(cuMemAddressFree, p->addr, p->count * p->size);
}

/* Without the flag the driver promises nothing to anybody who pins. */
void test_plus_memory_vmm_without_rdma(enum memory memory)
{
	gdr_mh_t mh = { .h = 1 };
	struct pieces piece;
	CUresult result;
	int error;
	gdr_t g;

	(void)memory;
	gpu_start();
	result = open_pieces(1, false, &piece);
	if (result != CUDA_SUCCESS)
		WAIVE("no VMM memory without the RDMA flag here (%s)",
		      cuda_driver_describe(result));
	g = open_session();
	error = gdr_pin_buffer(g, piece.addr, PAGE, 0, 0, &mh);
	DEBUG("pin of VMM memory without the RDMA flag: %d", error);
	if (error) {
		REQUIRE(error == EINVAL || error == EOPNOTSUPP);
		REQUIRE_EQ(mh.h, 0);
	} else {
		require_served(g, mh, piece.addr, PAGE);
	}
	REQUIRE_OK(gdr_close(g));
	close_pieces(&piece);
}

/* All or nothing: both sides of the seam are served, or nothing is left behind. */
static void pin_across(gdr_t g, uint64_t addr, size_t size)
{
	struct process_state before;
	gdr_mh_t mh = { .h = 1 };
	int error;

	process_remember(&before);
	error = gdr_pin_buffer(g, addr, size, 0, 0, &mh);
	DEBUG("pin of %zu bytes across the seam: %d", size, error);
	if (error) {
		REQUIRE(error == EINVAL || error == EOPNOTSUPP);
		REQUIRE_EQ(mh.h, 0);
	} else {
		require_served(g, mh, addr, size);
	}
	process_require_same(&before, 1, "after a pin across a seam");
}

static void pin_half(gdr_t g, uint64_t addr, size_t size)
{
	gdr_mh_t mh;

	REQUIRE_OK(gdr_pin_buffer(g, addr, size, 0, 0, &mh));
	require_served(g, mh, addr, size);
}

void test_plus_memory_vmm_seam(enum memory memory)
{
	struct pieces two;
	CUresult result;
	gdr_t g;

	(void)memory;
	gpu_start();
	result = open_pieces(2, true, &two);
	if (result != CUDA_SUCCESS)
		FAIL("cuMemCreate failed with %s", cuda_driver_describe(result));
	g = open_session();
	for (int round = 0; round < 2; round++) {
		pin_half(g, two.addr, two.size);
		pin_half(g, two.addr + two.size, two.size);
		pin_across(g, two.addr, 2 * two.size);
		pin_across(g, two.addr + two.size - PAGE, 2 * PAGE);
	}
	REQUIRE_OK(gdr_close(g));
	close_pieces(&two);
}
