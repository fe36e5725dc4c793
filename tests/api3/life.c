/* SPDX-License-Identifier: MIT */
/* Version 3: what sessions, pins, mappings and registered memory leave behind, and for whom. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api3/helper_buffer.h"

#define SIZE (2 * MIB)

static uint64_t pin(gdr_t g, CUdeviceptr ptr, size_t size)
{
	uint64_t handle = 0;

	REQUIRE_OK(gdr_pin_buffer(g, ptr, size, GDR_PIN_BUFFER_UNALIGNED, 0, &handle));
	REQUIRE(handle != 0);
	return handle;
}

static void *host_pages(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(pages != MAP_FAILED);
	memset(pages, 0, size);
	return pages;
}

static gdr_status_t ask(gdr_t g, uint64_t handle)
{
	gdr_status_t status = { .size = sizeof(status), .reserved = 9 };

	CHECK_OK(gdr_query(g, handle, &status));
	CHECK_EQ(status.size, sizeof(status));
	CHECK_EQ(status.reserved, 0);
	return status;
}

/* There and back by one handle, checked with CUDA's eyes as well. */
static void check_works(gdr_t g, uint64_t handle, CUdeviceptr ptr, size_t size)
{
	static uint32_t seed;
	unsigned char *data = malloc(size), *seen = malloc(size);

	REQUIRE(data && seen);
	buffer_fill(data, size, ++seed);
	CHECK_OK(gdr_copy_from_host(g, handle, 0, data, size));
	buffer_get(seen, ptr, size);
	CHECK(memcmp(seen, data, size) == 0);
	memset(seen, 0, size);
	CHECK_OK(gdr_copy_to_host(g, handle, 0, seen, size));
	CHECK(memcmp(seen, data, size) == 0);
	free(data);
	free(seen);
}

static void leave_everything(CUdeviceptr ptr, void *pages)
{
	gdr_t g = buffer_session();
	uint64_t handle[8];
	void *va;

	for (int i = 0; i < 8; i++)
		handle[i] = pin(g, ptr + 4096 * (unsigned)i, SIZE / 2);
	for (int i = 0; i < 8; i += 2)
		REQUIRE_OK(gdr_map(g, handle[i], &va, SIZE / 4));
	REQUIRE_OK(gdr_host_register(g, pages, 16 * KIB));
	REQUIRE_OK(gdr_host_register(g, (char *)pages + SIZE / 2, SIZE / 2));
	CHECK_OK(gdr_copy_from_host(g, handle[0], 0, pages, SIZE / 4));
	CHECK_OK(gdr_copy_to_device(g, handle[1], handle[3], 0, 0, SIZE / 2));
	CHECK_OK(gdr_close(g));
	CHECK_EQ(gdr_copy_from_host(g, handle[0], 0, pages, 8), GDR_ERR_STALE_HANDLE);
}

static void close_releases_everything(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	void *pages = host_pages(SIZE);
	size_t maps;
	int fds = 0;

	/* Pools and the C library's heap have grown after these. */
	for (int i = 0; i < 3; i++) {
		leave_everything(ptr, pages);
		fds = harness_count_fds();
	}
	maps = api_count_maps();
	for (int i = 0; i < api_rounds(100); i++)
		leave_everything(ptr, pages);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_EQ(api_count_maps(), maps);
	munmap(pages, SIZE);
	CHECK_EQ(cuMemFree(ptr), CUDA_SUCCESS);
}

/* Says what it unpins and unregisters. */
static void close_logs_what_is_left(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	void *pages = host_pages(SIZE);
	gdr_t g = buffer_session();
	const char *text;
	int lines;

	pin(g, ptr, SIZE);
	REQUIRE_OK(gdr_host_register(g, pages, SIZE));
	api_capture_begin();
	CHECK_OK(gdr_close(g));
	text = api_capture_end(&lines);
	CHECK(strstr(text, "close: unpins") != NULL);
	CHECK(strstr(text, "close: unregisters") != NULL);
	g = buffer_session();
	CHECK_OK(gdr_unpin(g, pin(g, ptr, SIZE)));
	api_capture_begin();
	CHECK_OK(gdr_close(g));
	text = api_capture_end(&lines);
	CHECK(strstr(text, "unpins") == NULL);
}

