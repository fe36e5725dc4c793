/* SPDX-License-Identifier: MIT */
/* The mmap convention of gdrdrv, the bytes behind it, and the memory type in the page table. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (2ull << 20)

static int fd;
static struct buffer buffer;
static uint64_t handle;

static void begin_with(const struct nvidia_emu_settings *settings)
{
	bench_start();
	bench_set(settings);
	fd = drv_open();
	buffer = bench_alloc(SIZE);
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
}

static void begin(void)
{
	struct nvidia_emu_settings settings = bench_defaults();

	begin_with(&settings);
}

static void end(void)
{
	close(fd);
	bench_free(&buffer);
	bench_end();
}

/* Both ways, in every GPU page, against the GPU's own view. */
static void compare_bytes(volatile uint32_t *map)
{
	volatile uint32_t *view = bench_view(&buffer);
	unsigned wrong = 0;

	for (uint64_t i = 0; i < SIZE / 4; i += 509)
		map[i] = (uint32_t)i ^ 0x5a000000u;
	__sync_synchronize();
	for (uint64_t i = 0; i < SIZE / 4; i += 509)
		wrong += view[i] != ((uint32_t)i ^ 0x5a000000u);
	for (uint64_t i = 0; i < SIZE / 4; i += 509)
		view[i] = ~(uint32_t)i;
	__sync_synchronize();
	for (uint64_t i = 0; i < SIZE / 4; i += 509)
		wrong += map[i] != ~(uint32_t)i;
	CHECK_EQ(wrong, 0);
	bench_close_view(view, &buffer);
}

/* Every entry: the right page, write-combined. */
static void check_entries(volatile uint32_t *map, uint64_t size)
{
	unsigned wrong_type = 0, wrong_page = 0;

	for (uint64_t at = 0; at < size; at += 4096) {
		struct pte_probe entry;

		(void)map[at / 4];
		entry = bench_probe((const volatile char *)map + at);
		wrong_type += entry.type != PTE_PROBE_WC;
		wrong_page += entry.physical != bench_physical(&buffer, at);
	}
	CHECK_EQ(wrong_type, 0);
	CHECK_EQ(wrong_page, 0);
}

static void map_and_compare(uint32_t scattered, uint32_t reserve_wc)
{
	struct nvidia_emu_settings settings = bench_defaults();
	struct gdrdrv_get_info_v2 info;
	void *map;

	settings.scattered = scattered;
	settings.reserve_wc = reserve_wc;
	begin_with(&settings);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	CHECK_EQ(drv_info(fd, handle, &info), 0);
	CHECK_EQ(info.mapping_type, GDRDRV_MAPPING_TYPE_WC);
	check_entries(map, SIZE);
	compare_bytes(map);
	munmap(map, SIZE);
	CHECK_EQ(drv_info(fd, handle, &info), 0);
	CHECK_EQ(info.mapping_type, GDRDRV_MAPPING_TYPE_NONE);
	end();
}

static void contiguous_without_reservation(void)
{
	map_and_compare(0, 0);
}

static void contiguous_with_reservation(void)
{
	map_and_compare(0, 1);
}

static void scattered_without_reservation(void)
{
	map_and_compare(1, 0);
}

static void scattered_with_reservation(void)
{
	map_and_compare(1, 1);
}

/* Two pins of one page, both mapped, from two files: each is write-combined. */
static void same_pages_twice(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	uint64_t second;
	void *a, *b;
	int other;

	settings.scattered = 1;
	begin_with(&settings);
	other = drv_open();
	REQUIRE_EQ(drv_pin(other, buffer.va, SIZE, &second), 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &a), 0);
	REQUIRE_EQ(drv_map(other, second, SIZE / 2, &b), 0);
	check_entries(a, SIZE);
	check_entries(b, SIZE / 2);
	munmap(a, SIZE);
	check_entries(b, SIZE / 2);
	*(volatile uint32_t *)b = 17;
	close(other);
	munmap(b, SIZE / 2);
	end();
}

static void part_of_a_pin(void)
{
	static const uint64_t sizes[] = { 4096, 8192, GPU_PAGE, GPU_PAGE + 4096, SIZE - 4096 };
	struct nvidia_emu_settings settings = bench_defaults();
	void *map;

	settings.scattered = 1;
	begin_with(&settings);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		REQUIRE_EQ(drv_map(fd, handle, sizes[i], &map), 0);
		check_entries(map, sizes[i]);
		munmap(map, sizes[i]);
	}
	end();
}

