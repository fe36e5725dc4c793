/* SPDX-License-Identifier: MIT */
/* Handles and sessions that are stale, invented or of another session get EINVAL. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "gpu.h"
#include "layout.h"
#include "machine.h"
#include "tests.h"

/* The source name means the 48-byte form; the exported one fills 40 bytes. */
#undef gdr_get_info

/* Every call that takes a session and a handle refuses this pair. */
static void refuse_pair(gdr_t g, gdr_mh_t mh, void *va)
{
	void *mapped = NULL;
	gdr_info_v1_t info_v1;
	gdr_info_v2_t info;
	int flag;

	REQUIRE_ERROR(gdr_map(g, mh, &mapped, GPU_PAGE_SIZE), EINVAL);
	REQUIRE_ERROR(gdr_map_v2(g, mh, &mapped, GPU_PAGE_SIZE, 0), EINVAL);
	REQUIRE_ERROR(gdr_unmap(g, mh, va, GPU_PAGE_SIZE), EINVAL);
	REQUIRE_ERROR(gdr_get_info(g, mh, &info_v1), EINVAL);
	REQUIRE_ERROR(gdr_get_info_v2(g, mh, &info), EINVAL);
	REQUIRE_ERROR(gdr_get_callback_flag(g, mh, &flag), EINVAL);
	REQUIRE_ERROR(gdr_unpin_buffer(g, mh), EINVAL);
}

/* So do the calls that take only a handle. */
static void refuse_handle(gdr_t g, gdr_mh_t mh, void *va)
{
	uint64_t host = 0;

	refuse_pair(g, mh, va);
	REQUIRE_ERROR(gdr_copy_to_mapping(mh, va, &host, sizeof(host)), EINVAL);
	REQUIRE_ERROR(gdr_copy_from_mapping(mh, &host, va, sizeof(host)), EINVAL);
}

static void refuse_session(gdr_t g, const struct mapped *m)
{
	int major, minor, value;
	gdr_mh_t mh;

	refuse_pair(g, m->mh, m->va);
	REQUIRE_ERROR(gdr_pin_buffer(g, m->buffer.addr, m->buffer.size, 0, 0, &mh), EINVAL);
	REQUIRE_ERROR(gdr_pin_buffer_v2(g, m->buffer.addr, m->buffer.size, 0, &mh), EINVAL);
	REQUIRE_ERROR(gdr_get_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, &value), EINVAL);
	REQUIRE_ERROR(gdr_driver_get_version(g, &major, &minor), EINVAL);
	REQUIRE_ERROR(gdr_close(g), EINVAL);
}

static void require_alive(const struct mapped *m)
{
	uint32_t sent = 0x1234abcd, seen = 0;

	REQUIRE_OK(gdr_copy_to_mapping(m->mh, m->va, &sent, sizeof(sent)));
	REQUIRE_OK(gdr_copy_from_mapping(m->mh, &seen, m->va, sizeof(seen)));
	REQUIRE_EQ(seen, sent);
	REQUIRE_EQ(gpu_word(m->buffer.addr), sent);
}

void test_plus_stale_handles(enum memory memory)
{
	struct mapped m, other;
	uint64_t host = 0;
	gdr_mh_t again;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	mapped_open(m.g, memory, GPU_PAGE_SIZE, &other);
	mapped_unmap(&m);
	REQUIRE_ERROR(gdr_unmap(m.g, m.mh, m.va, GPU_PAGE_SIZE), EINVAL);
	REQUIRE_ERROR(gdr_copy_to_mapping(m.mh, m.va, &host, sizeof(host)), EINVAL);
	REQUIRE_ERROR(gdr_copy_from_mapping(m.mh, &host, m.va, sizeof(host)), EINVAL);
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	refuse_handle(m.g, m.mh, m.va);

	/* Not even when later pins take the place of the old one. */
	for (int i = 0; i < 100; i++) {
		again = buffer_pin(m.g, &m.buffer);
		REQUIRE(again.h != m.mh.h);
		refuse_handle(m.g, m.mh, m.va);
		REQUIRE_OK(gdr_unpin_buffer(m.g, again));
	}
	require_alive(&other);
	REQUIRE_OK(gdr_close(m.g));
	refuse_session(m.g, &other);
	refuse_handle(m.g, other.mh, other.va);
	buffer_free(&m.buffer);
	buffer_free(&other.buffer);
}