static void sessions_are_independent(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	gdr_t g[6];
	uint64_t handle[6];
	void *pages = host_pages(SIZE);

	for (int i = 0; i < 6; i++) {
		g[i] = buffer_session();
		handle[i] = pin(g[i], ptr, SIZE);
		REQUIRE_OK(gdr_host_register(g[i], pages, SIZE));
	}
	for (int i = 0; i < 6; i++) {
		check_works(g[i], handle[i], ptr, SIZE);
		CHECK_EQ(gdr_unpin(g[i], handle[(i + 1) % 6]), GDR_ERR_STALE_HANDLE);
		CHECK_EQ(gdr_copy_to_device(g[i], handle[i], handle[(i + 1) % 6], 0, 4096, 4096),
			 GDR_ERR_STALE_HANDLE);
		CHECK_EQ(gdr_copy_to_device(g[i], handle[(i + 1) % 6], handle[i], 0, 4096, 4096),
			 GDR_ERR_STALE_HANDLE);
	}
	for (int i = 0; i < 6; i++) {
		CHECK_OK(gdr_close(g[i]));
		for (int other = i + 1; other < 6; other++)
			check_works(g[other], handle[other], ptr, 100 * KIB);
	}
	munmap(pages, SIZE);
}

/* After the session no engine knows the pages: the address may be anybody's. */
static void registered_pages_after_close(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	unsigned char *pages = host_pages(SIZE), *seen = malloc(SIZE);
	gdr_t g = buffer_session();
	uint64_t handle;

	REQUIRE(seen != NULL);
	handle = pin(g, ptr, SIZE);
	REQUIRE_OK(gdr_host_register(g, pages, SIZE));
	check_works(g, handle, ptr, SIZE);
	CHECK_OK(gdr_close(g));
	REQUIRE(mmap(pages, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0) == pages);
	buffer_fill(pages, SIZE, 77);
	g = buffer_session();
	handle = pin(g, ptr, SIZE);
	CHECK_OK(gdr_copy_from_host(g, handle, 0, pages, SIZE));
	buffer_get(seen, ptr, SIZE);
	CHECK(memcmp(seen, pages, SIZE) == 0);
	CHECK_OK(gdr_close(g));
	munmap(pages, SIZE);
	free(seen);
}

static void unmapped_and_mapped_again(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	gdr_t g = buffer_session();
	uint64_t handle = pin(g, ptr, SIZE);
	unsigned char byte = 0;
	void *va = NULL;

	CHECK_EQ(ask(g, handle).mapped, 0);
	for (size_t size = 4096; size <= SIZE; size *= 2) {
		REQUIRE_OK(gdr_map(g, handle, &va, size));
		CHECK_EQ(ask(g, handle).mapped, 1);
		((volatile unsigned char *)va)[size - 1] = (unsigned char)(size >> 12);
		CHECK_OK(gdr_flush(g));
		buffer_get(&byte, ptr + size - 1, 1);
		CHECK_EQ(byte, (unsigned char)(size >> 12));
		CHECK_OK(gdr_unmap(g, handle, va, size));
		CHECK_EQ(ask(g, handle).mapped, 0);
		check_works(g, handle, ptr, 70000);
	}
	/* A mapping ends with its pin. */
	REQUIRE_OK(gdr_map(g, handle, &va, SIZE));
	CHECK_OK(gdr_unpin(g, handle));
	CHECK_EQ(gdr_unmap(g, handle, va, SIZE), GDR_ERR_STALE_HANDLE);
	CHECK_OK(gdr_close(g));
}

/* The pinned byte itself, at any address. */
static void odd_pins(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	gdr_t g = buffer_session();
	static const size_t starts[] = { 1, 63, 4095, 4097, 65535, 65537, 1000003 };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		const size_t length = 3001 + i * 70001;
		uint64_t handle = pin(g, ptr + starts[i], length);
		unsigned char seen[3] = "", expected[3] = { 0xee, 0x7b, 0xee };
		gdr_info_t info = { .size = sizeof(info) };
		void *va;

		buffer_set(ptr + starts[i] - 1, "\xee\xee\xee", 3);
		REQUIRE_OK(gdr_map(g, handle, &va, length));
		*(volatile unsigned char *)va = 0x7b;
		CHECK_OK(gdr_flush(g));
		buffer_get(seen, ptr + starts[i] - 1, 3);
		CHECK(memcmp(seen, expected, 3) == 0);
		check_works(g, handle, ptr + starts[i], length);
		CHECK_OK(gdr_get_info(g, handle, &info));
		CHECK_EQ(info.addr, ptr + starts[i]);
		CHECK_EQ(info.length, length);
		CHECK_EQ(gdr_copy_to_host(g, handle, length, seen, 1), GDR_ERR_INVALID_ARG);
		CHECK_OK(gdr_unpin(g, handle));
	}
	CHECK_OK(gdr_close(g));
}