static void refusals(void)
{
	uint64_t second, unaligned;
	void *map, *again;

	begin();
	CHECK_EQ(drv_map(fd, handle, SIZE + 4096, &map), -EINVAL);
	CHECK_EQ(drv_map(fd, handle + 1, 4096, &map), -EINVAL);
	CHECK_EQ(drv_map(fd, handle + SIZE / 4096, 4096, &map), -EINVAL);
	CHECK_EQ(drv_map(fd, 0x7ffffffff, 4096, &map), -EINVAL);
	REQUIRE_EQ(drv_pin(fd, buffer.va + 8, 8, &unaligned), 0);
	CHECK_EQ(drv_map(fd, unaligned, 4096, &map), -EINVAL);
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &second), 0);
	REQUIRE_EQ(drv_map(fd, second, GPU_PAGE, &map), 0);
	CHECK_EQ(drv_map(fd, second, GPU_PAGE, &again), -EINVAL);
	CHECK_EQ(drv_map(fd, second, 4096, &again), -EINVAL);
	munmap(map, GPU_PAGE);
	REQUIRE_EQ(drv_map(fd, second, GPU_PAGE, &map), 0);
	munmap(map, GPU_PAGE);
	end();
}

/* A private map would copy what must be the GPU's memory. */
static void private_map_refused(void)
{
	void *map;

	begin();
	map = mmap(NULL, GPU_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)(handle * 4096));
	CHECK(map == MAP_FAILED);
	CHECK_EQ(drv_map(fd, handle, GPU_PAGE, &map), 0);
	munmap(map, GPU_PAGE);
	end();
}

/* Unmapping the end leaves the rest mapped; only the last part frees the handle. */
static void unmapped_in_parts(void)
{
	struct gdrdrv_get_info_v2 info;
	uint32_t value;
	char *map;

	begin();
	REQUIRE_EQ(drv_map(fd, handle, SIZE, (void **)&map), 0);
	munmap(map + SIZE / 2, SIZE / 2);
	CHECK_EQ(bench_touch((uint32_t *)map, &value), 0);
	CHECK_EQ(bench_touch((uint32_t *)(map + SIZE / 2), NULL), SIGSEGV);
	munmap(map + GPU_PAGE, GPU_PAGE);
	CHECK_EQ(bench_touch((uint32_t *)(map + 2 * GPU_PAGE), &value), 0);
	CHECK_EQ(drv_info(fd, handle, &info), 0);
	CHECK_EQ(info.mapping_type, GDRDRV_MAPPING_TYPE_WC);
	munmap(map, SIZE / 2);
	CHECK_EQ(drv_info(fd, handle, &info), 0);
	CHECK_EQ(info.mapping_type, GDRDRV_MAPPING_TYPE_NONE);
	end();
}

static void cannot_grow(void)
{
	void *map, *moved;

	begin();
	REQUIRE_EQ(drv_map(fd, handle, GPU_PAGE, &map), 0);
	moved = mremap(map, GPU_PAGE, SIZE, MREMAP_MAYMOVE);
	CHECK(moved == MAP_FAILED);
	munmap(map, GPU_PAGE);
	end();
}

