/* SPDX-License-Identifier: MIT */
/* Wrong arguments: each gets its error, outputs stay as promised, and nothing breaks. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "gpu.h"
#include "machine.h"
#include "tests.h"

#define SENTINEL 0x5e5e5e5e

/* A pin that must fail leaves 0 in the handle, and both calls agree. */
static void refuse_pin(gdr_t g, uint64_t addr, size_t size, const char *what)
{
	gdr_mh_t mh = { .h = SENTINEL };
	int error;

	error = gdr_pin_buffer(g, addr, size, 0, 0, &mh);
	if (error != EINVAL || mh.h != 0)
		FAIL("pin of %s: returned %d and handle 0x%lx, expected EINVAL and 0", what, error,
		     mh.h);
	mh.h = SENTINEL;
	error = gdr_pin_buffer_v2(g, addr, size, 0, &mh);
	if (error != EINVAL || mh.h != 0)
		FAIL("pin_v2 of %s: returned %d and handle 0x%lx, expected EINVAL and 0", what,
		     error, mh.h);
}

static void refuse_pin_flags(gdr_t g, const struct buffer *buffer, uint32_t flags)
{
	gdr_mh_t mh = { .h = SENTINEL };

	REQUIRE_ERROR(gdr_pin_buffer_v2(g, buffer->addr, buffer->size, flags, &mh), EINVAL);
	REQUIRE_EQ(mh.h, 0);
}

void test_plus_bad_pins(enum memory memory)
{
	struct buffer buffer;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	refuse_pin(g, buffer.addr, 0, "0 bytes");
	refuse_pin(g, 0, GPU_PAGE_SIZE, "address 0");
	refuse_pin(g, buffer.addr, SIZE_MAX, "the longest size");
	refuse_pin(g, buffer.addr, SIZE_MAX - buffer.addr + 1, "a range that ends at 2^64");
	refuse_pin(g, UINT64_MAX - 100, 200, "a range that wraps");
	refuse_pin(g, UINT64_MAX & GPU_PAGE_MASK, GPU_PAGE_SIZE, "the last page of all");
	refuse_pin(g, buffer.addr, (size_t)1 << 30, "much more than was allocated");
	refuse_pin(g, 4096, 4096, "a low address");
	refuse_pin_flags(g, &buffer, 2);
	refuse_pin_flags(g, &buffer, 0x80000000u);
	refuse_pin_flags(g, &buffer, ~0u);
	REQUIRE_ERROR(gdr_pin_buffer(g, buffer.addr, buffer.size, 0, 0, NULL), EINVAL);
	REQUIRE_ERROR(gdr_pin_buffer_v2(g, buffer.addr, buffer.size, 0, NULL), EINVAL);
	refuse_pin(NULL, buffer.addr, buffer.size, "no session");

	/* After all that the session works. */
	REQUIRE_OK(gdr_unpin_buffer(g, buffer_pin(g, &buffer)));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

static void refuse_map(gdr_t g, gdr_mh_t mh, size_t size, int flags, int expected)
{
	void *va = (void *)(uintptr_t)SENTINEL;
	int error = gdr_map_v2(g, mh, &va, size, flags);

	if (error != expected || va)
		FAIL("map of %zu bytes with flags %d: returned %d and pointer %p, expected %d and "
		     "NULL", size, flags, error, va, expected);
}

/* A pin that starts inside a GPU page: good for everything but a mapping. */
static void map_inside_page(gdr_t g, const struct buffer *buffer)
{
	gdr_info_t info;
	gdr_mh_t mh;

	REQUIRE_OK(gdr_pin_buffer(g, buffer->addr + 512, GPU_PAGE_SIZE, 0, 0, &mh));
	REQUIRE_OK(gdr_get_info(g, mh, &info));
	REQUIRE_EQ(info.va, buffer->addr);
	REQUIRE_EQ(info.mapped_size, 2 * GPU_PAGE_SIZE);
	refuse_map(g, mh, GPU_PAGE_SIZE, 0, EINVAL);
	refuse_map(g, mh, 8, 0, EINVAL);
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
}

void test_plus_bad_maps(enum memory memory)
{
	struct buffer buffer;
	void *va = NULL;
	gdr_mh_t mh;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, 2 * GPU_PAGE_SIZE, &buffer);
	g = open_session();
	mh = buffer_pin(g, &buffer);
	refuse_map(g, mh, 0, 0, EINVAL);
	refuse_map(g, mh, buffer.size + 1, 0, EINVAL);
	refuse_map(g, mh, SIZE_MAX, 0, EINVAL);
	refuse_map(g, mh, SIZE_MAX - 4096, 0, EINVAL);
	refuse_map(g, mh, buffer.size, -1, EINVAL);
	refuse_map(g, mh, buffer.size, GDR_MAP_FLAG_REQ_DEVICE_MAPPING + 1, EINVAL);
	refuse_map(NULL, mh, buffer.size, 0, EINVAL);
	REQUIRE_ERROR(gdr_map(g, mh, NULL, buffer.size), EINVAL);
	REQUIRE_ERROR(gdr_unmap(g, mh, &buffer, buffer.size), EINVAL);
	map_inside_page(g, &buffer);

	REQUIRE_OK(gdr_map(g, mh, &va, buffer.size));
	refuse_map(g, mh, buffer.size, 0, EAGAIN);
	REQUIRE_ERROR(gdr_unmap(g, mh, NULL, buffer.size), EINVAL);
	REQUIRE_ERROR(gdr_unmap(g, mh, (char *)va + 4096, buffer.size - 4096), EINVAL);
	REQUIRE_ERROR(gdr_unmap(NULL, mh, va, buffer.size), EINVAL);

	/* None of the refusals touched the mapping. */
	*(volatile uint32_t *)va = SENTINEL;
	REQUIRE_EQ(gpu_word(buffer.addr), SENTINEL);
	REQUIRE_OK(gdr_unmap(g, mh, va, buffer.size));
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

static void refuse_attribute(gdr_t g, int attribute)
{
	int value = SENTINEL;

	REQUIRE_ERROR(gdr_get_attribute(g, (gdr_attr_t)attribute, &value), EINVAL);
	REQUIRE_EQ(value, SENTINEL);
}

static void check_type_strings(void)
{
	static const char *const names[] = { "None", "Write Combining", "Caching", "Device" };
	const char *text;

	for (int type = 0; type < GDR_MAPPING_TYPE_MAX; type++) {
		text = NULL;
		REQUIRE_OK(gdr_get_mapping_type_string((gdr_mapping_type_t)type, &text));
		REQUIRE(text && strcmp(text, names[type]) == 0);
	}
	text = names[0];
	REQUIRE_ERROR(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_MAX, &text), EINVAL);
	REQUIRE_ERROR(gdr_get_mapping_type_string((gdr_mapping_type_t)-1, &text), EINVAL);
	REQUIRE(text == names[0]);
	REQUIRE_ERROR(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_WC, NULL), EINVAL);
}

