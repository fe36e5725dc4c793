/* SPDX-License-Identifier: MIT */
/* Version 3: what each call refuses, what it then leaves alone, and how handles end. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api3/helper_buffer.h"

#define SIZE (256 * KIB)

static gdr_t g;
static CUdeviceptr ptr;
static uint64_t handle;

static void open_one(uint32_t flags)
{
	ptr = buffer_alloc(0, 2 * MIB);
	g = buffer_session();
	REQUIRE_OK(gdr_pin_buffer(g, ptr, SIZE, flags, 0, &handle));
}

static void pins(void)
{
	CUdeviceptr managed, pool;
	uint64_t made = 5;
	char local[64];

	open_one(0);
#define REFUSED_PIN(addr, size, flags, device, result, hint)                                      \
	do {                                                                                      \
		made = 5;                                                                         \
		CHECK_REFUSED(gdr_pin_buffer(g, addr, size, flags, device, &made), result, hint); \
		CHECK_EQ(made, 0);                                                                \
	} while (0)
	REFUSED_PIN(ptr, 0, 0, 0, GDR_ERR_INVALID_ARG, "not a range");
	REFUSED_PIN(0, 4096, 0, 0, GDR_ERR_INVALID_ARG, "not a range");
	REFUSED_PIN(ptr, SIZE_MAX - 4095, 0, 0, GDR_ERR_INVALID_ARG, "not a range");
	REFUSED_PIN(ptr, 4097, 0, 0, GDR_ERR_INVALID_ARG, "multiple of 4096");
	REFUSED_PIN(ptr, 4096, 4, 0, GDR_ERR_INVALID_ARG, "flags");
	REFUSED_PIN(ptr, 4096, 0, -1, GDR_ERR_INVALID_ARG, "does not exist");
	REFUSED_PIN(ptr, 4096, 0, 2, GDR_ERR_INVALID_ARG, "does not exist");
	REFUSED_PIN(ptr, 4096, 0, 1, GDR_ERR_INVALID_ARG, "not of device 1");
	REFUSED_PIN(ptr, 4 * MIB, 0, 0, GDR_ERR_INVALID_ARG, "leave their allocation");
	REFUSED_PIN((uint64_t)(uintptr_t)local, 4096, 0, 0, GDR_ERR_INVALID_ARG, "not GPU memory");
	REQUIRE_EQ(cuMemAllocManaged(&managed, 65536, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	REFUSED_PIN(managed, 65536, 0, 0, GDR_ERR_OP_NOT_SUPPORTED, "managed");
	REQUIRE_EQ(cuMemAllocAsync(&pool, 65536, NULL), CUDA_SUCCESS);
	REFUSED_PIN(pool, 65536, 0, 0, GDR_ERR_OP_NOT_SUPPORTED, "pool");
	CHECK_REFUSED(gdr_pin_buffer(g, ptr, 4096, 0, 0, NULL), GDR_ERR_INVALID_ARG, "NULL");
	REQUIRE_EQ(cuMemFree(ptr), CUDA_SUCCESS);
	REFUSED_PIN(ptr, 4096, 0, 0, GDR_ERR_INVALID_ARG, "not GPU memory");
	CHECK_OK(gdr_close(g));
}

static void sync_and_unaligned(void)
{
	unsigned sync = 0;
	uint64_t odd;
	char text[8] = "";

	open_one(GDR_PIN_BUFFER_SYNC);
	CHECK_EQ(cuPointerGetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr), CUDA_SUCCESS);
	CHECK_EQ(sync, 1);
	REQUIRE_OK(gdr_pin_buffer(g, ptr + 77, 1001, GDR_PIN_BUFFER_UNALIGNED, 0, &odd));
	CHECK_OK(gdr_copy_from_host(g, odd, 3, "hello", 6));
	buffer_get(text, ptr + 80, 6);
	CHECK(strcmp(text, "hello") == 0);
	CHECK_REFUSED(gdr_copy_from_host(g, odd, 999, "hello", 6), GDR_ERR_INVALID_ARG, "leave");
	CHECK_OK(gdr_close(g));
}

static void maps(void)
{
	void *va = &va, *again;

	open_one(0);
	CHECK_REFUSED(gdr_map(g, handle, &va, 0), GDR_ERR_INVALID_ARG, "size 0");
	CHECK(va == NULL);
	CHECK_REFUSED(gdr_map(g, handle, &va, 100), GDR_ERR_INVALID_ARG, "multiple");
	CHECK_REFUSED(gdr_map(g, handle, &va, SIZE + 4096), GDR_ERR_INVALID_ARG, "pinned size");
	CHECK_REFUSED(gdr_map(g, handle, NULL, SIZE), GDR_ERR_INVALID_ARG, "NULL");
	REQUIRE_OK(gdr_map(g, handle, &va, 4096));
	again = &va;
	CHECK_REFUSED(gdr_map(g, handle, &again, SIZE), GDR_ERR_BUSY, "mapped already");
	CHECK(again == NULL);
	CHECK_REFUSED(gdr_unmap(g, handle, (char *)va + 4096, 4096), GDR_ERR_INVALID_ARG,
		      "mapping");
	CHECK_REFUSED(gdr_unmap(g, handle, va, 8192), GDR_ERR_INVALID_ARG, "mapping");
	CHECK_OK(gdr_unmap(g, handle, va, 4096));
	CHECK_REFUSED(gdr_unmap(g, handle, va, 4096), GDR_ERR_INVALID_ARG, "not mapped");
	REQUIRE_OK(gdr_map(g, handle, &va, SIZE));
	CHECK_OK(gdr_close(g));
}

static void copies(void)
{
	char host[64] = "";

	open_one(0);
	CHECK_REFUSED(gdr_copy_from_host(g, handle, SIZE, host, 1), GDR_ERR_INVALID_ARG, "leave");
	CHECK_REFUSED(gdr_copy_to_host(g, handle, UINT64_MAX, host, 2), GDR_ERR_INVALID_ARG,
		      "leave");
	CHECK_REFUSED(gdr_copy_to_host(g, handle, 0, host, SIZE_MAX), GDR_ERR_INVALID_ARG, "leave");
	CHECK_REFUSED(gdr_copy_from_host(g, handle, 0, NULL, 8), GDR_ERR_INVALID_ARG, "NULL");
	CHECK_REFUSED(gdr_copy_to_host(g, handle, 0, NULL, 8), GDR_ERR_INVALID_ARG, "NULL");
	CHECK_OK(gdr_copy_from_host(g, handle, SIZE, NULL, 0));
	CHECK_REFUSED(gdr_copy_to_device(g, handle, handle, 1, 8192, 4096), GDR_ERR_INVALID_ARG,
		      "multiples");
	CHECK_REFUSED(gdr_copy_to_device(g, handle, handle, 0, 8192, 100), GDR_ERR_INVALID_ARG,
		      "multiples");
	CHECK_REFUSED(gdr_copy_to_device(g, handle, handle, 0, 4096, SIZE), GDR_ERR_INVALID_ARG,
		      "destination");
	CHECK_REFUSED(gdr_copy_to_device(g, handle, handle, 4096, 0, SIZE), GDR_ERR_INVALID_ARG,
		      "source");
	CHECK_REFUSED(gdr_copy_to_device(g, handle, 12345, 0, 0, 4096), GDR_ERR_STALE_HANDLE,
		      "handle");
	CHECK_OK(gdr_close(g));
}

static void registrations(void)
{
	char *host = aligned_alloc(4096, SIZE);

	open_one(0);
	CHECK_REFUSED(gdr_host_register(g, NULL, 4096), GDR_ERR_INVALID_ARG, "range");
	CHECK_REFUSED(gdr_host_register(g, host, 0), GDR_ERR_INVALID_ARG, "range");
	CHECK_REFUSED(gdr_host_register(g, host, SIZE_MAX - 10), GDR_ERR_INVALID_ARG, "range");
	CHECK_OK(gdr_host_register(g, host + 100, 5000));
	CHECK_REFUSED(gdr_host_register(g, host + 8000, 10), GDR_ERR_INVALID_ARG, "share");
	CHECK_OK(gdr_host_register(g, host + 8192, 10));
	CHECK_REFUSED(gdr_host_unregister(g, host), GDR_ERR_INVALID_ARG, "not registered");
	CHECK_OK(gdr_host_unregister(g, host + 100));
	CHECK_REFUSED(gdr_host_unregister(g, host + 100), GDR_ERR_INVALID_ARG, "not registered");
	CHECK_OK(gdr_host_register(g, host, 8192));
	CHECK_OK(gdr_close(g));
	free(host);
}

static void structs(void)
{
	struct {
		gdr_info_t info;
		uint64_t younger;
	} large = { .info = { .size = sizeof(large) }, .younger = 7 };
	struct {
		uint64_t size, addr, untouched;
	} small = { .size = 16, .untouched = 9 };
	gdr_status_t status = { .size = sizeof(status) };
	gdr_info_t none = { .size = 0, .addr = 3 };

	open_one(GDR_PIN_BUFFER_UNALIGNED);
	CHECK_OK(gdr_get_info(g, handle, &large.info));
	CHECK_EQ(large.info.size, sizeof(gdr_info_t));
	CHECK_EQ(large.info.addr, ptr);
	CHECK_EQ(large.info.length, SIZE);
	CHECK_EQ(large.info.flags, GDR_PIN_BUFFER_UNALIGNED);
	CHECK_EQ(large.younger, 7);
	CHECK_OK(gdr_get_info(g, handle, (gdr_info_t *)&small));
	CHECK_EQ(small.size, 16);
	CHECK_EQ(small.addr, ptr);
	CHECK_EQ(small.untouched, 9);
	CHECK_REFUSED(gdr_get_info(g, handle, &none), GDR_ERR_INVALID_ARG, "size");
	CHECK_EQ(none.addr, 3);
	CHECK_REFUSED(gdr_get_info(g, handle, NULL), GDR_ERR_INVALID_ARG, "NULL");
	CHECK_REFUSED(gdr_query(g, handle, NULL), GDR_ERR_INVALID_ARG, "NULL");
	CHECK_OK(gdr_query(g, handle, &status));
	CHECK(!status.freed && !status.mapped && !status.revoked);
	CHECK_OK(gdr_close(g));
}

static void results(void)
{
	for (int i = -3; i < 40; i++) {
		CHECK(gdr_strerror((gdr_result_t)i) != NULL);
		CHECK_EQ(strcmp(gdr_strerror((gdr_result_t)i), "unknown result") != 0,
			 i >= 0 && i <= GDR_ERR_STALE_HANDLE);
	}
}

/* Freed and given to another allocation: a query tells, and what is pinned stays what it was. */
static void freed_memory(void)
{
	gdr_status_t status = { .size = sizeof(status) };
	char text[8] = "";

	open_one(0);
	CHECK_OK(gdr_copy_from_host(g, handle, 0, "before", 7));
	REQUIRE_EQ(cuMemFree(ptr), CUDA_SUCCESS);
	CHECK_OK(gdr_query(g, handle, &status));
	CHECK_EQ(status.freed, 1);
	CHECK_OK(gdr_copy_to_host(g, handle, 0, text, 7));
	CHECK(strcmp(text, "before") == 0);
	CHECK_OK(gdr_unpin(g, handle));
	CHECK_OK(gdr_close(g));
}

