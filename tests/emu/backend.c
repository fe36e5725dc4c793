/* SPDX-License-Identifier: MIT */
/*
 * Back end emu through the public interface: what can be pinned and mapped,
 * what is refused, and that the memory outlives its owner.
 */
#include "gdrapi.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gdrcopy_emu.h"
#include "helper_case.h"
#include "nvml.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)65536)

static struct {
	gdr_t (*open)(void);
	int (*close)(gdr_t g);
	int (*pin)(gdr_t g, unsigned long addr, size_t size, uint32_t flags, gdr_mh_t *handle);
	int (*unpin)(gdr_t g, gdr_mh_t handle);
	int (*info)(gdr_t g, gdr_mh_t handle, gdr_info_v2_t *info);
	int (*map)(gdr_t g, gdr_mh_t handle, void **va, size_t size, int flags);
	int (*unmap)(gdr_t g, gdr_mh_t handle, void *va, size_t size);
	int (*write)(gdr_mh_t handle, void *map, const void *host, size_t size);
	int (*read)(gdr_mh_t handle, void *host, const void *map, size_t size);
	int (*attribute)(gdr_t g, gdr_attr_t attr, int *value);
} gdr;

static void load(const char *name, void *function)
{
	static void *library;

	if (!library)
		library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	REQUIRE(library != NULL);
	*(void **)function = dlsym(library, name);
	REQUIRE(*(void **)function != NULL);
}

static gdr_t open_session(void)
{
	gdr_t g;

	load("gdr_open", &gdr.open);
	load("gdr_close", &gdr.close);
	load("gdr_pin_buffer_v2", &gdr.pin);
	load("gdr_unpin_buffer", &gdr.unpin);
	load("gdr_get_info_v2", &gdr.info);
	load("gdr_map_v2", &gdr.map);
	load("gdr_unmap", &gdr.unmap);
	load("gdr_copy_to_mapping", &gdr.write);
	load("gdr_copy_from_mapping", &gdr.read);
	load("gdr_get_attribute", &gdr.attribute);
	setenv("GDRCOPY_BACKEND", "emu", 1);
	g = gdr.open();
	REQUIRE(g != NULL);
	return g;
}

static int try_pin(gdr_t g, CUdeviceptr ptr, size_t size, uint32_t flags)
{
	gdr_mh_t handle;
	int ret = gdr.pin(g, ptr, size, flags, &handle);

	if (ret == 0)
		CHECK_EQ(gdr.unpin(g, handle), 0);
	return ret;
}

/* Pins and maps whole pages with default flags. */
static unsigned char *pin_and_map(gdr_t g, CUdeviceptr ptr, size_t size, gdr_mh_t *handle)
{
	void *va = NULL;

	REQUIRE_EQ(gdr.pin(g, ptr, size, 0, handle), 0);
	REQUIRE_EQ(gdr.map(g, *handle, &va, size, 0), 0);
	return va;
}

static gdr_mapping_type_t mapping_type(gdr_t g, gdr_mh_t handle)
{
	gdr_info_v2_t info = { 0 };

	CHECK_EQ(gdr.info(g, handle, &info), 0);
	return info.mapping_type;
}

