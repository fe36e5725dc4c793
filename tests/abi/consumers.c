/* SPDX-License-Identifier: MIT */
/*
 * What well-known programs do with the library, each with its own idea of the
 * interface and none with the project's header: NCCL, DOCA GPUNetIO, UCX,
 * libfabric, NVSHMEM, aws-ofi-nccl, TensorRT-LLM, MSCCL++, DPDK and NIXL.
 */
#include "harness.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE ((size_t)65536)
#define MIB ((size_t)1024 * 1024)

/* The interface as these programs declare it. */
struct mh {
	unsigned long h;
};

struct info40 {
	uint64_t va, mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned mapped : 1;
	unsigned wc_mapping : 1;
};

struct gdr {
	void *(*open)(void);
	int (*close)(void *g);
	int (*pin)(void *g, unsigned long addr, size_t size, uint64_t token, uint32_t space,
		   struct mh *handle);
	int (*pin_v2)(void *g, unsigned long addr, size_t size, uint32_t flags, struct mh *handle);
	int (*unpin)(void *g, struct mh handle);
	int (*info)(void *g, struct mh handle, void *info);
	int (*info_v2)(void *g, struct mh handle, void *info);
	int (*map)(void *g, struct mh handle, void **va, size_t size);
	int (*map_v2)(void *g, struct mh handle, void **va, size_t size, int flags);
	int (*unmap)(void *g, struct mh handle, void *va, size_t size);
	int (*to)(struct mh handle, void *map, const void *host, size_t size);
	int (*from)(struct mh handle, void *host, const void *map, size_t size);
	void (*runtime)(int *major, int *minor);
	int (*driver)(void *g, int *major, int *minor);
	int (*attribute)(void *g, int attribute, int *value);
};

/* Only what the program looks up; a missing name disables it. */
static void *load(struct gdr *gdr, const char *name, int flags, bool has_v2)
{
	const struct {
		const char *name;
		void *place;
		bool is_v2;
	} symbols[] = {
		{ "gdr_open", &gdr->open, false },
		{ "gdr_close", &gdr->close, false },
		{ "gdr_pin_buffer", &gdr->pin, false },
		{ "gdr_unpin_buffer", &gdr->unpin, false },
		{ "gdr_get_info", &gdr->info, false },
		{ "gdr_map", &gdr->map, false },
		{ "gdr_unmap", &gdr->unmap, false },
		{ "gdr_copy_to_mapping", &gdr->to, false },
		{ "gdr_copy_from_mapping", &gdr->from, false },
		{ "gdr_runtime_get_version", &gdr->runtime, false },
		{ "gdr_driver_get_version", &gdr->driver, false },
		{ "gdr_pin_buffer_v2", &gdr->pin_v2, true },
		{ "gdr_get_info_v2", &gdr->info_v2, true },
		{ "gdr_map_v2", &gdr->map_v2, true },
		{ "gdr_get_attribute", &gdr->attribute, true },
	};
	void *library = dlopen(name, flags);

	REQUIRE(library != NULL);
	memset(gdr, 0, sizeof(*gdr));
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *address = dlsym(library, symbols[i].name);

		if (symbols[i].is_v2 && !has_v2)
			continue;
		REQUIRE(address != NULL);
		memcpy(symbols[i].place, &address, sizeof(address));
	}
	return library;
}