static void all_calls_on(gdr_t dead, uint64_t old, gdr_result_t result)
{
	gdr_info_t info = { .size = sizeof(info) };
	gdr_status_t status = { .size = sizeof(status) };
	uint64_t made;
	char host[8];
	void *va;

	CHECK_EQ(gdr_pin_buffer(dead, ptr, 4096, 0, 0, &made), result);
	CHECK_EQ(gdr_unpin(dead, old), result);
	CHECK_EQ(gdr_map(dead, old, &va, 4096), result);
	CHECK_EQ(gdr_unmap(dead, old, host, 4096), result);
	CHECK_EQ(gdr_copy_from_host(dead, old, 0, host, 8), result);
	CHECK_EQ(gdr_copy_to_host(dead, old, 0, host, 8), result);
	CHECK_EQ(gdr_copy_to_device(dead, old, old, 0, 8192, 4096), result);
	CHECK_EQ(gdr_host_register(dead, host, 8), result);
	CHECK_EQ(gdr_host_unregister(dead, host), result);
	CHECK_EQ(gdr_flush(dead), result);
	CHECK_EQ(gdr_get_info(dead, old, &info), result);
	CHECK_EQ(gdr_query(dead, old, &status), result);
	CHECK_EQ(gdr_close(dead), result);
}