static void open_starts_no_cuda(void)
{
	gdr_t g = open_session();
	int count, value = -1;

	CHECK_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQ(gdr.attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(gdr.attribute(g, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(gdr.attribute(g, GDR_ATTR_USING_DMA_BUF_MMAP, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(try_pin(g, 0x10000, PAGE, 0), EINVAL);
	CHECK_EQ(gdr.close(g), 0);
}

static void data(void)
{
	unsigned char in[5000], out[5000], *map;
	gdr_t g = open_session();
	gdr_info_v2_t info;
	gdr_mh_t handle;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 3 * MIB));
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 13 + 1);
	map = pin_and_map(g, ptr + PAGE, 2 * PAGE, &handle);
	CHECK_EQ(gdr.info(g, handle, &info), 0);
	CHECK_EQ(info.va, ptr + PAGE);
	CHECK_EQ(info.mapped_size, 2 * PAGE);
	CHECK_EQ(info.page_size, PAGE);
	CHECK_EQ(info.mapping_type, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(gdr.write(handle, map + 3, in, sizeof(in)), 0);
	CHECK_CU(cuMemcpyDtoH(out, ptr + PAGE + 3, sizeof(out)));
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	CHECK_CU(cuMemsetD8(ptr + PAGE, 0x21, 100));
	CHECK_EQ(gdr.read(handle, out, map, 100), 0);
	CHECK_EQ(out[99], 0x21);
	CHECK_EQ(gdr.unmap(g, handle, map, 2 * PAGE), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	CHECK_EQ(gdr.close(g), 0);
}

static void neighbours_share_a_page(void)
{
	gdr_t g = open_session();
	gdr_mh_t handle;
	CUdeviceptr first, second;
	unsigned char *map, out = 0;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&first, 100));
	REQUIRE_CU(cuMemAlloc(&second, 100));
	map = pin_and_map(g, first & ~(PAGE - 1), PAGE, &handle);
	map[second & (PAGE - 1)] = 0x66;
	CHECK_CU(cuMemcpyDtoH(&out, second, 1));
	CHECK_EQ(out, 0x66);
	/* Like the real driver's, the range may be wider than the buffer, not than the block. */
	CHECK_EQ(try_pin(g, first, 5 * PAGE, 0), 0);
	CHECK_EQ(try_pin(g, first, 2 * MIB + 1, 0), EINVAL);
	CHECK_CU(cuMemFree(first));
	CHECK_CU(cuMemFree(second));
	CHECK_EQ(map[second & (PAGE - 1)], 0x66);
	CHECK_EQ(try_pin(g, first, 100, 0), EINVAL);
	CHECK_EQ(gdr.close(g), 0);
}

static void memory_outlives_its_owner(void)
{
	gdr_t g = open_session();
	CUcontext ctx = emu_start(0);
	CUdeviceptr ptr, next;
	gdr_mh_t handle;
	size_t free_bytes, total;
	unsigned char *map;

	REQUIRE_CU(cuMemAlloc(&ptr, 2 * MIB));
	map = pin_and_map(g, ptr, 2 * MIB, &handle);
	map[5] = 0x42;
	CHECK_CU(cuMemFree(ptr));
	/* The address may come again, the pinned memory must not. */
	REQUIRE_CU(cuMemAlloc(&next, 2 * MIB));
	CHECK_CU(cuMemsetD8(next, 0, 2 * MIB));
	CHECK_EQ(map[5], 0x42);
	REQUIRE_CU(cuMemGetInfo(&free_bytes, &total));
	CHECK_EQ(total - free_bytes, 4 * MIB);
	CHECK_CU(cuCtxDestroy(ctx));
	CHECK_EQ(map[5], 0x42);
	CHECK_EQ(gdr.unmap(g, handle, map, 2 * MIB), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	emu_start(0);
	REQUIRE_CU(cuMemGetInfo(&free_bytes, &total));
	CHECK_EQ(free_bytes, total);
	CHECK_EQ(gdr.close(g), 0);
}

static CUdeviceptr vmm_memory(int rdma, size_t parts)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;

	prop.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
	REQUIRE_CU(cuMemAddressReserve(&ptr, parts * 2 * MIB, 0, 0, 0));
	for (size_t i = 0; i < parts; i++) {
		REQUIRE_CU(cuMemCreate(&handle, 2 * MIB, &prop, 0));
		REQUIRE_CU(cuMemMap(ptr + i * 2 * MIB, 2 * MIB, 0, handle, 0));
		REQUIRE_CU(cuMemRelease(handle));
	}
	REQUIRE_CU(cuMemSetAccess(ptr, parts * 2 * MIB, &access, 1));
	return ptr;
}

static void vmm(void)
{
	gdr_t g = open_session();
	gdr_mh_t handle;
	CUdeviceptr ptr;
	unsigned char *map, out = 0;

	emu_start(0);
	ptr = vmm_memory(1, 2);
	map = pin_and_map(g, ptr + 2 * MIB + PAGE, PAGE, &handle);
	map[7] = 0x17;
	CHECK_CU(cuMemcpyDtoH(&out, ptr + 2 * MIB + PAGE + 7, 1));
	CHECK_EQ(out, 0x17);
	/* All or nothing: no pin across the seam of two physical parts. */
	CHECK_EQ(try_pin(g, ptr + 2 * MIB - PAGE, 2 * PAGE, 0), EINVAL);
	CHECK_CU(cuMemUnmap(ptr, 4 * MIB));
	CHECK_EQ(map[7], 0x17);
	CHECK_EQ(try_pin(g, vmm_memory(0, 1), PAGE, 0), EINVAL);
	CHECK_EQ(gdr.close(g), 0);
}

static void refused_kinds(void)
{
	gdr_t g = open_session();
	CUdeviceptr managed, pooled, ptr;
	CUmemoryPool pool;
	gdr_mh_t handle = { 5 };
	void *host;
	int fds;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, PAGE));
	REQUIRE_CU(cuMemAllocManaged(&managed, PAGE, CU_MEM_ATTACH_GLOBAL));
	REQUIRE_CU(cuDeviceGetDefaultMemPool(&pool, 0));
	REQUIRE_CU(cuMemAllocFromPoolAsync(&pooled, PAGE, pool, NULL));
	REQUIRE_CU(cuMemHostAlloc(&host, PAGE, 0));
	fds = harness_count_fds();
	CHECK_EQ(try_pin(g, managed, PAGE, 0), EINVAL);
	CHECK_EQ(try_pin(g, pooled, PAGE, 0), EINVAL);
	CHECK_EQ(try_pin(g, (uintptr_t)host, PAGE, 0), EINVAL);
	CHECK_EQ(gdr.pin(g, (uintptr_t)&fds, 4, 0, &handle), EINVAL);
	CHECK_EQ(handle.h, 0);
	CHECK_EQ(try_pin(g, ptr, PAGE, 2), EINVAL);
	CHECK_EQ(try_pin(g, ptr, PAGE, GDR_PIN_FLAG_FORCE_PCIE), EOPNOTSUPP);
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), 0);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_EQ(gdr.close(g), 0);
}