void test_plus_bad_queries(enum memory memory)
{
	int major = SENTINEL, minor = SENTINEL, flag = SENTINEL;
	gdr_mh_t none = { .h = 0 };
	struct mapped m;
	gdr_info_t info;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	refuse_attribute(m.g, 0);
	refuse_attribute(m.g, GDR_ATTR_MAX);
	refuse_attribute(m.g, -1);
	refuse_attribute(NULL, GDR_ATTR_USE_PERSISTENT_MAPPING);
	REQUIRE_ERROR(gdr_get_attribute(m.g, GDR_ATTR_USE_PERSISTENT_MAPPING, NULL), EINVAL);
	check_type_strings();

	info.page_size = SENTINEL;
	REQUIRE_ERROR(gdr_get_info(m.g, none, &info), EINVAL);
	REQUIRE_ERROR(gdr_get_info(NULL, m.mh, &info), EINVAL);
	REQUIRE_EQ(info.page_size, SENTINEL);
	REQUIRE_ERROR(gdr_get_info(m.g, m.mh, NULL), EINVAL);
	REQUIRE_ERROR(gdr_get_callback_flag(m.g, none, &flag), EINVAL);
	REQUIRE_ERROR(gdr_get_callback_flag(NULL, m.mh, &flag), EINVAL);
	REQUIRE_EQ(flag, SENTINEL);
	REQUIRE_ERROR(gdr_get_callback_flag(m.g, m.mh, NULL), EINVAL);
	REQUIRE_OK(gdr_get_callback_flag(m.g, m.mh, &flag));
	REQUIRE_EQ(flag, 0);

	REQUIRE_ERROR(gdr_driver_get_version(NULL, &major, &minor), EINVAL);
	REQUIRE(major == SENTINEL && minor == SENTINEL);
	/* Answers that nobody wants may be left out. */
	REQUIRE_OK(gdr_driver_get_version(m.g, NULL, NULL));
	REQUIRE_ERROR(gdr_close(NULL), EINVAL);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}

/*
 * Large enough to be a memory object of its own: CUDA keeps the object behind
 * small allocations when it frees them, and that could still be pinned.
 */
#define OWN_OBJECT_SIZE ((size_t)4 << 20)

void test_plus_freed_buffer(enum memory memory)
{
	struct buffer buffer;
	gdr_t g;

	gpu_start();
	g = open_session();
	buffer_alloc(memory, OWN_OBJECT_SIZE, &buffer);
	REQUIRE_OK(gdr_unpin_buffer(g, buffer_pin(g, &buffer)));
	buffer_free(&buffer);
	refuse_pin(g, buffer.addr, buffer.size, "freed memory");
	REQUIRE_OK(gdr_close(g));
}