static void dead_sessions(void)
{
	open_one(0);
	CHECK_OK(gdr_close(g));
	all_calls_on(g, handle, GDR_ERR_STALE_HANDLE);
	all_calls_on(NULL, 0, GDR_ERR_STALE_HANDLE);
	all_calls_on((gdr_t)(uintptr_t)0x1234, 77, GDR_ERR_STALE_HANDLE);
}

static void dead_handles(void)
{
	gdr_t other = buffer_session();
	char host[8];

	open_one(0);
	CHECK_EQ(gdr_copy_to_host(other, handle, 0, host, 8), GDR_ERR_STALE_HANDLE);
	CHECK_EQ(gdr_unpin(other, handle), GDR_ERR_STALE_HANDLE);
	CHECK_OK(gdr_unpin(g, handle));
	CHECK_EQ(gdr_unpin(g, handle), GDR_ERR_STALE_HANDLE);
	CHECK_EQ(gdr_copy_to_host(g, handle, 0, host, 8), GDR_ERR_STALE_HANDLE);
	CHECK_EQ(gdr_copy_to_host(g, (uint64_t)(uintptr_t)g, 0, host, 8), GDR_ERR_STALE_HANDLE);
	CHECK_OK(gdr_close(g));
	CHECK_OK(gdr_close(other));
}

