/* SPDX-License-Identifier: MIT */
/* Version 3's copies, byte for byte, on every road. */
#include <stdlib.h>
#include <string.h>

#include "api3/helper_buffer.h"

#define SPACE (6 * MIB)
#define GUARD 64
#define POISON 0xa5

static bool all_poison(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != POISON)
			return false;
	return true;
}

struct bench {
	gdr_t g;
	CUdeviceptr ptr[2];
	uint64_t handle[2];
	unsigned char *host, *seen;
};

static void open_bench(struct bench *bench, uint32_t flags)
{
	bench->g = buffer_session();
	for (int device = 1; device >= 0; device--) {
		bench->ptr[device] = buffer_alloc(device, SPACE);
		REQUIRE_OK(gdr_pin_buffer(bench->g, bench->ptr[device], SPACE, flags, device,
					  &bench->handle[device]));
	}
	bench->host = aligned_alloc(4096, SPACE);
	bench->seen = aligned_alloc(4096, SPACE);
	REQUIRE(bench->host && bench->seen);
}

static void close_bench(struct bench *bench)
{
	CHECK_OK(gdr_unpin(bench->g, bench->handle[0]));
	CHECK_OK(gdr_unpin(bench->g, bench->handle[1]));
	CHECK_OK(gdr_close(bench->g));
	free(bench->host);
	free(bench->seen);
}

/* There and back, with untouched bytes on both sides of both. */
static void there_and_back(struct bench *bench, size_t offset, size_t host_offset, size_t size)
{
	unsigned char *host = bench->host + GUARD + host_offset;

	memset(bench->seen, POISON, size + 2 * GUARD);
	buffer_set(bench->ptr[0] + offset, bench->seen, size + 2 * GUARD);
	buffer_fill(host, size, (uint32_t)(size * 31 + offset));
	CHECK_OK(gdr_copy_from_host(bench->g, bench->handle[0], offset + GUARD, host, size));
	buffer_get(bench->seen, bench->ptr[0] + offset, size + 2 * GUARD);
	CHECK(memcmp(bench->seen + GUARD, host, size) == 0);
	CHECK(all_poison(bench->seen, GUARD) && all_poison(bench->seen + GUARD + size, GUARD));

	memset(bench->seen, POISON, size + 2 * GUARD);
	CHECK_OK(gdr_copy_to_host(bench->g, bench->handle[0], offset + GUARD, bench->seen + GUARD,
				  size));
	CHECK(memcmp(bench->seen + GUARD, host, size) == 0);
	CHECK(all_poison(bench->seen, GUARD) && all_poison(bench->seen + GUARD + size, GUARD));
}

static void host_copies(void)
{
	static const size_t edges[] = { 4096, 16384, 65536, 1 * MIB, 4 * MIB };
	struct bench bench;
	unsigned random = 7;

	open_bench(&bench, 0);
	for (size_t size = 0; size <= 300; size++) {
		random = random * 1664525u + 1013904223u;
		there_and_back(&bench, random >> 8 & 63, random >> 16 & 63, size);
	}
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (size_t around = 0; around < 3; around++)
			there_and_back(&bench, 8192 * around + around * 13, 77 * around,
				       edges[i] - 1 + around);
	close_bench(&bench);
}

static void registered_copies(void)
{
	struct bench bench;

	open_bench(&bench, 0);
	REQUIRE_OK(gdr_host_register(bench.g, bench.host, SPACE));
	REQUIRE_OK(gdr_host_register(bench.g, bench.seen, 1 * MIB));
	for (size_t size = 1; size < 5 * MIB; size = size * 3 + 1)
		there_and_back(&bench, size & 4095, size & 511, size);
	CHECK_OK(gdr_host_unregister(bench.g, bench.host));
	there_and_back(&bench, 5, 9, 2 * MIB);
	/* The other one goes with the session. */
	close_bench(&bench);
}

static void between(struct bench *bench, int src, int dst, size_t src_offset, size_t dst_offset,
		    size_t size)
{
	unsigned char *expected = malloc(SPACE);

	REQUIRE(expected != NULL);
	buffer_fill(bench->host, SPACE, 1);
	buffer_fill(bench->seen, SPACE, 2);
	buffer_set(bench->ptr[dst], bench->seen, SPACE);
	buffer_set(bench->ptr[src], bench->host, SPACE);
	memcpy(expected, src == dst ? bench->host : bench->seen, SPACE);
	if (src == dst)
		memmove(expected + dst_offset, expected + src_offset, size);
	else
		memcpy(expected + dst_offset, bench->host + src_offset, size);
	CHECK_OK(gdr_copy_to_device(bench->g, bench->handle[src], bench->handle[dst], src_offset,
				    dst_offset, size));
	buffer_get(bench->seen, bench->ptr[dst], SPACE);
	CHECK(memcmp(bench->seen, expected, SPACE) == 0);
	free(expected);
}

static void device_copies(void)
{
	struct bench bench;

	open_bench(&bench, GDR_PIN_BUFFER_UNALIGNED);
	for (int src = 0; src < 2; src++)
		for (int dst = 0; dst < 2; dst++) {
			between(&bench, src, dst, 0, 0, 0);
			between(&bench, src, dst, 4096, 8192, 4096);
			between(&bench, src, dst, 0, 3 * MIB, 3 * MIB);
			between(&bench, src, dst, 3, 100001, 70001);
			between(&bench, src, dst, 12345, 1, 200);
		}
	close_bench(&bench);
}

