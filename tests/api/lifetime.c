/* SPDX-License-Identifier: MIT */
/*
 * Everything goes back: pins and mappings that are left at close, unpins
 * without unmap, memory that was freed first, failures on the way, calls from
 * destructors after main, many sessions and very many buffers.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_mapped(void *va)
{
	unsigned char present;

	return mincore(va, 4096, &present) == 0;
}

static void close_with_live_pins_and_mappings(void)
{
	struct gpu_buffer buffer = gpu_alloc(4 * MIB);
	size_t maps = 0;
	int fds = 0;

	/* The first rounds make what the library and the allocator keep. */
	for (int round = 0; round < 5; round++) {
		gdr_t g = gpu_open();
		void *va[40];

		for (int i = 0; i < 60; i++) {
			gdr_mh_t handle = gpu_pin(g, buffer.ptr, GPU_PAGE_SIZE);

			if (i < 40)
				va[i] = gpu_map(g, handle, GPU_PAGE_SIZE);
		}
		CHECK_EQ(gdr_close(g), 0);
		for (int i = 0; i < 40; i++)
			CHECK(!is_mapped(va[i]));
		if (round > 1) {
			CHECK_EQ(api_count_maps(), maps);
			CHECK_EQ(harness_count_fds(), fds);
		}
		maps = api_count_maps();
		fds = harness_count_fds();
	}
	gpu_free(buffer);
}

static void unpin_without_unmap(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();

	for (int i = 0; i < 10; i++) {
		gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);
		void *va = gpu_map(g, handle, MIB);

		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
		CHECK(!is_mapped(va));
		CHECK_EQ(gdr_unmap(g, handle, va, MIB), EINVAL);
	}
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* R16: persistent pins outlive the memory, and keep its bytes. */
static void free_before_unmap(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), 4 * MIB);
	uint64_t value = 0xfeedfacecafebeef, seen = 0;

	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va + MIB, &value, 8), 0);
	gpu_free(mapping.buffer);
	CHECK_EQ(gdr_copy_from_mapping(mapping.handle, &seen, mapping.va + MIB, 8), 0);
	CHECK_EQ(seen, value);
	CHECK_EQ(*(volatile uint64_t *)(mapping.va + MIB), value);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, 4 * MIB), 0);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* Two pins of one buffer are two buffers to the library and one to the GPU. */
static void pins_of_one_buffer(void)
{
	struct gpu_mapping first = gpu_map_new(gpu_open(), MIB);
	gdr_mh_t second = gpu_pin(first.g, first.buffer.ptr, MIB);
	unsigned char *va = gpu_map(first.g, second, MIB);
	uint32_t value = 0x13579bdf, seen = 0;

	CHECK(va != first.va);
	CHECK_EQ(gdr_copy_to_mapping(first.handle, first.va + 4, &value, 4), 0);
	CHECK_EQ(gdr_copy_from_mapping(second, &seen, va + 4, 4), 0);
	CHECK_EQ(seen, value);
	/* Each handle speaks of its own mapping only. */
	CHECK_EQ(gdr_copy_to_mapping(first.handle, va, &value, 4), EINVAL);
	CHECK_EQ(gdr_unmap(first.g, second, first.va, MIB), EINVAL);
	CHECK_EQ(gdr_unpin_buffer(first.g, second), 0);
	CHECK_EQ(gdr_copy_to_mapping(first.handle, first.va, &value, 4), 0);
	gpu_unmap(first);
	CHECK_EQ(gdr_close(first.g), 0);
}

static void memory_stays_flat(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	size_t early = 0, maps = 0;
	int fds = 0;

	for (int i = 0; i < api_rounds(100000); i++) {
		gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);

		if (i % 8 == 0)
			gpu_map(g, handle, MIB);
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
		if (i == 1000) {
			early = gpu_rss();
			maps = api_count_maps();
			fds = harness_count_fds();
		}
	}
	/* 100,000 handles of 128 bytes would be 12 MiB. */
	if (!api_is_sanitized())
		CHECK(gpu_rss() < early + MIB);
	CHECK_EQ(api_count_maps(), maps);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* One handle that stays alive must not keep those of the others' memory. */
