/* SPDX-License-Identifier: MIT */
/*
 * Every wrong argument: its errno, one log line that names the fix, and what
 * happens to outputs.  A pin's handle and a map's pointer are cleared, every
 * other output keeps its bytes.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOGGED "GDRCOPY_ENABLE_LOGGING=1"
#define POISON 0x5a5a5a5a5a5a5a5aul

/* The exported 40-byte call, which the header's macro hides. */
#undef gdr_get_info
extern int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info);

static void check_pin_refused(gdr_t g, unsigned long addr, size_t size, int expected,
			      const char *hint, int line)
{
	gdr_mh_t handle = { POISON };

	CHECK_REFUSED(gdr_pin_buffer(g, addr, size, 0, 0, &handle), expected, hint);
	if (!CHECK_EQ(handle.h, 0))
		fprintf(stderr, "  pin at line %d\n", line);
	handle.h = POISON;
	CHECK_REFUSED(gdr_pin_buffer_v2(g, addr, size, 0, &handle), expected, hint);
	if (!CHECK_EQ(handle.h, 0))
		fprintf(stderr, "  pin_v2 at line %d\n", line);
}

#define PIN_REFUSED(g, addr, size, expected, hint) \
	check_pin_refused(g, (unsigned long)(addr), size, expected, hint, __LINE__)