/* A moved mapping still belongs to its pin, which takes it away at unpin. */
static void moved_mapping(void)
{
	void *map, *place, *moved;
	uint32_t value;

	begin();
	REQUIRE_EQ(drv_map(fd, handle, GPU_PAGE, &map), 0);
	*(volatile uint32_t *)map = 99;
	place = mmap(NULL, GPU_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	moved = mremap(map, GPU_PAGE, GPU_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	if (moved != MAP_FAILED) {
		if (bench_touch(moved, &value) == 0)
			CHECK_EQ(value, 99);
		CHECK_EQ(drv_unpin(fd, handle), 0);
		CHECK(bench_touch(moved, NULL) != 0);
		munmap(moved, GPU_PAGE);
	} else {
		munmap(map, GPU_PAGE);
	}
	end();
}

static void touch_parents_map(void *arg)
{
	_exit(bench_touch(arg, NULL) == SIGSEGV ? 0 : 1);
}

static void not_inherited(void)
{
	uint32_t value;
	void *map;

	begin();
	REQUIRE_EQ(drv_map(fd, handle, GPU_PAGE, &map), 0);
	*(volatile uint32_t *)map = 4711;
	CHECK_EQ(harness_fork(touch_parents_map, map), 0);
	CHECK_EQ(bench_touch(map, &value), 0);
	CHECK_EQ(value, 4711);
	munmap(map, GPU_PAGE);
	end();
}

static void unpin_revokes(void)
{
	uint32_t *map;

	begin();
	REQUIRE_EQ(drv_map(fd, handle, SIZE, (void **)&map), 0);
	*(volatile uint32_t *)map = 1;
	CHECK_EQ(drv_unpin(fd, handle), 0);
	CHECK_NO_PINS();
	CHECK(bench_touch(map, NULL) == SIGBUS);
	CHECK(bench_touch(map + SIZE / 4 - 1, NULL) == SIGBUS);
	munmap(map, SIZE);
	end();
}

/* 2.6's library closes the descriptor with the map still there. */
static void close_under_a_map(void)
{
	uint32_t *map;

	begin();
	REQUIRE_EQ(drv_map(fd, handle, SIZE, (void **)&map), 0);
	*(volatile uint32_t *)map = 1;
	close(fd);
	munmap(map, SIZE);
	CHECK_NO_PINS();
	bench_free(&buffer);
	bench_end();
}

static void many_maps(void)
{
	enum { COUNT = 200 };
	uint64_t handles[COUNT];
	void *maps[COUNT];

	begin();
	for (int i = 0; i < COUNT; i++) {
		REQUIRE_EQ(drv_pin(fd, buffer.va + GPU_PAGE * (uint64_t)(i % 32), GPU_PAGE,
				   &handles[i]), 0);
		REQUIRE_EQ(drv_map(fd, handles[i], GPU_PAGE, &maps[i]), 0);
		*(volatile uint32_t *)((char *)maps[i] + 4 * i) = (uint32_t)i;
	}
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(*(volatile uint32_t *)((char *)maps[i] + 4 * i), i);
	for (int i = 0; i < COUNT; i += 2)
		CHECK_EQ(drv_unpin(fd, handles[i]), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(bench_touch(maps[i], NULL), i % 2 == 0 ? SIGBUS : 0);
	for (int i = 0; i < COUNT; i++)
		munmap(maps[i], GPU_PAGE);
	end();
}

/* Coherent memory: the page table of layout 2.0 says that the CPU may cache it. */
static void cacheable_pages(void)
{
	struct gdrdrv_get_attr attr = { .attr = GDRDRV_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE };
	struct nvidia_emu_settings settings = bench_defaults();
	struct gdrdrv_get_info_v2 info;
	void *map;

	settings.table_flags = 1;
	begin_with(&settings);
	REQUIRE_EQ(drv_call(fd, GDRDRV_IOC_GET_ATTR, &attr), 0);
	if (attr.val == 0) {
		end();
		SKIP("an older driver or callback pins");
	}
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_CACHING), 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	CHECK_EQ(drv_info(fd, handle, &info), 0);
	CHECK_EQ(info.mapping_type, GDRDRV_MAPPING_TYPE_CACHING);
	compare_bytes(map);
	munmap(map, SIZE);
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_WC), 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	check_entries(map, SIZE);
	munmap(map, SIZE);
	end();
}

static const struct harness_case cases[] = {
	{ "contiguous_without_reservation", contiguous_without_reservation },
	{ "contiguous_with_reservation", contiguous_with_reservation },
	{ "scattered_without_reservation", scattered_without_reservation },
	{ "scattered_with_reservation", scattered_with_reservation },
	{ "same_pages_twice", same_pages_twice },
	{ "part_of_a_pin", part_of_a_pin },
	{ "refusals", refusals },
	{ "private_map_refused", private_map_refused },
	{ "unmapped_in_parts", unmapped_in_parts },
	{ "cannot_grow", cannot_grow },
	{ "moved_mapping", moved_mapping },
	{ "not_inherited", not_inherited },
	{ "unpin_revokes", unpin_revokes },
	{ "close_under_a_map", close_under_a_map },
	{ "many_maps", many_maps },
	{ "cacheable_pages", cacheable_pages },
};
HARNESS_MAIN(cases)