static void foreign_memory(void)
{
	gdr_t g = open_session();
	CUipcMemHandle handle;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_EQ(read(STDIN_FILENO, &handle, sizeof(handle)), sizeof(handle));
	REQUIRE_CU(cuIpcOpenMemHandle(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), EINVAL);
	CHECK_EQ(gdr.close(g), 0);
}

static void foreign_memory_is_refused(void)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;
	int ends[2], role;

	emu_start(0);
	REQUIRE_EQ(pipe(ends), 0);
	REQUIRE_CU(cuMemAlloc(&ptr, 2 * MIB));
	REQUIRE_CU(cuIpcGetMemHandle(&handle, ptr));
	REQUIRE_EQ(write(ends[1], &handle, sizeof(handle)), sizeof(handle));
	role = emu_start_role("foreign_memory", ends[0]);
	CHECK(emu_role_passed(role));
}

static void no_rdma(void)
{
	gdr_t g = open_session();
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, PAGE));
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), EINVAL);
	CHECK_EQ(gdr.close(g), 0);
}

static void coherent(void)
{
	gdr_t g = open_session();
	gdr_mh_t cached, forced;
	void *a, *b, *c;
	CUdeviceptr ptr;
	int value = 0;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 2 * MIB));
	CHECK_EQ(gdr.attribute(g, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value), 0);
	CHECK_EQ(value, 1);
	a = pin_and_map(g, ptr, PAGE, &cached);
	CHECK_EQ(mapping_type(g, cached), GDR_MAPPING_TYPE_CACHING);
	REQUIRE_EQ(gdr.pin(g, ptr, PAGE, GDR_PIN_FLAG_FORCE_PCIE, &forced), 0);
	CHECK(gdr.map(g, forced, &c, PAGE, GDR_MAP_FLAG_REQ_CACHE_MAPPING) != 0);
	CHECK_EQ(gdr.map(g, forced, &b, PAGE, 0), 0);
	CHECK_EQ(mapping_type(g, forced), GDR_MAPPING_TYPE_WC);
	((unsigned char *)a)[9] = 0x3c;
	CHECK_EQ(((unsigned char *)b)[9], 0x3c);
	CHECK_EQ(gdr.unmap(g, cached, a, PAGE), 0);
	CHECK_EQ(gdr.map(g, cached, &a, PAGE, GDR_MAP_FLAG_REQ_WC_MAPPING), 0);
	CHECK_EQ(mapping_type(g, cached), GDR_MAPPING_TYPE_WC);
	CHECK_EQ(gdr.close(g), 0);
}