static void overlapping_copies(void)
{
	static const size_t distances[] = { 1, 7, 64, 4096, 70000, 1 * MIB };
	struct bench bench;

	open_bench(&bench, GDR_PIN_BUFFER_UNALIGNED);
	for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
		between(&bench, 0, 0, 1000, 1000 + distances[i], 3 * MIB);
		between(&bench, 0, 0, 1000 + distances[i], 1000, 3 * MIB);
	}
	close_bench(&bench);
}

/* Stores through a mapping, copies of both roads, in one thread: a model says what is there. */
static void program_order(void)
{
	unsigned char *model = malloc(1 * MIB), *mapping;
	struct bench bench;
	unsigned random = 99;
	void *va;

	REQUIRE(model != NULL);
	open_bench(&bench, 0);
	REQUIRE_OK(gdr_map(bench.g, bench.handle[0], &va, 1 * MIB));
	mapping = va;
	memset(model, 0, 1 * MIB);
	buffer_set(bench.ptr[0], model, 1 * MIB);
	for (unsigned round = 0; round < 3000; round++) {
		const size_t kinds[] = { 1, 8, 60, 4096, 5000, 70000 };
		size_t size, offset;

		random = random * 1664525u + 1013904223u;
		size = kinds[(random >> 9) % 6];
		offset = (random >> 5) % (256 * KIB);
		if (random >> 29 < 3) {
			buffer_fill(model + offset, size, round);
			memcpy(mapping + offset, model + offset, size);
		} else if (random >> 29 < 5) {
			buffer_fill(model + offset, size, round);
			CHECK_OK(gdr_copy_from_host(bench.g, bench.handle[0], offset,
						    model + offset, size));
		} else {
			CHECK_OK(gdr_copy_to_host(bench.g, bench.handle[0], offset, bench.seen,
						  size));
			CHECK(memcmp(bench.seen, model + offset, size) == 0);
		}
	}
	CHECK_OK(gdr_flush(bench.g));
	CHECK_OK(gdr_unmap(bench.g, bench.handle[0], va, 1 * MIB));
	close_bench(&bench);
	free(model);
}

/* Two GPUs without a link: through host memory, or an error where that is forbidden. */
static void no_way(void)
{
	struct bench bench;
	gdr_result_t result;

	open_bench(&bench, 0);
	result = gdr_copy_to_device(bench.g, bench.handle[0], bench.handle[1], 0, 0, 1 * MIB);
	CHECK_EQ(result, GDR_ERR_OP_NOT_SUPPORTED);
	CHECK_OK(gdr_copy_to_device(bench.g, bench.handle[0], bench.handle[0], 0, 2 * MIB,
				    1 * MIB));
	close_bench(&bench);
}

/* Leak checkers find it here. */
static volatile struct bench lost_for_ever;

/* The channel cannot be confirmed to be gone: what the range holds is unknown. */
static void lost_channel(void)
{
	struct bench bench;
	gdr_result_t result = GDR_SUCCESS;

	open_bench(&bench, 0);
	memset(bench.host, 1, 1 * MIB);
	for (int i = 0; i < 40 && result == GDR_SUCCESS; i++)
		result = gdr_copy_from_host(bench.g, bench.handle[0], 0, bench.host, 1 * MIB);
	CHECK_EQ(result, GDR_ERR_IO);
	/* Nothing waits for the dead, and what may still be written to is not freed. */
	gdr_close(bench.g);
	lost_for_ever = bench;
}

#define TWO "GDRCOPY_EMU=devices=2"
#define ROADS(name, run)                                                                       \
	{ name, run, TWO },                                                                    \
	{ name "_cpu", run, TWO " GDRCOPY_DMA=0" },                                            \
	{ name "_engine", run, TWO " GDRCOPY_DMA=min=0" },                                     \
	{ name "_no_engine", run, TWO ",dma=0" },                                              \
	{ name "_dying_engine", run, TWO ",dma=die:30 GDRCOPY_DMA=min=0" },                    \
	{ name "_no_window", run, TWO ",fail=map:*:12 GDRCOPY_DMA=min=0" }

static const struct api_case cases[] = {
	ROADS("host", host_copies),
	ROADS("registered", registered_copies),
	ROADS("between", device_copies),
	ROADS("overlapping", overlapping_copies),
	{ "between_staged", device_copies, TWO " GDRCOPY_DMA=min=0 GDRCOPY_ROUTE=staged" },
	{ "between_peer", device_copies, TWO " GDRCOPY_DMA=min=0 GDRCOPY_ROUTE=peer" },
	{ "between_no_peer", device_copies, TWO ",no-peer GDRCOPY_DMA=min=0" },
	{ "strict", no_way, TWO ",no-peer GDRCOPY_STRICT_P2P=1" },
	{ "strict_route", no_way, TWO ",no-peer GDRCOPY_ROUTE=peer GDRCOPY_DMA=min=0" },
	{ "strict_cpu", no_way, TWO " GDRCOPY_STRICT_P2P=1 GDRCOPY_DMA=0" },
	{ "order", program_order, TWO },
	{ "order_engine", program_order, TWO " GDRCOPY_DMA=min=0" },
	{ "order_mixed", program_order, TWO " GDRCOPY_DMA=min=4K" },
	{ "lost_channel", lost_channel, TWO ",dma=hang:9,dma=unconfirmed GDRCOPY_DMA=min=0" },
};

API_MAIN(cases)