static void pin_wrong_pointers(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	int on_stack = 0;
	void *on_heap = malloc(65536);

	PIN_REFUSED(g, 0, 65536, EINVAL, "give a GPU address");
	PIN_REFUSED(g, &on_stack, 4, EINVAL, "not GPU memory of this process");
	PIN_REFUSED(g, on_heap, 65536, EINVAL, "not GPU memory of this process");
	PIN_REFUSED(g, 65536, 65536, EINVAL, "not GPU memory of this process");
	PIN_REFUSED(g, 0xdead00000000ul, 65536, EINVAL, "not GPU memory of this process");
	free(on_heap);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void pin_wrong_sizes(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();

	PIN_REFUSED(g, buffer.ptr, 0, EINVAL, "size in bytes");
	PIN_REFUSED(g, buffer.ptr, SIZE_MAX, EINVAL, "is not a range");
	PIN_REFUSED(g, buffer.ptr, SIZE_MAX - buffer.ptr, EINVAL, "is not a range");
	PIN_REFUSED(g, buffer.ptr, SIZE_MAX - buffer.ptr + 1, EINVAL, "is not a range");
	PIN_REFUSED(g, buffer.ptr, SIZE_MAX - buffer.ptr - 65536 + 1, EINVAL, "is not a range");
	PIN_REFUSED(g, SIZE_MAX, 1, EINVAL, "is not a range");
	PIN_REFUSED(g, SIZE_MAX - 65535, 65535, EINVAL, "is not a range");
	PIN_REFUSED(g, SIZE_MAX - 65536, 65536, EINVAL, "is not a range");
	PIN_REFUSED(g, buffer.ptr, (size_t)1 << 46, EINVAL, "leaves its memory object");
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void pin_freed_buffer(void)
{
	struct gpu_buffer buffer = gpu_alloc(8 * MIB);
	gdr_t g = gpu_open();

	gpu_free(buffer);
	PIN_REFUSED(g, buffer.ptr, 65536, EINVAL, "was freed");
	CHECK_EQ(gdr_close(g), 0);
}

static void pin_other_kinds_of_memory(void)
{
	gdr_t g = gpu_open();
	CUdeviceptr managed, pool;
	void *host;

	gpu_start();
	REQUIRE_EQ(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	PIN_REFUSED(g, managed, 65536, EINVAL, "use cudaMalloc");
	REQUIRE_EQ(cuMemAllocAsync(&pool, MIB, NULL), CUDA_SUCCESS);
	REQUIRE_EQ(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	PIN_REFUSED(g, pool, 65536, EINVAL, "use cudaMalloc");
	REQUIRE_EQ(cuMemAllocHost(&host, MIB), CUDA_SUCCESS);
	PIN_REFUSED(g, host, 65536, EINVAL, "use cudaMalloc");
	CHECK_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
	CHECK_EQ(cuMemFreeAsync(pool, NULL), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree(managed), CUDA_SUCCESS);
	CHECK_EQ(gdr_close(g), 0);
}

static void pin_flags(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = { POISON };

	for (int bit = 1; bit < 32; bit++) {
		handle.h = POISON;
		CHECK_REFUSED(gdr_pin_buffer_v2(g, buffer.ptr, 65536, 1u << bit, &handle), EINVAL,
			      "GDR_PIN_FLAG_DEFAULT");
		CHECK_EQ(handle.h, 0);
	}
	handle.h = POISON;
	CHECK_REFUSED(gdr_pin_buffer_v2(g, buffer.ptr, 65536, GDR_PIN_FLAG_FORCE_PCIE, &handle),
		      EOPNOTSUPP, "pin with flags 0");
	CHECK_EQ(handle.h, 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void null_out_pointers(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_t g = mapping.g;
	gdr_mh_t other = gpu_pin(g, mapping.buffer.ptr, 65536);
	int fds;

	CHECK_REFUSED(gdr_pin_buffer(g, mapping.buffer.ptr, 65536, 0, 0, NULL), EINVAL,
		      "handle is NULL");
	fds = harness_count_fds();
	CHECK_REFUSED(gdr_pin_buffer_v2(g, mapping.buffer.ptr, 65536, 0, NULL), EINVAL,
		      "handle is NULL");
	CHECK_REFUSED(gdr_map(g, other, NULL, 65536), EINVAL, "NULL");
	CHECK_REFUSED(gdr_map_v2(g, other, NULL, 65536, 0), EINVAL, "NULL");
	CHECK_REFUSED(gdr_get_info(g, other, NULL), EINVAL, "info is NULL");
	CHECK_REFUSED(gdr_get_info_v2(g, other, NULL), EINVAL, "info is NULL");
	CHECK_REFUSED(gdr_get_callback_flag(g, other, NULL), EINVAL, "flag is NULL");
	CHECK_REFUSED(gdr_get_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, NULL), EINVAL,
		      "v is NULL");
	CHECK_REFUSED(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_WC, NULL), EINVAL,
		      "pstr is NULL");
	/* The two version calls have optional outputs. */
	gdr_runtime_get_version(NULL, NULL);
	CHECK_EQ(gdr_driver_get_version(g, NULL, NULL), 0);
	CHECK_EQ(harness_count_fds(), fds);
	/* The refused map left the pin as it was. */
	CHECK_EQ(gdr_unpin_buffer(g, other), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(g), 0);
}

static void check_map_refused(gdr_t g, gdr_mh_t handle, size_t size, int flags, int expected,
			      const char *hint)
{
	void *va = (void *)POISON;

	CHECK_REFUSED(gdr_map_v2(g, handle, &va, size, flags), expected, hint);
	CHECK(va == NULL);
	if (flags != GDR_MAP_FLAG_DEFAULT)
		return;
	va = (void *)POISON;
	CHECK_REFUSED(gdr_map(g, handle, &va, size), expected, hint);
	CHECK(va == NULL);
}

static void map_wrong_sizes(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = gpu_pin(g, buffer.ptr, 100000);

	check_map_refused(g, handle, 0, 0, EINVAL, "give 1 to 131072 bytes");
	check_map_refused(g, handle, 131073, 0, EINVAL, "give 1 to 131072 bytes");
	check_map_refused(g, handle, 131072 + 65536, 0, EINVAL, "give 1 to 131072 bytes");
	check_map_refused(g, handle, SIZE_MAX, 0, EINVAL, "give 1 to 131072 bytes");
	check_map_refused(g, handle, SIZE_MAX - 4094, 0, EINVAL, "give 1 to 131072 bytes");
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* The pin succeeds and only its map fails, as GDRCopy's own suite asserts. */
static void map_unaligned(void)
{
	static const size_t offsets[] = { 1, 8, 512, 4096, 65535, 65536 + 4 };
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		gdr_mh_t handle = gpu_pin(g, buffer.ptr + offsets[i], 8);
		char hint[64];

		snprintf(hint, sizeof(hint), "pin from %#llx on",
			 (buffer.ptr + offsets[i]) & GPU_PAGE_MASK);
		check_map_refused(g, handle, 8, 0, EINVAL, hint);
		check_map_refused(g, handle, 65536, 0, EINVAL, hint);
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	}
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void map_flags_and_twice(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);
	void *va;

	check_map_refused(g, handle, MIB, -1, EINVAL, "GDR_MAP_FLAG_");
	check_map_refused(g, handle, MIB, 4, EINVAL, "GDR_MAP_FLAG_");
	check_map_refused(g, handle, MIB, 0x7fffffff, EINVAL, "GDR_MAP_FLAG_");
	check_map_refused(g, handle, MIB, GDR_MAP_FLAG_REQ_CACHE_MAPPING, EOPNOTSUPP, "flags 0");
	check_map_refused(g, handle, MIB, GDR_MAP_FLAG_REQ_DEVICE_MAPPING, EOPNOTSUPP, "flags 0");
	va = gpu_map(g, handle, MIB);
	check_map_refused(g, handle, MIB, 0, EAGAIN, "unmap it first");
	check_map_refused(g, handle, 65536, GDR_MAP_FLAG_REQ_WC_MAPPING, EAGAIN, "unmap it first");
	/* The mapping that was there still is. */
	CHECK_EQ(gdr_copy_to_mapping(handle, va, &va, sizeof(va)), 0);
	CHECK_EQ(gdr_unmap(g, handle, va, MIB), 0);
	CHECK_EQ(gdr_map_v2(g, handle, &va, MIB, GDR_MAP_FLAG_REQ_WC_MAPPING), 0);
	CHECK_EQ(gdr_unmap(g, handle, va, MIB), 0);
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void unmap_wrong(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_t g = mapping.g;

	CHECK_REFUSED(gdr_unmap(g, mapping.handle, NULL, MIB), EINVAL, "that gdr_map gave");
	CHECK_REFUSED(gdr_unmap(g, mapping.handle, mapping.va + 4096, MIB), EINVAL,
		      "that gdr_map gave");
	CHECK_REFUSED(gdr_unmap(g, mapping.handle, &mapping, MIB), EINVAL, "that gdr_map gave");
	/* Nothing of it touched the mapping. */
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va + MIB - 8, &g, 8), 0);
	CHECK_EQ(gdr_unmap(g, mapping.handle, mapping.va, MIB), 0);
	CHECK_REFUSED(gdr_unmap(g, mapping.handle, mapping.va, MIB), EINVAL, "not mapped");
	CHECK_EQ(gdr_unpin_buffer(g, mapping.handle), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(mapping.buffer);
}

static void copies_out_of_range(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), 2 * GPU_PAGE_SIZE);
	const size_t size = 2 * GPU_PAGE_SIZE;
	gdr_mh_t handle = mapping.handle;
	unsigned char *va = mapping.va;
	unsigned char before[64], host[64];

	gpu_fill(before, sizeof(before), 1);
	memcpy(host, before, sizeof(host));
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va + size - 7, host, 8), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va + size, host, 1), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va - 1, host, 1), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va - 1, host, 4), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va, host, size + 1), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va, host, SIZE_MAX), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va + 1, host, SIZE_MAX), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va + 8, host, SIZE_MAX - 6), EINVAL,
		      "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, NULL, host, 1), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, (void *)-1, host, 1), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, host, va + size - 3, 4), EINVAL,
		      "leave the map");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, host, va - 4, 8), EINVAL, "leave the map");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, host, va + 16, SIZE_MAX - 15), EINVAL,
		      "leave the map");
	/* Arguments in the wrong order. */
	CHECK_REFUSED(gdr_copy_to_mapping(handle, host, va, 8), EINVAL, "swapped?");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, va, host, 8), EINVAL, "swapped?");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va, NULL, 8), EINVAL, "host pointer is NULL");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, NULL, va, 8), EINVAL, "host pointer is NULL");
	CHECK(memcmp(host, before, sizeof(host)) == 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* Size 0 touches nothing, wherever the pointers are. */
static void copies_of_nothing(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), GPU_PAGE_SIZE);
	char *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(unreadable != MAP_FAILED);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, unreadable, 0), 0);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va + GPU_PAGE_SIZE, NULL, 0), 0);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, NULL, NULL, 0), 0);
	CHECK_EQ(gdr_copy_from_mapping(mapping.handle, unreadable, mapping.va, 0), 0);
	CHECK_EQ(gdr_copy_from_mapping(mapping.handle, NULL, unreadable, 0), 0);
	munmap(unreadable, 4096);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void copies_without_mapping(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);
	char host[8] = "1234567", kept[8] = "1234567";
	void *va;

	CHECK_REFUSED(gdr_copy_to_mapping(handle, host, host, 8), EINVAL, "not mapped");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, host, host, 8), EINVAL, "not mapped");
	va = gpu_map(g, handle, MIB);
	CHECK_EQ(gdr_unmap(g, handle, va, MIB), 0);
	CHECK_REFUSED(gdr_copy_to_mapping(handle, va, host, 8), EINVAL, "not mapped");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, host, va, 8), EINVAL, "not mapped");
	CHECK(memcmp(host, kept, 8) == 0);
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void attributes_and_types(void)
{
	gdr_t g = gpu_open();
	const char *text = "untouched";
	int value = 77;

	CHECK_REFUSED(gdr_get_attribute(g, (gdr_attr_t)0, &value), EINVAL, "attribute 0");
	CHECK_REFUSED(gdr_get_attribute(g, GDR_ATTR_MAX, &value), EINVAL, "attribute 4");
	CHECK_REFUSED(gdr_get_attribute(g, (gdr_attr_t)-1, &value), EINVAL, "attribute -1");
	CHECK_REFUSED(gdr_get_attribute(g, (gdr_attr_t)0x7fffffff, &value), EINVAL, "attribute 2");
	CHECK_EQ(value, 77);
	CHECK_REFUSED(gdr_get_mapping_type_string((gdr_mapping_type_t)4, &text), EINVAL, "type 4");
	CHECK_REFUSED(gdr_get_mapping_type_string((gdr_mapping_type_t)-1, &text), EINVAL,
		      "type -1");
	CHECK(strcmp(text, "untouched") == 0);
	CHECK_EQ(gdr_close(g), 0);
}