static void memory_stays_flat_beside_a_live_pin(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t old[64];
	size_t early = 0;

	for (int i = 0; i < 64; i++)
		old[i] = gpu_pin(g, buffer.ptr, MIB);
	for (int i = 0; i < api_rounds(100000); i++) {
		/* The oldest of 64 live ones goes, as in a cache. */
		CHECK_EQ(gdr_unpin_buffer(g, old[i % 64]), 0);
		old[i % 64] = gpu_pin(g, buffer.ptr, MIB);
		if (i == 1000)
			early = gpu_rss();
	}
	if (!api_is_sanitized())
		CHECK(gpu_rss() < early + MIB);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void sessions_come_and_go(void)
{
	size_t maps = 0;
	int fds = 0;

	for (int i = 0; i < api_rounds(2000); i++) {
		gdr_t g = gpu_open();

		CHECK_EQ(gdr_close(g), 0);
		if (i == 20) {
			maps = api_count_maps();
			fds = harness_count_fds();
		}
	}
	if (fds) {
		CHECK_EQ(harness_count_fds(), fds);
		CHECK_EQ(api_count_maps(), maps);
	}
}

/* Every third pin and every fifth map fails: no residue, then all succeed. */
static void failures_leave_nothing(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	int fds = harness_count_fds(), failed = 0;
	size_t maps = 0;

	for (int i = 0; i < 40; i++) {
		gdr_mh_t handle;
		void *va;

		if (i == 20)
			maps = api_count_maps();
		if (gdr_pin_buffer(g, buffer.ptr, MIB, 0, 0, &handle) != 0) {
			failed++;
			continue;
		}
		failed += gdr_map(g, handle, &va, MIB) != 0;
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	}
	CHECK_EQ(failed, 8);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_EQ(api_count_maps(), maps);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

/* Decision 9: a mapping keeps no descriptor. */
static void ten_thousand_maps(void)
{
	const int count = api_rounds(10000);
	struct rlimit limit;
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_mh_t *handle = calloc((size_t)count, sizeof(*handle));
	unsigned char **va = calloc((size_t)count, sizeof(*va));
	gdr_t g = gpu_open();
	int fds = harness_count_fds();

	REQUIRE(handle && va);
	REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 256;
	REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < count; i++) {
		handle[i] = gpu_pin(g, buffer.ptr + (size_t)(i % 16) * GPU_PAGE_SIZE,
				    GPU_PAGE_SIZE);
		va[i] = gpu_map(g, handle[i], GPU_PAGE_SIZE);
	}
	CHECK_EQ(harness_count_fds(), fds);
	for (int i = 0; i < count; i++) {
		CHECK_EQ(gdr_copy_to_mapping(handle[i], va[i] + 8, &i, sizeof(i)), 0);
		if (i > 0)
			CHECK(va[i] != va[i - 1]);
	}
	for (int i = 0; i < count; i += 2)
		CHECK_EQ(gdr_unpin_buffer(g, handle[i]), 0);
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
	free(handle);
	free(va);
}

/* With little address space the library takes less of it, or refuses cleanly. */
static void little_address_space(void)
{
	struct gpu_buffer buffer;
	int served = 0, refused = 0;

	if (api_is_sanitized())
		SKIP("the sanitizer needs the address space itself");
	buffer = gpu_alloc(MIB);
	for (size_t room = 0; room <= 64 * MIB; room += 256 * KIB) {
		struct rlimit limit;
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			gdr_t g;

			limit.rlim_cur = limit.rlim_max = harness_count_maps() + room;
			setrlimit(RLIMIT_AS, &limit);
			g = gdr_open();
			_exit(g ? (gdr_close(g) == 0 ? 0 : 2) : 1);
		}
		REQUIRE_EQ(waitpid(child, &status, 0), child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		served += status == 0;
		refused += status != 0;
	}
	CHECK(served > 200);
	CHECK(refused > 0);
	gpu_free(buffer);
}

/* A small table: its places are used again, and full means ENOMEM. */
static void small_table(void)
{
	struct rlimit limit;
	struct gpu_buffer buffer;
	gdr_mh_t first, handle;
	gdr_t g;

	if (api_is_sanitized())
		SKIP("the sanitizer needs the address space itself");
	buffer = gpu_alloc(MIB);
	limit.rlim_cur = limit.rlim_max = harness_count_maps() + 8 * MIB;
	REQUIRE_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	g = gpu_open();
	first = gpu_pin(g, buffer.ptr, MIB);
	for (int i = 0; i < 100000; i++) {
		handle = gpu_pin(g, buffer.ptr, MIB);
		CHECK(handle.h != first.h);
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	}
	CHECK_EQ(gdr_unpin_buffer(g, first), 0);
	while (gdr_pin_buffer(g, buffer.ptr, MIB, 0, 0, &handle) == 0)
		first = handle;
	CHECK_EQ(gdr_pin_buffer(g, buffer.ptr, MIB, 0, 0, &handle), ENOMEM);
	CHECK_EQ(handle.h, 0);
	CHECK_EQ(gdr_unpin_buffer(g, first), 0);
	handle = gpu_pin(g, buffer.ptr, MIB);
	CHECK_EQ(gdr_close(g), 0);
}

/* R18: sessions that end in atexit handlers and destructors, after main. */
static struct gpu_mapping left_for_exit;
static bool expected_at_exit;

static void check_at_exit(const char *where)
{
	uint64_t value = 5;
	const struct gpu_mapping *left = &left_for_exit;

	if (gdr_copy_to_mapping(left->handle, left->va, &value, 8) != 0 ||
	    gdr_unmap(left->g, left->handle, left->va, MIB) != 0 ||
	    gdr_unpin_buffer(left->g, left->handle) != 0 || gdr_close(left->g) != 0) {
		fprintf(stderr, "a call %s failed\n", where);
		_exit(3);
	}
}

static void end_in_atexit(void)
{
	check_at_exit("in atexit");
}

__attribute__((destructor)) static void end_in_destructor(void)
{
	if (expected_at_exit)
		check_at_exit("in a destructor");
}

static void close_in_atexit(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		left_for_exit = gpu_map_new(gpu_open(), MIB);
		atexit(end_in_atexit);
		exit(0);
	}
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void close_in_destructor(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		left_for_exit = gpu_map_new(gpu_open(), MIB);
		expected_at_exit = true;
		exit(0);
	}
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* R24: pins under a consumer's spinlock do not need its other threads. */
static void spinlock_around_pins(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	pthread_spinlock_t lock;

	pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
	for (int i = 0; i < 1000; i++) {
		gdr_mh_t handle;
		void *va;

		pthread_spin_lock(&lock);
		handle = gpu_pin(g, buffer.ptr, MIB);
		va = gpu_map(g, handle, MIB);
		pthread_spin_unlock(&lock);
		pthread_spin_lock(&lock);
		CHECK_EQ(gdr_unmap(g, handle, va, MIB), 0);
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
		pthread_spin_unlock(&lock);
	}
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static const struct api_case cases[] = {
	{ "close_with_live_pins_and_mappings", close_with_live_pins_and_mappings, NULL },
	{ "unpin_without_unmap", unpin_without_unmap, NULL },
	{ "free_before_unmap", free_before_unmap, NULL },
	{ "pins_of_one_buffer", pins_of_one_buffer, NULL },
	{ "memory_stays_flat", memory_stays_flat, NULL },
	{ "memory_stays_flat_beside_a_live_pin", memory_stays_flat_beside_a_live_pin, NULL },
	{ "sessions_come_and_go", sessions_come_and_go, NULL },
	{ "failures_leave_nothing", failures_leave_nothing,
	  "GDRCOPY_EMU=fail=pin:3,fail=pin:6,fail=pin:9,fail=pin:12,fail=map:5,fail=map:10,"
	  "fail=map:15,fail=map:20" },
	{ "ten_thousand_maps", ten_thousand_maps, NULL },
	{ "little_address_space", little_address_space, NULL },
	{ "small_table", small_table, NULL },
	{ "close_in_atexit", close_in_atexit, NULL },
	{ "close_in_destructor", close_in_destructor, NULL },
	{ "spinlock_around_pins", spinlock_around_pins, NULL },
};

API_MAIN(cases)
