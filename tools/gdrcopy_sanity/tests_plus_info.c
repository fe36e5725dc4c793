/* SPDX-License-Identifier: MIT */
/* What queries answer: layouts of the info struct, versions, and what pins and maps look like. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "layout.h"
#include "machine.h"
#include "tests.h"

/* The source name means the 48-byte form; the exported one fills 40 bytes. */
#undef gdr_get_info

#define GUARD 0xa5

union guarded_info {
	gdr_info_v1_t v1;
	gdr_info_v2_t v2;
	unsigned char bytes[128];
};

static void require_guard(const union guarded_info *info, size_t from)
{
	for (size_t i = from; i < sizeof(info->bytes); i++)
		if (info->bytes[i] != GUARD)
			FAIL("byte %zu after an info struct of %zu bytes was written", i, from);
}

static void check_info(const struct mapped *m, bool is_mapped)
{
	union guarded_info old, new;
	uint64_t rounded = (m->buffer.size + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;

	memset(&old, GUARD, sizeof(old));
	memset(&new, GUARD, sizeof(new));
	REQUIRE_OK(gdr_get_info(m->g, m->mh, &old.v1));
	REQUIRE_OK(gdr_get_info_v2(m->g, m->mh, &new.v2));
	require_guard(&old, 40);
	require_guard(&new, 48);
	REQUIRE_EQ(new.v2.va, m->buffer.addr);
	REQUIRE_EQ(new.v2.mapped_size, rounded);
	REQUIRE_EQ(new.v2.page_size, GPU_PAGE_SIZE);
	REQUIRE_EQ(new.v2.mapped, is_mapped);
	REQUIRE_EQ(new.v2.mapping_type != GDR_MAPPING_TYPE_NONE, is_mapped);
	REQUIRE_EQ(new.v2.wc_mapping, new.v2.mapping_type == GDR_MAPPING_TYPE_WC);
	REQUIRE_EQ(old.v1.va, new.v2.va);
	REQUIRE_EQ(old.v1.mapped_size, new.v2.mapped_size);
	REQUIRE_EQ(old.v1.page_size, new.v2.page_size);
	REQUIRE_EQ(old.v1.tm_cycles, new.v2.tm_cycles);
	REQUIRE_EQ(old.v1.cycles_per_ms, new.v2.cycles_per_ms);
	REQUIRE_EQ(old.v1.mapped, new.v2.mapped);
	REQUIRE_EQ(old.v1.wc_mapping, new.v2.wc_mapping);
}

void test_plus_info_layouts(enum memory memory)
{
	struct mapped m;
	void *va = NULL;

	gpu_start();
	buffer_alloc(memory, 100000, &m.buffer);
	m.g = open_session();
	m.mh = buffer_pin(m.g, &m.buffer);
	check_info(&m, false);
	REQUIRE_OK(gdr_map(m.g, m.mh, &va, m.buffer.size));
	m.va = va;
	check_info(&m, true);
	mapped_unmap(&m);
	check_info(&m, false);
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	REQUIRE_OK(gdr_close(m.g));
	buffer_free(&m.buffer);
}

void test_plus_versions(enum memory memory)
{
	int major = -1, minor = -1;
	gdr_t g = open_session();

	(void)memory;
	gdr_runtime_get_version(&major, &minor);
	REQUIRE_EQ(major, 2);
	REQUIRE_EQ(minor, 6);

	/* Consumers call this right after open and read the numbers whatever it returns. */
	major = minor = -1;
	REQUIRE_OK(gdr_driver_get_version(g, &major, &minor));
	REQUIRE_EQ(major, 2);
	if (machine.gdrdrv)
		REQUIRE(minor >= 0);
	else
		REQUIRE_EQ(minor, 6);
	REQUIRE_OK(gdr_close(g));
}

/* A pin through PCIe, on a GPU that has the choice. */
static void map_through_pcie(gdr_t g, const struct buffer *buffer, gdr_mh_t mh)
{
	gdr_info_v2_t info;
	void *va = NULL;

	REQUIRE(mh.h != 0);
	REQUIRE_OK(gdr_map(g, mh, &va, buffer->size));
	REQUIRE_OK(gdr_get_info_v2(g, mh, &info));
	REQUIRE(info.mapping_type != GDR_MAPPING_TYPE_CACHING);
	*(volatile uint32_t *)va = 0x70c1e;
	REQUIRE_EQ(*(volatile uint32_t *)va, 0x70c1e);
	REQUIRE_EQ(gpu_word(buffer->addr), 0x70c1e);
	REQUIRE_OK(gdr_unmap(g, mh, va, buffer->size));
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
}

/*
 * The attribute says whether the flag is understood, the GPU whether it has a
 * use: without a coherent link a pin with the flag must fail, for callers take
 * success as "there is a choice".
 */
void test_plus_force_pcie(enum memory memory)
{
	gdr_mh_t mh = { .h = 1 };
	struct buffer buffer;
	int error;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	error = gdr_pin_buffer_v2(g, buffer.addr, buffer.size, GDR_PIN_FLAG_FORCE_PCIE, &mh);
	DEBUG("pin with GDR_PIN_FLAG_FORCE_PCIE: %d", error);
	if (error) {
		REQUIRE(error == EOPNOTSUPP || error == EINVAL);
		REQUIRE_EQ(mh.h, 0);
		/* Newer coherent GPUs must have the choice when the attribute says so. */
		REQUIRE(!machine.coherent || !machine.force_pcie || machine.compute_major < 10);
	} else {
		REQUIRE(machine.coherent && machine.force_pcie);
		map_through_pcie(g, &buffer, mh);
	}
	REQUIRE_OK(gdr_unpin_buffer(g, buffer_pin(g, &buffer)));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

/* A mapping of this size is there up to its last host page, and no more. */
static void check_map_size(gdr_t g, gdr_mh_t mh, uint64_t addr, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t rounded = (size + page - 1) / page * page;
	unsigned char byte = (unsigned char)(size * 31 + 7);
	uint32_t word;
	void *va = NULL;

	REQUIRE_OK(gdr_map(g, mh, &va, size));
	REQUIRE_OK(gdr_copy_to_mapping(mh, va, &byte, 1));
	REQUIRE_OK(gdr_copy_to_mapping(mh, (char *)va + rounded - 1, &byte, 1));
	REQUIRE_ERROR(gdr_copy_to_mapping(mh, (char *)va + rounded, &byte, 1), EINVAL);
	REQUIRE_OK(gdr_unmap(g, mh, va, size));
	word = gpu_word(addr);
	REQUIRE_EQ((unsigned char)word, byte);
	word = gpu_word(addr + rounded - sizeof(word));
	REQUIRE_EQ(word >> 24, byte);
}

void test_plus_map_sizes(enum memory memory)
{
	static const size_t sizes[] = { 1, 4, 4095, 4096, 4097, 65535, 65536, 65537, 100000,
					131072, 196607, 196608 };
	struct buffer buffer;
	gdr_mh_t mh;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, 3 * GPU_PAGE_SIZE, &buffer);
	g = open_session();
	mh = buffer_pin(g, &buffer);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_map_size(g, mh, buffer.addr, sizes[i]);
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

#define LIVE_PINS 100
#define PIN_STEPS 4000

struct offset_range {
	gdr_mh_t mh;		/* 0: a free place */
	uint64_t first, end;	/* host pages */
};

static void pin_disjoint(gdr_t g, const struct buffer *buffer, struct offset_range *ranges,
			 unsigned place, size_t size)
{
	struct offset_range *mine = &ranges[place];
	gdr_info_v2_t info;

	REQUIRE_OK(gdr_pin_buffer(g, buffer->addr, size, 0, 0, &mine->mh));
	REQUIRE_OK(gdr_get_info_v2(g, mine->mh, &info));
	mine->first = layout_driver_handle(mine->mh);
	mine->end = mine->first + info.mapped_size / (uint64_t)sysconf(_SC_PAGESIZE);
	for (unsigned i = 0; i < LIVE_PINS; i++)
		if (i != place && ranges[i].mh.h)
			REQUIRE(mine->end <= ranges[i].first || ranges[i].end <= mine->first);
}

/* The module's handles are offsets of one file, so live ones must not overlap. */
void test_plus_offsets_disjoint(enum memory memory)
{
	static struct offset_range ranges[LIVE_PINS];
	struct buffer buffer;
	uint32_t number = 12345;
	gdr_t g;

	if (!machine.gdrdrv)
		WAIVE("only the gdrdrv back end has handles that are file offsets");
	gpu_start();
	buffer_alloc(memory, 8 * GPU_PAGE_SIZE, &buffer);
	g = open_session();
	for (int step = 0; step < PIN_STEPS; step++) {
		unsigned place = (number >> 8) % LIVE_PINS;

		number = number * 1664525 + 1013904223;
		if (ranges[place].mh.h) {
			REQUIRE_OK(gdr_unpin_buffer(g, ranges[place].mh));
			ranges[place].mh.h = 0;
		} else {
			pin_disjoint(g, &buffer, ranges, place,
				     (1 + (number >> 20) % 8) * GPU_PAGE_SIZE);
		}
	}
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}