/* All calls on a session that is gone, one that is NULL and one that never was. */
static void check_dead_session(gdr_t g, gdr_mh_t handle)
{
	gdr_info_v1_t info_v1, poison_v1;
	gdr_info_v2_t info_v2, poison_v2;
	int a = 71, b = 72;
	gdr_mh_t out = { POISON };
	void *va = (void *)POISON;

	memset(&poison_v1, 0x5a, sizeof(poison_v1));
	memset(&poison_v2, 0x5a, sizeof(poison_v2));
	memcpy(&info_v1, &poison_v1, sizeof(info_v1));
	memcpy(&info_v2, &poison_v2, sizeof(info_v2));
	CHECK_REFUSED(gdr_pin_buffer(g, 65536, 65536, 0, 0, &out), EINVAL, "not an open session");
	CHECK_EQ(out.h, 0);
	CHECK_REFUSED(gdr_pin_buffer_v2(g, 65536, 65536, 0, NULL), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_unpin_buffer(g, handle), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_map(g, handle, &va, 4096), EINVAL, "not an open session");
	CHECK(va == NULL);
	CHECK_REFUSED(gdr_unmap(g, handle, NULL, 4096), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_get_info(g, handle, &info_v1), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_get_info_v2(g, handle, &info_v2), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_get_callback_flag(g, handle, &a), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_get_attribute(g, GDR_ATTR_USING_DMA_BUF_MMAP, &a), EINVAL,
		      "not an open session");
	CHECK_REFUSED(gdr_driver_get_version(g, &a, &b), EINVAL, "not an open session");
	CHECK_REFUSED(gdr_close(g), EINVAL, "not an open session");
	CHECK(memcmp(&info_v1, &poison_v1, sizeof(info_v1)) == 0);
	CHECK(memcmp(&info_v2, &poison_v2, sizeof(info_v2)) == 0);
	CHECK_EQ(a, 71);
	CHECK_EQ(b, 72);
}