/* The address given to another allocation is not the memory that was pinned. */
static void freed_and_given_away(void)
{
	CUdeviceptr ptr = buffer_alloc(0, 4 * MIB), next;
	gdr_t g = buffer_session();
	uint64_t handle = pin(g, ptr, 4 * MIB);
	unsigned char mine = 0x11, theirs = 0x22, seen = 0;
	void *va;

	REQUIRE_OK(gdr_map(g, handle, &va, 4 * MIB));
	CHECK_OK(gdr_copy_from_host(g, handle, 0, &mine, 1));
	CHECK_EQ(ask(g, handle).freed, 0);
	REQUIRE_EQ(cuMemFree(ptr), CUDA_SUCCESS);
	CHECK_EQ(ask(g, handle).freed, 1);
	next = buffer_alloc(0, 4 * MIB);
	buffer_set(next, &theirs, 1);
	CHECK_EQ(ask(g, handle).freed, 1);
	CHECK_EQ(ask(g, handle).mapped, 1);
	CHECK_OK(gdr_copy_to_host(g, handle, 0, &seen, 1));
	CHECK_EQ(seen, mine);
	*(volatile unsigned char *)va = 0x33;
	CHECK_OK(gdr_flush(g));
	buffer_get(&seen, next, 1);
	CHECK_EQ(seen, theirs);
	CHECK_OK(gdr_unmap(g, handle, va, 4 * MIB));
	CHECK_OK(gdr_unpin(g, handle));
	CHECK_OK(gdr_close(g));
	CHECK_EQ(cuMemFree(next), CUDA_SUCCESS);
}

static void invented_values(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	gdr_t g = buffer_session();
	uint64_t handle = pin(g, ptr, SIZE);
	char host[8] = "";

	for (int64_t step = -20000; step < 20000; step++) {
		const uint64_t value = handle + (uint64_t)step;
		const gdr_t session = (gdr_t)((uintptr_t)g + (uintptr_t)step);

		if (step == 0)
			continue;
		if (gdr_copy_to_host(g, value, 0, host, 1) != GDR_ERR_STALE_HANDLE)
			CHECK_EQ(value, 0);
		if (gdr_copy_to_host(session, handle, 0, host, 1) != GDR_ERR_STALE_HANDLE)
			CHECK_EQ(step, 0);
	}
	for (int bit = 0; bit < 64; bit++) {
		CHECK_EQ(gdr_unpin(g, handle ^ UINT64_C(1) << bit), GDR_ERR_STALE_HANDLE);
		CHECK_EQ(gdr_close((gdr_t)((uintptr_t)g ^ (uintptr_t)1 << bit)),
			 GDR_ERR_STALE_HANDLE);
	}
	CHECK_EQ(gdr_close((gdr_t)(uintptr_t)handle), GDR_ERR_STALE_HANDLE);
	check_works(g, handle, ptr, SIZE);
	CHECK_OK(gdr_close(g));
}

/* Values are not used again soon: an old one meets no later pin. */
static void old_handles_stay_dead(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	gdr_t g = buffer_session();
	uint64_t first = pin(g, ptr, SIZE), handle = 0;
	char host = 0;

	CHECK_OK(gdr_unpin(g, first));
	for (int i = 0; i < api_rounds(2000); i++) {
		handle = pin(g, ptr, 4096);
		if (handle == first ||
		    gdr_copy_to_host(g, first, 0, &host, 1) != GDR_ERR_STALE_HANDLE)
			CHECK_EQ(i, -1);
		CHECK_OK(gdr_unpin(g, handle));
	}
	CHECK_OK(gdr_close(g));
}

struct parent {
	gdr_t g;
	uint64_t handle;
	unsigned char *va, *pages;
};