static void in_child(void *arg)
{
	(void)arg;
	all_calls_on(g, handle, GDR_ERR_PERMISSION);
	CHECK_OK(gdr_close(buffer_session()));
}

static void forked_child(void)
{
	open_one(0);
	CHECK_EQ(harness_fork(in_child, NULL), 0);
	CHECK_OK(gdr_unpin(g, handle));
	CHECK_OK(gdr_close(g));
}

static atomic_bool over;

/* Each thread has a range of its own, whose offset arg is. */
static void *copy_until_refused(void *arg)
{
	const uint64_t offset = (uintptr_t)arg;
	char host[5000];

	memset(host, 3, sizeof(host));
	while (!atomic_load(&over))
		if (gdr_copy_from_host(g, handle, offset, host, sizeof(host)) != GDR_SUCCESS)
			break;
	return NULL;
}

/* Unpin waits for running copies and refuses the next; then the memory is nobody's. */
static void unpin_against_copies(void)
{
	pthread_t thread[3];

	for (int round = 0; round < api_rounds(60); round++) {
		open_one(0);
		atomic_store(&over, false);
		for (uintptr_t i = 0; i < 3; i++)
			REQUIRE_EQ(pthread_create(&thread[i], NULL, copy_until_refused,
						  (void *)(64 + i * 8192)), 0);
		CHECK_OK(round % 2 ? gdr_unpin(g, handle) : gdr_close(g));
		for (int i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		if (round % 2)
			CHECK_OK(gdr_close(g));
		REQUIRE_EQ(cuMemFree(ptr), CUDA_SUCCESS);
	}
}

#define LOUD "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_EMU=devices=2"

static const struct api_case cases[] = {
	{ "pins", pins, LOUD },
	{ "sync_and_unaligned", sync_and_unaligned, LOUD },
	{ "maps", maps, LOUD },
	{ "copies", copies, LOUD },
	{ "registrations", registrations, LOUD },
	{ "registrations_without_engine", registrations, LOUD " GDRCOPY_DMA=0" },
	{ "structs", structs, LOUD },
	{ "results", results, NULL },
	{ "freed_memory", freed_memory, NULL },
	{ "dead_sessions", dead_sessions, NULL },
	{ "dead_handles", dead_handles, NULL },
	{ "forked_child", forked_child, NULL },
	{ "unpin_against_copies", unpin_against_copies, "GDRCOPY_DMA=0" },
	{ "unpin_against_engine", unpin_against_copies, "GDRCOPY_DMA=min=0" },
};

API_MAIN(cases)