static void dead_sessions(void)
{
	gdr_mh_t none = { 0 }, handle;
	struct gpu_buffer buffer;
	gdr_t g;

	/* Before the first gdr_open of the process there is no table at all. */
	check_dead_session(NULL, none);
	buffer = gpu_alloc(MIB);
	g = gpu_open();
	handle = gpu_pin(g, buffer.ptr, MIB);
	check_dead_session(NULL, handle);
	check_dead_session((gdr_t)&buffer, handle);
	CHECK_EQ(gdr_close(g), 0);
	check_dead_session(g, handle);
	gpu_free(buffer);
}

/* Outputs of calls on a handle that is dead, inside a session that lives. */
static void dead_handles(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = gpu_stale_handle(g, buffer);
	gdr_info_v1_t info_v1, poison_v1;
	gdr_info_v2_t info_v2, poison_v2;
	void *va = (void *)POISON;
	int flag = 77;

	memset(&poison_v1, 0x5a, sizeof(poison_v1));
	memset(&poison_v2, 0x5a, sizeof(poison_v2));
	memcpy(&info_v1, &poison_v1, sizeof(info_v1));
	memcpy(&info_v2, &poison_v2, sizeof(info_v2));
	CHECK_REFUSED(gdr_unpin_buffer(g, handle), EINVAL, "not a live pin");
	CHECK_REFUSED(gdr_map(g, handle, &va, 4096), EINVAL, "not a live pin");
	CHECK(va == NULL);
	CHECK_REFUSED(gdr_unmap(g, handle, NULL, 4096), EINVAL, "not a live pin");
	CHECK_REFUSED(gdr_get_info(g, handle, &info_v1), EINVAL, "not a live pin");
	CHECK_REFUSED(gdr_get_info_v2(g, handle, &info_v2), EINVAL, "not a live pin");
	CHECK_REFUSED(gdr_get_callback_flag(g, handle, &flag), EINVAL, "not a live pin");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, &va, &flag, 4), EINVAL, "not mapped");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, &flag, &va, 4), EINVAL, "not mapped");
	CHECK(memcmp(&info_v1, &poison_v1, sizeof(info_v1)) == 0);
	CHECK(memcmp(&info_v2, &poison_v2, sizeof(info_v2)) == 0);
	CHECK_EQ(flag, 77);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* A failure inside the back end: nothing is left, and the next try works. */