static void touch(void *address)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	*(volatile unsigned char *)address = 1;
	_exit(0);
}

static void touch_mapping(void *arg)
{
	touch(((struct parent *)arg)->va);
}

static void touch_registered(void *arg)
{
	touch(((struct parent *)arg)->pages);
}

static bool crashed(int status)
{
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

static void check_absent(void)
{
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	struct parent parent = { .g = buffer_session(), .pages = host_pages(SIZE) };
	void *va;

	parent.handle = pin(parent.g, ptr, SIZE);
	REQUIRE_OK(gdr_map(parent.g, parent.handle, &va, SIZE));
	parent.va = va;
	REQUIRE_OK(gdr_host_register(parent.g, parent.pages, SIZE));
	check_works(parent.g, parent.handle, ptr, SIZE);
	CHECK(crashed(harness_fork(touch_mapping, &parent)));
	CHECK(crashed(harness_fork(touch_registered, &parent)));
	CHECK_OK(gdr_host_unregister(parent.g, parent.pages));
	CHECK_EQ(harness_fork(touch_registered, &parent), 0);
	check_works(parent.g, parent.handle, ptr, SIZE);
	CHECK_OK(gdr_close(parent.g));
	munmap(parent.pages, SIZE);
}

static void live_in_child(void *arg)
{
	const struct parent *parent = arg;
	CUdeviceptr ptr = buffer_alloc(0, SIZE);
	gdr_t own = buffer_session();
	uint64_t handle = pin(own, ptr, SIZE);

	CHECK(own != parent->g);
	check_works(own, handle, ptr, SIZE);
	CHECK_EQ(gdr_unpin(parent->g, handle), GDR_ERR_PERMISSION);
	CHECK_EQ(gdr_close(parent->g), GDR_ERR_PERMISSION);
	CHECK_EQ(gdr_close(parent->g), GDR_ERR_PERMISSION);
	check_works(own, handle, ptr, SIZE);
	CHECK_OK(gdr_close(own));
	CHECK_EQ(gdr_close(own), GDR_ERR_STALE_HANDLE);
}

/* CUDA starts in the child alone, so that it can pin there. */
static void child_lives_its_own_life(void)
{
	struct parent parent = { .g = buffer_session() };
	CUdeviceptr ptr;

	CHECK_EQ(harness_fork(live_in_child, &parent), 0);
	CHECK_EQ(harness_fork(live_in_child, &parent), 0);
	ptr = buffer_alloc(0, SIZE);
	check_works(parent.g, pin(parent.g, ptr, SIZE), ptr, SIZE);
	CHECK_OK(gdr_close(parent.g));
}

#define ENGINE "GDRCOPY_DMA=min=0"
#define NOTES "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=2"

static const struct api_case cases[] = {
	{ "close_releases_everything", close_releases_everything, NULL },
	{ "close_releases_everything_of_engines", close_releases_everything, ENGINE },
	{ "close_releases_everything_without_engines", close_releases_everything, "GDRCOPY_DMA=0" },
	{ "close_logs_what_is_left", close_logs_what_is_left, NOTES },
	{ "sessions_are_independent", sessions_are_independent, NULL },
	{ "sessions_are_independent_with_engines", sessions_are_independent, ENGINE },
	{ "registered_pages_after_close", registered_pages_after_close, ENGINE },
	{ "unmapped_and_mapped_again", unmapped_and_mapped_again, NULL },
	{ "odd_pins", odd_pins, NULL },
	{ "odd_pins_with_engines", odd_pins, ENGINE },
	{ "odd_pins_without_engines", odd_pins, "GDRCOPY_DMA=0" },
	{ "freed_and_given_away", freed_and_given_away, NULL },
	{ "freed_and_given_away_with_engines", freed_and_given_away, ENGINE },
	{ "invented_values", invented_values, NULL },
	{ "old_handles_stay_dead", old_handles_stay_dead, NULL },
	{ "absent_from_children", check_absent, NULL },
	{ "absent_from_children_with_engines", check_absent, ENGINE },
	{ "child_lives_its_own_life", child_lives_its_own_life, NULL },
	{ "child_lives_its_own_life_with_engines", child_lives_its_own_life, ENGINE },
};

API_MAIN(cases)
