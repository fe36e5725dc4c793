/* SPDX-License-Identifier: MIT */
/* Copies between two places in device memory: any overlap, any route. */
#include <errno.h>
#include <string.h>

#include "dma/helper_dma.h"

#define SIZE ((size_t)5 << 20)

struct field {
	struct dma_rig rig;
	struct dma_memory memory;
	/* The upper part of the same memory through a hold of its own. */
	struct gdrcopy_emu_range upper_range;
	struct gdri_dma_target *upper;
	uint8_t *shadow;
};

#define UPPER ((size_t)64 << 10)

static void open_field(struct field *field, uint64_t launch_bytes)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma_memory described;

	memset(field, 0, sizeof(*field));
	options.launch_bytes = launch_bytes;
	dma_open(&field->rig, &options);
	dma_attach(&field->rig, 0, SIZE, &field->memory);
	REQUIRE_EQ(field->rig.entry->hold(field->memory.ptr + UPPER, SIZE - UPPER,
					  &field->upper_range), 0);
	described = dma_describe(&field->memory);
	described.object = &field->upper_range;
	described.offset += UPPER;
	described.length -= UPPER;
	described.va += UPPER;
	REQUIRE_EQ(gdri_dma_attach(field->rig.dma, &described, &field->upper), 0);
	field->shadow = dma_pages(SIZE);
	dma_fill(field->shadow, SIZE, 1);
	memcpy(field->memory.cpu, field->shadow, SIZE);
}

static void close_field(struct field *field)
{
	gdri_dma_detach(field->upper);
	field->rig.entry->release(field->upper_range.memory);
	dma_free(&field->rig, &field->memory);
	dma_close(&field->rig);
}

/* The target and offset for a place; above UPPER one or the other. */
static struct gdri_dma_target *pick(struct field *field, bool upper, uint64_t *place)
{
	if (!upper || *place < UPPER)
		return field->memory.target;
	*place -= UPPER;
	return field->upper;
}

static void move(struct field *field, uint64_t to, uint64_t from, size_t size,
		 enum gdri_dma_route_wish wish, unsigned targets)
{
	struct gdri_dma_target *dst, *src;
	enum gdri_dma_route route = GDRI_DMA_PEER;
	const bool still = to == from || size == 0;

	memmove(field->shadow + to, field->shadow + from, size);
	dst = pick(field, targets & 1, &to);
	src = pick(field, targets & 2, &from);
	CHECK_EQ(gdri_dma_between(dst, to, src, from, size, wish, &route), 0);
	CHECK_EQ(route, wish == GDRI_DMA_ROUTE_STAGED && !still ? GDRI_DMA_STAGED : GDRI_DMA_LOCAL);
	REQUIRE(memcmp(field->shadow, field->memory.cpu, SIZE) == 0);
}

static void move_all_distances(struct field *field, enum gdri_dma_route_wish wish)
{
	static const size_t distances[] = { 0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 1000, 4095, 4096,
					    65535, 65536, 65537, 131072, 524288, 1048575, 1048576,
					    1048577, 1500000 };
	static const size_t sizes[] = { 1, 2, 64, 300, 4096, 65536, 65537, 200000, 1048576,
					3000000 };
	const uint64_t middle = 300000;

	for (unsigned d = 0; d < sizeof(distances) / sizeof(distances[0]); d++)
		for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			move(field, middle + distances[d], middle, sizes[s], wish, d + s);
			move(field, middle, middle + distances[d], sizes[s], wish, d + s + 1);
		}
}

static void inside_body(void)
{
	struct field field;

	open_field(&field, 0);
	move_all_distances(&field, GDRI_DMA_ROUTE_AUTO);
	move(&field, 7, 100000, 0, GDRI_DMA_ROUTE_AUTO, 0);
	close_field(&field);
}

static void short_launches_body(void)
{
	struct field field;

	open_field(&field, 100000);
	move_all_distances(&field, GDRI_DMA_ROUTE_PEER);
	close_field(&field);
}

static void staged_inside_body(void)
{
	struct field field;

	open_field(&field, 0);
	move_all_distances(&field, GDRI_DMA_ROUTE_STAGED);
	close_field(&field);
}

/* Between two devices. */
static void travel_all_sizes(enum gdri_dma_route_wish wish, int result, enum gdri_dma_route taken)
{
	static const size_t sizes[] = { 1, 63, 64, 65, 4096, 65535, 65536, 65537, 131072, 300001,
					1 << 20, 3 << 20 };
	const struct gdri_dma_options options = dma_options();
	struct dma_memory memory[2];
	struct dma_rig rig;
	uint8_t *bytes = dma_pages(SIZE);
	enum gdri_dma_route route;

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory[0]);
	dma_attach(&rig, 1, SIZE, &memory[1]);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct dma_memory *to = &memory[i % 2], *from = &memory[1 - i % 2];
		const size_t size = sizes[i];

		dma_fill(bytes, size, i);
		memcpy(from->cpu + 3, bytes, size);
		memset(to->cpu, 0xe7, size + 64);
		route = GDRI_DMA_LOCAL;
		REQUIRE_EQ(gdri_dma_between(to->target, 17, from->target, 3, size, wish, &route),
			   result);
		if (result != 0) {
			CHECK_EQ(route, GDRI_DMA_LOCAL);
			CHECK(dma_all(to->cpu, size + 64, 0xe7));
			continue;
		}
		CHECK_EQ(route, taken);
		CHECK(memcmp(to->cpu + 17, bytes, size) == 0);
		CHECK(dma_all(to->cpu, 17, 0xe7));
		CHECK(dma_all(to->cpu + 17 + size, 64 - 17, 0xe7));
	}
	dma_free(&rig, &memory[0]);
	dma_free(&rig, &memory[1]);
	dma_close(&rig);
}

static void peer_body(void)
{
	travel_all_sizes(GDRI_DMA_ROUTE_AUTO, 0, GDRI_DMA_PEER);
}

static void staged_body(void)
{
	travel_all_sizes(GDRI_DMA_ROUTE_STAGED, 0, GDRI_DMA_STAGED);
}

static void no_peer_body(void)
{
	travel_all_sizes(GDRI_DMA_ROUTE_AUTO, 0, GDRI_DMA_STAGED);
}

static void strict_body(void)
{
	travel_all_sizes(GDRI_DMA_ROUTE_PEER, -EOPNOTSUPP, GDRI_DMA_LOCAL);
}

static void inside(void)
{
	dma_run_with("", inside_body);
}

static void short_launches(void)
{
	dma_run_with("dma=small", short_launches_body);
}

static void staged_inside(void)
{
	dma_run_with("", staged_inside_body);
}

static void peer(void)
{
	dma_run_with("devices=2", peer_body);
}

static void staged(void)
{
	dma_run_with("devices=2", staged_body);
}

static void no_peer(void)
{
	dma_run_with("devices=2,no-peer", no_peer_body);
}

static void strict(void)
{
	dma_run_with("devices=2,no-peer", strict_body);
}

static const struct harness_case cases[] = {
	{ "inside", inside },
	{ "short_launches", short_launches },
	{ "staged_inside", staged_inside },
	{ "peer", peer },
	{ "staged", staged },
	{ "no_peer", no_peer },
	{ "strict", strict },
};

HARNESS_MAIN(cases)
