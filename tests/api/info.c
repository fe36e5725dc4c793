/* SPDX-License-Identifier: MIT */
/* What the query calls answer, how many bytes they write, and which map sizes work. */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#undef gdr_get_info
extern int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info);

/* Either layout, with guard bytes behind it. */
union guarded_info {
	gdr_info_v1_t v1;
	gdr_info_v2_t v2;
	unsigned char bytes[80];
};

static bool guard_is_intact(const union guarded_info *info, size_t from)
{
	for (size_t i = from; i < sizeof(info->bytes); i++)
		if (info->bytes[i] != 0xee)
			return false;
	return true;
}

static void check_info(const struct gpu_mapping *mapping, uint64_t va, uint64_t size, int type)
{
	union guarded_info old, new;

	memset(&old, 0xee, sizeof(old));
	memset(&new, 0xee, sizeof(new));
	CHECK_EQ(gdr_get_info(mapping->g, mapping->handle, &old.v1), 0);
	CHECK_EQ(gdr_get_info_v2(mapping->g, mapping->handle, &new.v2), 0);
	CHECK(guard_is_intact(&old, 40));
	CHECK(guard_is_intact(&new, 48));
	CHECK(memcmp(&old, &new, 40) == 0);
	CHECK_EQ(new.v2.va, va);
	CHECK_EQ(new.v2.mapped_size, size);
	CHECK_EQ(new.v2.page_size, 65536);
	CHECK_EQ(new.v2.mapped, type != GDR_MAPPING_TYPE_NONE);
	CHECK_EQ(new.v2.wc_mapping, type == GDR_MAPPING_TYPE_WC);
	CHECK_EQ(new.v2.mapping_type, type);
}

static void before_and_after_map(void)
{
	struct gpu_mapping mapping = { .buffer = gpu_alloc(4 * MIB), .g = gpu_open() };
	const CUdeviceptr ptr = mapping.buffer.ptr;

	mapping.handle = gpu_pin(mapping.g, ptr, MIB);
	check_info(&mapping, ptr, MIB, GDR_MAPPING_TYPE_NONE);
	mapping.va = gpu_map(mapping.g, mapping.handle, MIB);
	check_info(&mapping, ptr, MIB, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, MIB), 0);
	check_info(&mapping, ptr, MIB, GDR_MAPPING_TYPE_NONE);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	/* Unaligned ranges are widened to whole GPU pages. */
	mapping.handle = gpu_pin(mapping.g, ptr + 65535, 2);
	check_info(&mapping, ptr, 131072, GDR_MAPPING_TYPE_NONE);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	mapping.handle = gpu_pin(mapping.g, ptr + 65536, 1);
	check_info(&mapping, ptr + 65536, 65536, GDR_MAPPING_TYPE_NONE);
	CHECK_EQ(gdr_close(mapping.g), 0);
	gpu_free(mapping.buffer);
}

