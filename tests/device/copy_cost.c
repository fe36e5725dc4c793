/* SPDX-License-Identifier: MIT */
/*
 * What the call around a 4-byte copy costs, beyond the store itself.
 *
 * Compares gdr_copy_to_mapping with a store and a fence written by hand, alone
 * and between locked instructions (the obvious way to count copies), once
 * after the bus has gone quiet and once in a row.  This measurement is why
 * core/gate.h counts copies as it does.  Prints nanoseconds.
 *
 *	copy_cost [-d GPU]
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copy/cpu/fence.h"
#include "cuda_driver.h"
#include "device.h"
#include "gdrapi.h"
#include "gpu_buffer.h"
#include "stats.h"

#define ROUNDS 4001
#define IN_A_ROW 64

enum way { WAY_NOTHING, WAY_STORE, WAY_LOCKED, WAY_GDR, WAY_COUNT };

static const char *const names[WAY_COUNT] = {
	[WAY_NOTHING] = "nothing (the clock)",
	[WAY_STORE] = "store and fence",
	[WAY_LOCKED] = "the same between two locked instructions",
	[WAY_GDR] = "gdr_copy_to_mapping",
};

static _Atomic long counter;
static double samples[WAY_COUNT][ROUNDS];

static inline void store_and_fence(void *mapping, uint32_t value)
{
	*(volatile uint32_t *)mapping = value;
	gdri_fence_stores_posted();
}

static inline void write_once(enum way way, gdr_mh_t handle, void *mapping, uint32_t value)
{
	switch (way) {
	case WAY_STORE:
		store_and_fence(mapping, value);
		break;
	case WAY_LOCKED:
		atomic_fetch_add(&counter, 1);
		store_and_fence(mapping, value);
		atomic_fetch_sub(&counter, 1);
		break;
	case WAY_GDR:
		gdr_copy_to_mapping(handle, mapping, &value, sizeof(value));
		break;
	default:
		break;
	}
}

static double time_writes(enum way way, gdr_mh_t handle, void *mapping, unsigned count)
{
	uint32_t settled;
	uint64_t start;

	/* A read waits for every write that is still on its way. */
	gdr_copy_from_mapping(handle, &settled, mapping, sizeof(settled));
	start = clock_ns();
	for (unsigned i = 0; i < count; i++)
		write_once(way, handle, mapping, settled + i);
	return (double)(clock_ns() - start) / count;
}

static void measure(const char *title, gdr_mh_t handle, void *mapping, unsigned count)
{
	printf("%s, ns a write\n%-44s %8s %8s %8s\n", title, "", "median", "min", "p99");
	for (unsigned round = 0; round < ROUNDS; round++)
		for (int way = 0; way < WAY_COUNT; way++)
			samples[way][round] = time_writes((enum way)way, handle, mapping, count);
	for (int way = 0; way < WAY_COUNT; way++) {
		struct stats stats = stats_of(samples[way], ROUNDS);

		printf("%-44s %8.1f %8.1f %8.1f\n", names[way], stats.median, stats.min,
		       stats.p99);
	}
}

int main(int argc, char **argv)
{
	struct gpu_buffer buffer;
	int ordinal = 0, option;
	gdr_mh_t handle;
	struct gpu gpu;
	void *mapping;
	gdr_t session;

	while ((option = getopt(argc, argv, "d:")) != -1) {
		if (option != 'd')
			return 2;
		ordinal = atoi(optarg);
	}
	gpu_select(ordinal, false, &gpu);
	gpu_buffer_alloc(GPU_ALLOC_MALLOC, gpu.device, GPU_PAGE_SIZE, &buffer);
	session = gdr_open();
	if (!session || gdr_pin_buffer(session, buffer.ptr, GPU_PAGE_SIZE, 0, 0, &handle) ||
	    gdr_map(session, handle, &mapping, GPU_PAGE_SIZE)) {
		fprintf(stderr, "no mapping; set GDRCOPY_ENABLE_LOGGING=1\n");
		return 1;
	}
	measure("one write after the bus went quiet", handle, mapping, 1);
	measure("64 writes in a row", handle, mapping, IN_A_ROW);
	gdr_close(session);
	gpu_buffer_free(&buffer);
	gpu_release(&gpu);
	return 0;
}