static void uncached_machine(void)
{
	gdr_t g = open_session();
	gdr_mh_t handle;
	CUdeviceptr ptr;
	void *va = &ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, PAGE));
	REQUIRE_EQ(gdr.pin(g, ptr, PAGE, 0, &handle), 0);
	CHECK_EQ(gdr.map(g, handle, &va, PAGE, GDR_MAP_FLAG_REQ_WC_MAPPING), EOPNOTSUPP);
	CHECK(va == NULL);
	CHECK_EQ(gdr.map(g, handle, &va, PAGE, 0), 0);
	CHECK_EQ(mapping_type(g, handle), GDR_MAPPING_TYPE_DEVICE);
	CHECK_EQ(gdr.close(g), 0);
}

static void bar1_is_limited(void)
{
	gdr_t g = open_session();
	gdr_mh_t first, second;
	nvmlBAR1Memory_t bar1;
	nvmlDevice_t device;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_EQ(nvmlInit(), NVML_SUCCESS);
	REQUIRE_EQ(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
	REQUIRE_CU(cuMemAlloc(&ptr, 4 * MIB));
	CHECK_EQ(try_pin(g, ptr, MIB + 1, 0), ENOMEM);
	REQUIRE_EQ(gdr.pin(g, ptr, MIB - PAGE, 0, &first), 0);
	CHECK_EQ(try_pin(g, ptr, 2 * PAGE, 0), ENOMEM);
	REQUIRE_EQ(gdr.pin(g, ptr, PAGE, 0, &second), 0);
	CHECK_EQ(nvmlDeviceGetBAR1MemoryInfo(device, &bar1), NVML_SUCCESS);
	CHECK_EQ(bar1.bar1Free, 0);
	CHECK_EQ(gdr.unpin(g, first), 0);
	CHECK_EQ(gdr.close(g), 0);
	CHECK_EQ(nvmlDeviceGetBAR1MemoryInfo(device, &bar1), NVML_SUCCESS);
	CHECK_EQ(bar1.bar1Used, 0);
}

static void injected(void)
{
	gdr_t g = open_session();
	gdr_mh_t handle;
	CUdeviceptr ptr;
	void *va;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, PAGE));
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), 0);
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), EIO);
	REQUIRE_EQ(gdr.pin(g, ptr, PAGE, 0, &handle), 0);
	CHECK_EQ(gdr.map(g, handle, &va, PAGE, 0), ENOMEM);
	CHECK_EQ(gdr.map(g, handle, &va, PAGE, 0), 0);
	CHECK_EQ(gdr.close(g), 0);
}

/* Ten thousand mappings must not need as many descriptors. */
static void many_maps(void)
{
	struct rlimit limit = { 256, 256 };
	gdr_t g = open_session();
	CUdeviceptr ptr;
	static gdr_mh_t handles[10000];
	static void *maps[10000];

	emu_start(0);
	REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	REQUIRE_CU(cuMemAlloc(&ptr, 2 * MIB));
	for (size_t i = 0; i < 10000; i++)
		maps[i] = pin_and_map(g, ptr + i % 32 * PAGE, PAGE, &handles[i]);
	*(unsigned *)maps[31] = 0xfeed;
	CHECK_EQ(*(unsigned *)maps[9983], 0xfeed);
	for (size_t i = 0; i < 10000; i++) {
		CHECK_EQ(gdr.unmap(g, handles[i], maps[i], PAGE), 0);
		CHECK_EQ(gdr.unpin(g, handles[i]), 0);
	}
	CHECK_EQ(gdr.close(g), 0);
}

