/* SPDX-License-Identifier: MIT */
/*
 * Handles that are stale, foreign, freed twice or invented get EINVAL from
 * every call, never a crash, and never reach what somebody else owns.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Every call that takes a handle; none may accept it. */
static bool is_refused(gdr_t g, uint64_t value)
{
	const gdr_mh_t handle = { value };
	gdr_info_t info;
	char host[8];
	void *va;
	int flag;

	return gdr_unpin_buffer(g, handle) == EINVAL && gdr_map(g, handle, &va, 4096) == EINVAL &&
	       gdr_unmap(g, handle, host, 4096) == EINVAL &&
	       gdr_get_info(g, handle, &info) == EINVAL &&
	       gdr_get_callback_flag(g, handle, &flag) == EINVAL &&
	       gdr_copy_to_mapping(handle, host, host, 4) == EINVAL &&
	       gdr_copy_from_mapping(handle, host, host, 4) == EINVAL;
}

/* The same value as a session. */
static bool is_no_session(uint64_t value)
{
	gdr_t g = (gdr_t)(uintptr_t)value;
	gdr_mh_t handle = { value };
	int major, minor;

	return gdr_close(g) == EINVAL && gdr_pin_buffer(g, 65536, 1, 0, 0, &handle) == EINVAL &&
	       gdr_driver_get_version(g, &major, &minor) == EINVAL &&
	       gdr_unpin_buffer(g, handle) == EINVAL;
}

static void stale_and_twice(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t first = gpu_pin(g, buffer.ptr, MIB);
	gdr_mh_t second = gpu_pin(g, buffer.ptr, MIB);

	CHECK(first.h != second.h);
	CHECK_EQ(gdr_unpin_buffer(g, first), 0);
	CHECK(is_refused(g, first.h));
	CHECK(is_refused(g, first.h));
	/* The neighbour never noticed. */
	gpu_map(g, second, MIB);
	CHECK_EQ(gdr_unpin_buffer(g, second), 0);
	CHECK(is_refused(g, second.h));
	CHECK_EQ(gdr_close(g), 0);
	CHECK(is_no_session((uintptr_t)g));
	CHECK(is_refused(g, first.h));
	gpu_free(buffer);
}