static void injected_failures(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = { POISON };
	void *va = (void *)POISON;

	CHECK_REFUSED(gdr_pin_buffer(g, buffer.ptr, MIB, 0, 0, &handle), ENOMEM, "injected");
	CHECK_EQ(handle.h, 0);
	handle = gpu_pin(g, buffer.ptr, MIB);
	CHECK_REFUSED(gdr_map(g, handle, &va, MIB), EIO, "injected");
	CHECK(va == NULL);
	va = gpu_map(g, handle, MIB);
	CHECK_EQ(gdr_unmap(g, handle, va, MIB), 0);
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void bar1_is_full(void)
{
	struct gpu_buffer buffer = gpu_alloc(4 * MIB);
	gdr_t g = gpu_open();
	gdr_mh_t first = gpu_pin(g, buffer.ptr, MIB), second = { POISON };

	CHECK_REFUSED(gdr_pin_buffer(g, buffer.ptr + 2 * MIB, MIB, 0, 0, &second), ENOMEM, "BAR1");
	CHECK_EQ(second.h, 0);
	CHECK_EQ(gdr_unpin_buffer(g, first), 0);
	second = gpu_pin(g, buffer.ptr + 2 * MIB, MIB);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static const struct api_case cases[] = {
	{ "pin_wrong_pointers", pin_wrong_pointers, LOGGED },
	{ "pin_wrong_sizes", pin_wrong_sizes, LOGGED },
	{ "pin_freed_buffer", pin_freed_buffer, LOGGED },
	{ "pin_other_kinds_of_memory", pin_other_kinds_of_memory, LOGGED },
	{ "pin_flags", pin_flags, LOGGED },
	{ "null_out_pointers", null_out_pointers, LOGGED },
	{ "map_wrong_sizes", map_wrong_sizes, LOGGED },
	{ "map_unaligned", map_unaligned, LOGGED },
	{ "map_flags_and_twice", map_flags_and_twice, LOGGED },
	{ "unmap_wrong", unmap_wrong, LOGGED },
	{ "copies_out_of_range", copies_out_of_range, LOGGED },
	{ "copies_of_nothing", copies_of_nothing, LOGGED },
	{ "copies_without_mapping", copies_without_mapping, LOGGED },
	{ "attributes_and_types", attributes_and_types, LOGGED },
	{ "dead_sessions", dead_sessions, LOGGED },
	{ "dead_handles", dead_handles, LOGGED },
	{ "injected_failures", injected_failures,
	  LOGGED " GDRCOPY_EMU=fail=pin:1:12,fail=map:1:5" },
	{ "bar1_is_full", bar1_is_full, LOGGED " GDRCOPY_EMU=bar1=1M" },
};

API_MAIN(cases)