/* Values near a live handle, and values of other kinds. */
static void refuse_invented_handles(const struct mapped *m)
{
	static const long near[] = { 1, 2, 4, 8, 16, 24, 48, 64, 104, 112, 120, 128, 256, 4096 };
	unsigned long number = 88172645463325252ul;
	struct layout_region copy;
	gdr_mh_t mh;

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		mh.h = m->mh.h + (unsigned long)near[i];
		refuse_handle(m->g, mh, m->va);
		mh.h = m->mh.h - (unsigned long)near[i];
		refuse_handle(m->g, mh, m->va);
	}
	for (int bit = 0; bit < 64; bit++) {
		mh.h = m->mh.h ^ (1ul << bit);
		refuse_handle(m->g, mh, m->va);
		mh.h = 1ul << bit;
		refuse_handle(m->g, mh, m->va);
	}
	for (int i = 0; i < 1000; i++) {
		number ^= number << 13;
		number ^= number >> 7;
		number ^= number << 17;
		mh.h = number;
		refuse_handle(m->g, mh, m->va);
	}
	layout_copy_region(m->mh, &copy);
	refuse_handle(m->g, layout_as_region(&copy), m->va);
	mh.h = 0;
	refuse_handle(m->g, mh, m->va);
	mh.h = (unsigned long)(uintptr_t)m->g;
	refuse_handle(m->g, mh, m->va);
	mh.h = (unsigned long)(uintptr_t)m->va;
	refuse_handle(m->g, mh, m->va);
}

void test_plus_invented_handles(enum memory memory)
{
	static const uintptr_t odd[] = { 1, 8, 4096, UINTPTR_MAX, UINTPTR_MAX - 47,
					 (uintptr_t)1 << 63 };
	static struct layout_session zeros;
	struct layout_session copy;
	struct mapped m;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	refuse_invented_handles(&m);

	layout_copy_session(m.g, &copy);
	refuse_session(NULL, &m);
	refuse_session(layout_as_session(&copy), &m);
	refuse_session(layout_as_session(&zeros), &m);
	refuse_session((gdr_t)m.mh.h, &m);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		refuse_session((gdr_t)odd[i], &m);
	for (uintptr_t near = 1; near <= 4096; near *= 2) {
		refuse_session((gdr_t)((uintptr_t)m.g + near), &m);
		refuse_session((gdr_t)((uintptr_t)m.g - near), &m);
	}
	require_alive(&m);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}

void test_plus_foreign_handles(enum memory memory)
{
	struct mapped mine, theirs;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &mine);
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &theirs);
	refuse_pair(mine.g, theirs.mh, theirs.va);
	refuse_pair(theirs.g, mine.mh, mine.va);
	require_alive(&mine);
	require_alive(&theirs);
	mapped_close(&mine);
	mapped_close(&theirs);
	REQUIRE_OK(gdr_close(mine.g));
	REQUIRE_OK(gdr_close(theirs.g));
}

void test_plus_two_sessions(enum memory memory)
{
	struct mapped first, second;
	void *va = NULL;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &first);
	second = first;
	second.g = open_session();
	REQUIRE(second.g != first.g);
	second.mh = buffer_pin(second.g, &second.buffer);
	REQUIRE(second.mh.h != first.mh.h);
	REQUIRE_OK(gdr_map(second.g, second.mh, &va, GPU_PAGE_SIZE));
	REQUIRE(va != first.va);
	second.va = va;
	second.va[0] = 0x77777777;
	REQUIRE_EQ(*(volatile uint32_t *)first.va, 0x77777777);

	/* The end of one session leaves the other as it is. */
	REQUIRE_OK(gdr_close(first.g));
	require_alive(&second);
	mapped_close(&second);
	REQUIRE_OK(gdr_close(second.g));
}