/* A handle from long ago is not believed because its place was used again. */
static void stale_after_many_others(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	gdr_t g = gpu_open();
	gdr_mh_t first = gpu_stale_handle(g, buffer);
	gdr_mh_t first_mapped = gpu_pin(g, buffer.ptr, MIB);
	unsigned char *va = gpu_map(g, first_mapped, MIB);
	int accepted = 0;

	CHECK_EQ(gdr_unpin_buffer(g, first_mapped), 0);
	for (int i = 0; i < api_rounds(100000); i++) {
		gdr_mh_t handle = gpu_pin(g, buffer.ptr, MIB);

		accepted += handle.h == first.h || handle.h == first_mapped.h;
		if (i % 1000 == 0) {
			va = gpu_map(g, handle, MIB);
			accepted += !is_refused(g, first.h) || !is_refused(g, first_mapped.h);
			accepted += gdr_copy_to_mapping(first_mapped, va, &va, 8) != EINVAL;
		}
		CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	}
	CHECK_EQ(accepted, 0);
	CHECK(is_refused(g, first.h));
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void sessions_of_long_ago(void)
{
	gdr_t g = gpu_open(), other;

	CHECK_EQ(gdr_close(g), 0);
	for (int i = 0; i < api_rounds(2000); i++) {
		other = gpu_open();
		CHECK(other != g);
		if (i % 100 == 0)
			CHECK(is_no_session((uintptr_t)g));
		CHECK_EQ(gdr_close(other), 0);
	}
}

static void handles_of_another_session(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_t other = gpu_open();
	gdr_info_t info;
	void *va;
	int flag;

	CHECK_EQ(gdr_unpin_buffer(other, mapping.handle), EINVAL);
	CHECK_EQ(gdr_unmap(other, mapping.handle, mapping.va, MIB), EINVAL);
	CHECK_EQ(gdr_map(other, mapping.handle, &va, MIB), EINVAL);
	CHECK_EQ(gdr_get_info(other, mapping.handle, &info), EINVAL);
	CHECK_EQ(gdr_get_callback_flag(other, mapping.handle, &flag), EINVAL);
	/* Copies name no session. */
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, &other, 8), 0);
	CHECK_EQ(gdr_close(other), 0);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, &other, 8), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void session_and_handle_exchanged(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_info_t info;

	CHECK(is_refused(mapping.g, (uintptr_t)mapping.g));
	CHECK(is_no_session(mapping.handle.h));
	CHECK_EQ(gdr_get_info(mapping.g, mapping.handle, &info), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* Inside records, between records, in records that were never used. */
static void addresses_inside_the_table(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	uint64_t handle = mapping.handle.h, session = (uintptr_t)mapping.g;
	gdr_info_t info;

	for (int64_t step = -4096; step <= 4096; step++) {
		const uint64_t value = handle + (uint64_t)step;

		if (value != handle && !is_refused(mapping.g, value))
			CHECK_EQ(step, 0);
		if (value != session && !is_no_session(value))
			CHECK_EQ(step, 0);
	}
	for (int i = 0; i < 1000; i++)
		CHECK(is_refused(mapping.g, handle + 128 * (next_random() % (1 << 21)) + 128));
	CHECK_EQ(gdr_get_info(mapping.g, mapping.handle, &info), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void random_values(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	const uint64_t base = mapping.handle.h;
	int accepted = 0;

	for (int i = 0; i < api_rounds(1000000); i++) {
		uint64_t value = next_random();

		/* A third of them each: anywhere, a user address, near the table. */
		if (i % 3 == 1)
			value >>= 17;
		else if (i % 3 == 2)
			value = base + (value % ((uint64_t)2 << 30)) - ((uint64_t)1 << 30);
		if (value == base || value == (uintptr_t)mapping.g)
			continue;
		accepted += !is_refused(mapping.g, value);
		accepted += gdr_close((gdr_t)(uintptr_t)value) != EINVAL;
	}
	CHECK_EQ(accepted, 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void values_at_the_edges(void)
{
	static const uint64_t values[] = {
		0, 1, 127, 128, 4096, UINT64_MAX, UINT64_MAX - 127, (uint64_t)1 << 63,
		0x7fffffffffff, 0x800000000000, 0xffff800000000000,
	};
	gdr_t g = gpu_open();

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		CHECK(is_refused(g, values[i]));
		CHECK(is_no_session(values[i]));
	}
	CHECK(is_refused(g, (uintptr_t)&g));
	CHECK(is_refused(g, (uintptr_t)is_refused));
	CHECK_EQ(gdr_close(g), 0);
}

/* A program may scribble over what stands behind its handles; only it fails. */
static void scribbled_records(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_t g = gpu_open();
	gdr_mh_t handle = { 0 };
	int swapped = dup(STDERR_FILENO);

	/* What the original's sanity program does: another descriptor in place. */
	swapped = __atomic_exchange_n((int *)g, swapped, __ATOMIC_SEQ_CST);
	CHECK(gdr_pin_buffer(g, mapping.buffer.ptr, MIB, 0, 0, &handle) > 0);
	CHECK_EQ(handle.h, 0);
	close(__atomic_exchange_n((int *)g, swapped, __ATOMIC_SEQ_CST));
	CHECK_EQ(gdr_pin_buffer(g, mapping.buffer.ptr, MIB, 0, 0, &handle), 0);
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	memset((char *)(uintptr_t)mapping.handle.h, 0xa5, 104);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, &g, 8), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
	CHECK_EQ(gdr_close(g), 0);
}

/* After a close, every handle of the session is dead, and so are its mappings. */
static void handles_after_close(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_t other = gpu_open();
	unsigned char present;

	CHECK_EQ(gdr_close(mapping.g), 0);
	CHECK(is_refused(mapping.g, mapping.handle.h));
	CHECK(is_refused(other, mapping.handle.h));
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, &other, 8), EINVAL);
	CHECK_EQ(mincore(mapping.va, 4096, &present), -1);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(gdr_close(other), 0);
	gpu_free(mapping.buffer);
}

static const struct api_case cases[] = {
	{ "stale_and_twice", stale_and_twice, NULL },
	{ "stale_after_many_others", stale_after_many_others, NULL },
	{ "sessions_of_long_ago", sessions_of_long_ago, NULL },
	{ "handles_of_another_session", handles_of_another_session, NULL },
	{ "session_and_handle_exchanged", session_and_handle_exchanged, NULL },
	{ "addresses_inside_the_table", addresses_inside_the_table, NULL },
	{ "random_values", random_values, NULL },
	{ "values_at_the_edges", values_at_the_edges, NULL },
	{ "scribbled_records", scribbled_records, NULL },
	{ "handles_after_close", handles_after_close, NULL },
};

API_MAIN(cases)