/* GPU memory: the first multiple of 64 KiB of an allocation with room for that. */
static unsigned long gpu_alloc(size_t size)
{
	static void *library;
	static int (*alloc)(unsigned long long *ptr, size_t size);
	int (*init)(unsigned), (*retain)(void **, int), (*set)(void *);
	unsigned long long ptr = 0;
	void *context;

	if (!library) {
		library = dlopen("libcuda.so.1", RTLD_NOW);
		REQUIRE(library != NULL);
		*(void **)&init = dlsym(library, "cuInit");
		*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
		*(void **)&set = dlsym(library, "cuCtxSetCurrent");
		*(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
		REQUIRE_EQ(init(0), 0);
		REQUIRE_EQ(retain(&context, 0), 0);
		REQUIRE_EQ(set(context), 0);
	}
	REQUIRE_EQ(alloc(&ptr, size + PAGE - 1), 0);
	return (unsigned long)((ptr + PAGE - 1) & ~(unsigned long long)(PAGE - 1));
}

static void check_versions(const struct gdr *gdr, void *g)
{
	int lib_major = -1, lib_minor = -1, drv_major = -1, drv_minor = -1;

	gdr->runtime(&lib_major, &lib_minor);
	/* The result is ignored and the numbers are used. */
	gdr->driver(g, &drv_major, &drv_minor);
	CHECK_EQ(lib_major, 2);
	CHECK_EQ(lib_minor, 6);
	CHECK_EQ(drv_major, 2);
	CHECK_EQ(drv_minor, 6);
}

static void store_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Communicator set-up and tear-down; the session is never closed. */
static void run_nccl(bool is_230)
{
	struct {
		struct info40 info;
		unsigned char guard[24];
	} filled;
	const size_t size = MIB;
	struct mh handle, forced;
	struct gdr gdr;
	unsigned long ptr;
	char *va;
	void *map, *g;

	load(&gdr, "libgdrapi.so", RTLD_NOW, is_230);
	g = gdr.open();
	REQUIRE(g != NULL);
	check_versions(&gdr, g);
	ptr = gpu_alloc(size);
	if (is_230) {
		CHECK(gdr.pin_v2(g, ptr, size, 1, &forced) != 0);
		REQUIRE_EQ(gdr.pin_v2(g, ptr, size, 0, &handle), 0);
	} else {
		REQUIRE_EQ(gdr.pin(g, ptr, size, 0, 0, &handle), 0);
	}
	REQUIRE_EQ(gdr.map(g, handle, &map, size), 0);
	memset(&filled, 0xee, sizeof(filled));
	REQUIRE_EQ(gdr.info(g, handle, &filled.info), 0);
	for (size_t i = 0; i < sizeof(filled.guard); i++)
		CHECK_EQ(filled.guard[i], 0xee);
	CHECK_EQ(filled.info.va, ptr);
	va = (char *)map + (filled.info.va - ptr);
	for (size_t i = 0; i < size; i += 16)
		memcpy(va + i, "0123456789abcdef", 16);
	store_fence();
	CHECK(memcmp(va + size - 16, "0123456789abcdef", 16) == 0);
	*(volatile uint64_t *)(va + 128) = 42;
	store_fence();
	CHECK_EQ(*(volatile uint32_t *)(va + 128), 42);
	CHECK_EQ(gdr.unmap(g, handle, map, size), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
}

static void like_nccl_228(void)
{
	run_nccl(false);
}

static void like_nccl_230(void)
{
	run_nccl(true);
}

static void like_new_nccl(void)
{
	int value = -1, major = -1, minor = -1;
	struct gdr gdr;
	void *g;

	load(&gdr, "libgdrapi.so", RTLD_NOW, true);
	g = gdr.open();
	REQUIRE(g != NULL);
	CHECK_EQ(gdr.attribute(g, 3, &value), 0);
	CHECK(value == 0 || value == 1);
	if (value == 0) {
		CHECK_EQ(gdr.driver(g, &major, &minor), 0);
		CHECK(major == 2 && minor >= 1);
	}
	CHECK_EQ(gdr.close(g), 0);
}

/* No info call, results of the release ignored, no close. */
static void like_doca(void)
{
	unsigned long ptr = gpu_alloc(PAGE);
	struct mh handle;
	struct gdr gdr;
	void *map, *g;

	load(&gdr, "libgdrapi.so.2", RTLD_LAZY, false);
	g = gdr.open();
	REQUIRE(g != NULL);
	REQUIRE_EQ(gdr.pin(g, ptr, PAGE, 0, 0, &handle), 0);
	REQUIRE_EQ(gdr.map(g, handle, &map, PAGE), 0);
	*(volatile uint64_t *)map = 7;
	CHECK_EQ(*(volatile uint64_t *)map, 7);
	gdr.unmap(g, handle, map, PAGE);
	gdr.unpin(g, handle);
}

struct ucx_region {
	const struct gdr *gdr;
	void *g, *map;
	struct mh handle;
	unsigned long ptr;
};

static void ucx_register(struct ucx_region *region, const struct gdr *gdr, void *g)
{
	unsigned char info[64];

	region->gdr = gdr;
	region->g = g;
	region->ptr = gpu_alloc(MIB);
	CHECK(gdr->pin_v2(g, region->ptr, MIB, 1, &region->handle) != 0);
	REQUIRE_EQ(gdr->pin_v2(g, region->ptr, MIB, 0, &region->handle), 0);
	REQUIRE_EQ(gdr->map(g, region->handle, &region->map, MIB), 0);
	memset(info, 0xee, sizeof(info));
	REQUIRE_EQ(gdr->info_v2(g, region->handle, info), 0);
	for (size_t i = 48; i < sizeof(info); i++)
		CHECK_EQ(info[i], 0xee);
	CHECK(memcmp(info, &region->ptr, 8) == 0);
}

static void *ucx_deregister(void *arg)
{
	const struct ucx_region *region = arg;

	CHECK_EQ(region->gdr->unmap(region->g, region->handle, region->map, MIB), 0);
	CHECK_EQ(region->gdr->unpin(region->g, region->handle), 0);
	return NULL;
}

/* A probe session for each query; deregistration runs beside registration. */
static void like_ucx(void)
{
	struct ucx_region region, other;
	unsigned char in[100], out[100];
	int major, minor;
	pthread_t thread;
	struct gdr gdr;
	void *g;

	load(&gdr, "libgdrapi.so.2", RTLD_NOW, true);
	gdr.runtime(&major, &minor);
	CHECK(major > 2 || minor >= 4);
	for (int i = 0; i < 5; i++) {
		g = gdr.open();
		REQUIRE(g != NULL);
		CHECK_EQ(gdr.close(g), 0);
	}
	g = gdr.open();
	REQUIRE(g != NULL);
	ucx_register(&region, &gdr, g);
	for (int i = 0; i < 50; i++) {
		ucx_register(&other, &gdr, g);
		REQUIRE_EQ(pthread_create(&thread, NULL, ucx_deregister, &other), 0);
		memset(out, i, sizeof(out));
		CHECK_EQ(gdr.to(region.handle, (char *)region.map + 13 + i, out, 87), 0);
		CHECK_EQ(gdr.from(region.handle, in, (char *)region.map + 13 + i, 87), 0);
		CHECK(memcmp(in, out, 87) == 0);
		pthread_join(thread, NULL);
	}
	ucx_deregister(&region);
	CHECK_EQ(gdr.close(g), 0);
}

/* The base is computed, never asked for; then the library is dropped. */
static void like_libfabric(void)
{
	unsigned long ptr = gpu_alloc(4 * PAGE) + PAGE + 256;
	const unsigned long base = ptr & ~(PAGE - 1);
	const size_t size = ((ptr + 1000 + PAGE - 1) & ~(PAGE - 1)) - base;
	pthread_spinlock_t lock;
	char out[1000], in[1000];
	struct mh handle;
	struct gdr gdr;
	void *library, *map, *g;

	library = load(&gdr, "libgdrapi.so", RTLD_NOW, false);
	pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
	g = gdr.open();
	REQUIRE(g != NULL);
	pthread_spin_lock(&lock);
	REQUIRE_EQ(gdr.pin(g, base, size, 0, 0, &handle), 0);
	REQUIRE_EQ(gdr.map(g, handle, &map, size), 0);
	pthread_spin_unlock(&lock);
	memset(out, 0x3c, sizeof(out));
	CHECK_EQ(gdr.to(handle, (char *)map + (ptr - base), out, sizeof(out)), 0);
	CHECK_EQ(gdr.from(handle, in, (char *)map + (ptr - base), sizeof(in)), 0);
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	pthread_spin_lock(&lock);
	CHECK_EQ(gdr.unmap(g, handle, map, size), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	pthread_spin_unlock(&lock);
	CHECK_EQ(gdr.close(g), 0);
	CHECK_EQ(dlclose(library), 0);
}

/* A 48-byte buffer for the 40-byte call; the map is not rounded as the pin is. */
static void like_nvshmem(void)
{
	const size_t wanted = 3 * PAGE + 1234, rounded = 4 * PAGE;
	unsigned long ptr = gpu_alloc(rounded);
	unsigned char info[48];
	int major, minor;
	struct mh handle;
	struct gdr gdr;
	uint32_t four;
	void *map, *g;

	load(&gdr, "libgdrapi.so.2", RTLD_LAZY, false);
	gdr.runtime(&major, &minor);
	CHECK(major == 2 && minor >= 6);
	g = gdr.open();
	REQUIRE(g != NULL);
	check_versions(&gdr, g);
	REQUIRE_EQ(gdr.pin(g, ptr, rounded, 0, 0, &handle), 0);
	REQUIRE_EQ(gdr.map(g, handle, &map, wanted), 0);
	memset(info, 0xee, sizeof(info));
	REQUIRE_EQ(gdr.info(g, handle, info), 0);
	for (size_t i = 40; i < 48; i++)
		CHECK_EQ(info[i], 0xee);
	*(volatile uint64_t *)((char *)map + wanted / 8 * 8 - 8) = 0xabcdef0123456789;
	store_fence();
	CHECK_EQ(gdr.from(handle, &four, (char *)map + wanted / 8 * 8 - 8, 4), 0);
	CHECK_EQ(four, 0x23456789);
	CHECK_EQ(gdr.unmap(g, handle, map, wanted), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	CHECK_EQ(gdr.close(g), 0);
}

static void like_aws(void)
{
	unsigned long ptr = gpu_alloc(PAGE);
	int lib[2], driver[2];
	struct mh handle = { 0 };
	struct gdr gdr;
	void *library, *map, *g;

	library = load(&gdr, "libgdrapi.so", RTLD_NOW | RTLD_LOCAL, true);
	g = gdr.open();
	REQUIRE(g != NULL);
	gdr.runtime(&lib[0], &lib[1]);
	CHECK_EQ(gdr.driver(g, &driver[0], &driver[1]), 0);
	CHECK(lib[0] == 2 && lib[1] >= 5 && driver[0] == 2 && driver[1] >= 5);
	if (gdr.pin_v2(g, ptr, PAGE, 1, &handle) != 0) {
		CHECK_EQ(handle.h, 0);	/* 0 means "nothing pinned" there */
		REQUIRE_EQ(gdr.pin_v2(g, ptr, PAGE, 0, &handle), 0);
	}
	CHECK(handle.h != 0);
	REQUIRE_EQ(gdr.map(g, handle, &map, PAGE), 0);
	for (unsigned char i = 0; i < 10; i++) {
		unsigned char seen = 0;

		CHECK_EQ(gdr.to(handle, (char *)map + i, &i, 1), 0);
		CHECK_EQ(gdr.from(handle, &seen, (char *)map + i, 1), 0);
		CHECK_EQ(seen, i);
	}
	CHECK_EQ(gdr.unmap(g, handle, map, PAGE), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	CHECK_EQ(gdr.close(g), 0);
	CHECK_EQ(dlclose(library), 0);
}

/* Its own unit test: 4096 bytes, mapped 0 then 1, write-combined. */
static void like_trtllm(void)
{
	unsigned long ptr = gpu_alloc(PAGE);
	unsigned char out[4096], in[4096];
	struct info40 info;
	struct mh handle;
	struct gdr gdr;
	void *map, *g;

	load(&gdr, "libgdrapi.so", RTLD_NOW, false);
	g = gdr.open();
	REQUIRE(g != NULL);
	check_versions(&gdr, g);
	CHECK_EQ(gdr.close(g), 0);
	g = gdr.open();
	REQUIRE_EQ(gdr.pin(g, ptr, 4096, 0, 0, &handle), 0);
	REQUIRE_EQ(gdr.info(g, handle, &info), 0);
	CHECK(info.va == ptr && info.mapped == 0);
	REQUIRE_EQ(gdr.map(g, handle, &map, 4096), 0);
	REQUIRE_EQ(gdr.info(g, handle, &info), 0);
	CHECK(info.mapped == 1 && info.wc_mapping == 1);
	memset(out, 0x77, sizeof(out));
	CHECK_EQ(gdr.to(handle, map, out, sizeof(out)), 0);
	CHECK_EQ(gdr.from(handle, in, map, sizeof(in)), 0);
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	CHECK_EQ(gdr.unmap(g, handle, map, 4096), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	CHECK_EQ(gdr.close(g), 0);
}

/* One page, rounded down; the node is a precondition there, so it is not checked here. */
static void like_mscclpp(void)
{
	unsigned long ptr = gpu_alloc(2 * PAGE) + 4040, page = ptr & ~(PAGE - 1);
	int major = -1, minor = -1;
	uint64_t value = 3, seen = 0;
	struct mh handle;
	struct gdr gdr;
	void *map, *g;

	load(&gdr, "libgdrapi.so.2", RTLD_NOW, true);
	g = gdr.open();
	REQUIRE(g != NULL);
	CHECK_EQ(gdr.driver(g, &major, &minor), 0);
	CHECK(major == 2 && minor >= 5);
	if (gdr.pin_v2(g, page, PAGE, 1, &handle) != 0)
		REQUIRE_EQ(gdr.pin_v2(g, page, PAGE, 0, &handle), 0);
	REQUIRE_EQ(gdr.map(g, handle, &map, PAGE), 0);
	CHECK_EQ(gdr.to(handle, (char *)map + (ptr - page), &value, 8), 0);
	CHECK_EQ(*(volatile uint64_t *)((char *)map + (ptr - page)), 3);
	CHECK_EQ(gdr.from(handle, &seen, (char *)map + (ptr - page), 8), 0);
	CHECK_EQ(seen, 3);
	CHECK_EQ(gdr.unmap(g, handle, map, PAGE), 0);
	CHECK_EQ(gdr.unpin(g, handle), 0);
	CHECK_EQ(gdr.close(g), 0);
}

/* Opened once, maps come and go, never closed. */
static void like_dpdk(void)
{
	unsigned long ptr = gpu_alloc(MIB);
	size_t maps = 0;
	struct gdr gdr;
	int fds = 0;
	void *g;

	load(&gdr, "libgdrapi.so", RTLD_LAZY, false);
	g = gdr.open();
	REQUIRE(g != NULL);
	for (int i = 0; i < 2000; i++) {
		struct mh handle;
		void *map;

		REQUIRE_EQ(gdr.pin(g, ptr, MIB, 0, 0, &handle), 0);
		REQUIRE_EQ(gdr.map(g, handle, &map, MIB), 0);
		CHECK_EQ(gdr.unmap(g, handle, map, MIB), 0);
		CHECK_EQ(gdr.unpin(g, handle), 0);
		/* In this order: counting descriptors needs memory itself. */
		if (i == 10) {
			fds = harness_count_fds();
			maps = harness_count_maps();
		}
	}
	CHECK_EQ(harness_count_fds(), fds);
	if (!getenv("HARNESS_SLOW"))
		CHECK_EQ(harness_count_maps(), maps);
}

struct nixl {
	const struct gdr *gdr;
	void *g;
	unsigned long counter;
	pthread_mutex_t *lock;
};

/* Read, add, write on a counter of its own, without lock around the copies. */
static void *nixl_proxy(void *arg)
{
	const struct nixl *nixl = arg;
	const unsigned long page = nixl->counter & ~(PAGE - 1);
	struct mh handle;
	uint64_t value;
	char *place;
	void *map;

	pthread_mutex_lock(nixl->lock);
	CHECK_EQ(nixl->gdr->pin(nixl->g, page, PAGE, 0, 0, &handle), 0);
	CHECK_EQ(nixl->gdr->map(nixl->g, handle, &map, PAGE), 0);
	pthread_mutex_unlock(nixl->lock);
	place = (char *)map + (nixl->counter - page);
	value = 0;
	CHECK_EQ(nixl->gdr->to(handle, place, &value, 8), 0);
	for (int i = 1; i <= 2000; i++) {
		CHECK_EQ(nixl->gdr->from(handle, &value, place, 8), 0);
		value += (uint64_t)i;
		CHECK_EQ(nixl->gdr->to(handle, place, &value, 8), 0);
	}
	CHECK_EQ(nixl->gdr->from(handle, &value, place, 8), 0);
	CHECK_EQ(value, 2000 * 2001 / 2);
	pthread_mutex_lock(nixl->lock);
	CHECK_EQ(nixl->gdr->unmap(nixl->g, handle, map, PAGE), 0);
	CHECK_EQ(nixl->gdr->unpin(nixl->g, handle), 0);
	pthread_mutex_unlock(nixl->lock);
	return NULL;
}

static void like_nixl(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct nixl nixl[4];
	pthread_t thread[4];
	struct gdr gdr;
	void *g;

	load(&gdr, "libgdrapi.so.2", RTLD_NOW, true);
	g = gdr.open();
	REQUIRE(g != NULL);
	for (unsigned long i = 0; i < 4; i++) {
		nixl[i] = (struct nixl){ &gdr, g, gpu_alloc(PAGE) + i * 8, &lock };
		REQUIRE_EQ(pthread_create(&thread[i], NULL, nixl_proxy, &nixl[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(gdr.close(g), 0);
}

static const struct harness_case cases[] = {
	{ "like_nccl_228", like_nccl_228 },
	{ "like_nccl_230", like_nccl_230 },
	{ "like_new_nccl", like_new_nccl },
	{ "like_doca", like_doca },
	{ "like_ucx", like_ucx },
	{ "like_libfabric", like_libfabric },
	{ "like_nvshmem", like_nvshmem },
	{ "like_aws", like_aws },
	{ "like_trtllm", like_trtllm },
	{ "like_mscclpp", like_mscclpp },
	{ "like_dpdk", like_dpdk },
	{ "like_nixl", like_nixl },
};

int main(int argc, char **argv)
{
	setenv("GDRCOPY_BACKEND", "emu", 1);
	return harness_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