static void coherent_platform(void)
{
	struct gpu_mapping mapping = { .buffer = gpu_alloc(MIB), .g = gpu_open() };
	void *va;
	int value = 0;

	CHECK_EQ(gdr_get_attribute(mapping.g, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value), 0);
	CHECK_EQ(value, 1);
	mapping.handle = gpu_pin(mapping.g, mapping.buffer.ptr, MIB);
	va = gpu_map(mapping.g, mapping.handle, MIB);
	check_info(&mapping, mapping.buffer.ptr, MIB, GDR_MAPPING_TYPE_CACHING);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, va, MIB), 0);
	CHECK_EQ(gdr_map_v2(mapping.g, mapping.handle, &va, MIB, GDR_MAP_FLAG_REQ_WC_MAPPING), 0);
	check_info(&mapping, mapping.buffer.ptr, MIB, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	CHECK_EQ(gdr_pin_buffer_v2(mapping.g, mapping.buffer.ptr, MIB, GDR_PIN_FLAG_FORCE_PCIE,
				   &mapping.handle), 0);
	va = gpu_map(mapping.g, mapping.handle, MIB);
	check_info(&mapping, mapping.buffer.ptr, MIB, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(gdr_close(mapping.g), 0);
	gpu_free(mapping.buffer);
}

static void platform_without_write_combining(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);

	check_info(&mapping, mapping.buffer.ptr, MIB, GDR_MAPPING_TYPE_DEVICE);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* R6: multiples of 64 KiB, less than pinned, not a multiple of a host page. */
static void map_sizes(void)
{
	static const size_t pinned[] = { 1, 4096, 65535, 65536, 65537, 100000, 3 * 65536, MIB };
	static const size_t mapped[] = { 1, 7, 4095, 4096, 4097, 65535, 65536, 65537, 100000,
					 131072, 3 * 65536, MIB - 1, MIB };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct gpu_buffer buffer = gpu_alloc(2 * MIB);
	gdr_t g = gpu_open();

	for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++) {
		const size_t whole = (pinned[i] + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
		gdr_mh_t handle = gpu_pin(g, buffer.ptr, pinned[i]);

		for (size_t j = 0; j < sizeof(mapped) / sizeof(mapped[0]); j++) {
			const size_t pages = (mapped[j] + page - 1) & ~(page - 1);
			unsigned char last = (unsigned char)(i + j), seen = 0, *bytes;
			void *va = NULL;
			int rc = gdr_map(g, handle, &va, mapped[j]);

			CHECK_EQ(rc, mapped[j] <= whole ? 0 : EINVAL);
			if (rc != 0)
				continue;
			/* Copies reach the end of the last host page, and not further. */
			bytes = va;
			CHECK_EQ(gdr_copy_to_mapping(handle, bytes + mapped[j] - 1, &last, 1), 0);
			gpu_read(&seen, buffer.ptr + mapped[j] - 1, 1);
			CHECK_EQ(seen, last);
			CHECK_EQ(gdr_copy_to_mapping(handle, bytes + pages - 1, &last, 1), 0);
			CHECK_EQ(gdr_copy_to_mapping(handle, bytes + pages, &last, 1), EINVAL);
			CHECK_EQ(gdr_unmap(g, handle, va, mapped[j]), 0);
		}
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	}
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* R5: the mapping starts at the pinned byte, also inside a larger allocation. */
static void mapping_starts_at_the_address(void)
{
	struct gpu_buffer buffer = gpu_alloc(4 * MIB);
	gdr_t g = gpu_open();

	for (size_t offset = 0; offset < 4 * MIB; offset += 11 * GPU_PAGE_SIZE) {
		uint64_t mark = 0x1122334455667788u + offset, seen = 0;
		gdr_mh_t handle = gpu_pin(g, buffer.ptr + offset, 300);
		unsigned char *va = gpu_map(g, handle, 300);

		gpu_write(buffer.ptr + offset, &mark, sizeof(mark));
		CHECK_EQ(gdr_copy_from_mapping(handle, &seen, va, sizeof(seen)), 0);
		CHECK_EQ(seen, mark);
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	}
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* The size at unmap is not the caller's to get right. */
static void unmap_takes_any_size(void)
{
	static const size_t sizes[] = { 0, 1, 4096, MIB, 2 * MIB, SIZE_MAX };
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);
	size_t maps = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *va = gpu_map(g, handle, MIB);

		CHECK_EQ(gdr_unmap(g, handle, va, sizes[i]), 0);
		if (i > 0)
			CHECK_EQ(api_count_maps(), maps);
		maps = api_count_maps();
	}
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void versions_and_attributes(void)
{
	gdr_t g = gpu_open();
	int major = -1, minor = -1, value = -1;

	gdr_runtime_get_version(&major, &minor);
	CHECK_EQ(major, 2);
	CHECK_EQ(minor, 6);
	major = minor = -1;
	CHECK_EQ(gdr_driver_get_version(g, &major, &minor), 0);
	CHECK_EQ(major, 2);
	CHECK_EQ(minor, 6);
	CHECK_EQ(gdr_get_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(gdr_get_attribute(g, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value), 0);
	CHECK_EQ(value, 0);
	value = -1;
	CHECK_EQ(gdr_get_attribute(g, GDR_ATTR_USING_DMA_BUF_MMAP, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(gdr_close(g), 0);
}

static void mapping_type_names(void)
{
	static const char *const names[] = { "None", "Write Combining", "Caching", "Device" };
	const char *name;

	for (int type = 0; type < 4; type++) {
		CHECK_EQ(gdr_get_mapping_type_string((gdr_mapping_type_t)type, &name), 0);
		CHECK(strcmp(name, names[type]) == 0);
	}
}

/* Persistent pins: 0 before and after the memory was freed. */
static void callback_flag(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);
	int flag = -1;

	CHECK_EQ(gdr_get_callback_flag(g, handle, &flag), 0);
	CHECK_EQ(flag, 0);
	gpu_free(buffer);
	flag = -1;
	CHECK_EQ(gdr_get_callback_flag(g, handle, &flag), 0);
	CHECK_EQ(flag, 0);
	CHECK_EQ(gdr_close(g), 0);
}

static const struct api_case cases[] = {
	{ "before_and_after_map", before_and_after_map, NULL },
	{ "coherent_platform", coherent_platform, "GDRCOPY_EMU=coherent" },
	{ "platform_without_write_combining", platform_without_write_combining,
	  "GDRCOPY_EMU=wc=0" },
	{ "map_sizes", map_sizes, NULL },
	{ "mapping_starts_at_the_address", mapping_starts_at_the_address, NULL },
	{ "unmap_takes_any_size", unmap_takes_any_size, NULL },
	{ "versions_and_attributes", versions_and_attributes, NULL },
	{ "mapping_type_names", mapping_type_names, NULL },
	{ "callback_flag", callback_flag, NULL },
};

API_MAIN(cases)