/* What 2.6's sanity program does: the descriptor behind gdr_t is another one. */
static void foreign_descriptor(void)
{
	gdr_t g = open_session(), other = open_session();
	int own = *(int *)g, copy;
	CUdeviceptr ptr;
	gdr_mh_t handle;
	void *va;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, PAGE));
	REQUIRE_EQ(gdr.pin(g, ptr, PAGE, 0, &handle), 0);
	*(int *)g = *(int *)other;
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), EACCES);
	CHECK_EQ(gdr.map(g, handle, &va, PAGE, 0), EACCES);
	*(int *)g = -1;
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), EACCES);
	copy = dup(own);
	*(int *)g = copy;
	CHECK_EQ(try_pin(g, ptr, PAGE, 0), 0);
	*(int *)g = own;
	CHECK_EQ(gdr.map(g, handle, &va, PAGE, 0), 0);
	CHECK_EQ(gdr.close(g), 0);
	CHECK_EQ(gdr.close(other), 0);
	close(copy);
}

/* A sanitizer turns the signal into an exit, hence the default action. */
static void touch(void *ptr)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)ptr = 1;
}

static void child_has_no_mapping(void)
{
	gdr_t g = open_session();
	gdr_mh_t handle;
	CUdeviceptr ptr;
	unsigned char *map;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, PAGE));
	map = pin_and_map(g, (ptr + PAGE - 1) & ~(PAGE - 1), PAGE, &handle);
	map[0] = 0x55;
	CHECK_EQ(WTERMSIG(harness_fork(touch, map)), SIGSEGV);
	CHECK_EQ(map[0], 0x55);
	CHECK_EQ(gdr.close(g), 0);
}

static void no_devices(void)
{
	void *library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
	gdr_t (*open_gdr)(void);

	REQUIRE(library != NULL);
	*(void **)&open_gdr = dlsym(library, "gdr_open");
	setenv("GDRCOPY_BACKEND", "emu", 1);
	CHECK(open_gdr() == NULL);
}

static const struct emu_case cases[] = {
	{ .name = "open_starts_no_cuda", .run = open_starts_no_cuda },
	{ .name = "data", .run = data },
	{ .name = "neighbours_share_a_page", .run = neighbours_share_a_page },
	/* Without channels, whose memory counts as well. */
	{ .name = "memory_outlives_its_owner", .emu = "dma=0", .run = memory_outlives_its_owner },
	{ .name = "vmm", .run = vmm },
	{ .name = "refused_kinds", .run = refused_kinds },
	{ .name = "foreign_memory_is_refused", .run = foreign_memory_is_refused },
	{ .name = "foreign_memory", .run = foreign_memory, .role = true },
	{ .name = "no_rdma", .emu = "no-rdma", .run = no_rdma },
	{ .name = "coherent", .emu = "coherent", .run = coherent },
	{ .name = "uncached_machine", .emu = "wc=0", .run = uncached_machine },
	{ .name = "bar1_is_limited", .emu = "bar1=1M", .run = bar1_is_limited },
	{ .name = "injected", .emu = "fail=pin:2:5,fail=map", .run = injected },
	{ .name = "many_maps", .run = many_maps },
	{ .name = "foreign_descriptor", .run = foreign_descriptor },
	{ .name = "child_has_no_mapping", .run = child_has_no_mapping },
	{ .name = "no_devices", .emu = "devices=0", .run = no_devices },
	{ .name = "unknown_key", .emu = "colour=red", .run = no_devices },
};

EMU_CASE_MAIN(cases)
