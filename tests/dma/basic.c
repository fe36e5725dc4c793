/* SPDX-License-Identifier: MIT */
/* Copies of every size and alignment, both ways, registered, pageable and partly registered. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dma/helper_dma.h"

#define SPACE ((size_t)9 << 20)
#define HOST_GUARD 64

struct bench {
	struct dma_rig rig;
	struct dma_memory memory;
	uint8_t *host;		/* SPACE bytes, in pages */
	uint8_t *expected;
};

static void open_with(struct bench *bench, const struct gdri_dma_options *options)
{
	dma_open(&bench->rig, options);
	dma_attach(&bench->rig, 0, SPACE, &bench->memory);
	bench->host = dma_pages(SPACE);
	bench->expected = dma_pages(SPACE);
}

static void open_bench(struct bench *bench)
{
	const struct gdri_dma_options options = dma_options();

	open_with(bench, &options);
}

static void close_bench(struct bench *bench)
{
	dma_free(&bench->rig, &bench->memory);
	dma_close(&bench->rig);
}

/* One copy to the device and one back, with untouched bytes on both sides. */
static void copy_both_ways(struct bench *bench, size_t device_offset, size_t host_offset,
			   size_t size)
{
	uint8_t *host = bench->host + HOST_GUARD + host_offset;
	uint8_t *device = bench->memory.cpu + HOST_GUARD + device_offset;

	dma_fill(host, size, (uint32_t)(size * 7 + device_offset));
	memcpy(bench->expected, host, size);
	memset(device - HOST_GUARD, 0xd5, size + 2 * HOST_GUARD);
	CHECK_EQ(gdri_dma_to_device(bench->memory.target, HOST_GUARD + device_offset, host, size),
		 0);
	CHECK(memcmp(device, bench->expected, size) == 0);
	CHECK(dma_all(device - HOST_GUARD, HOST_GUARD, 0xd5));
	CHECK(dma_all(device + size, HOST_GUARD, 0xd5));

	memset(host - HOST_GUARD, 0x3c, size + 2 * HOST_GUARD);
	CHECK_EQ(gdri_dma_from_device(bench->memory.target, HOST_GUARD + device_offset, host, size),
		 0);
	CHECK(memcmp(host, bench->expected, size) == 0);
	CHECK(dma_all(host - HOST_GUARD, HOST_GUARD, 0x3c));
	CHECK(dma_all(host + size, HOST_GUARD, 0x3c));
}

static void copy_all_sizes(struct bench *bench)
{
	static const size_t edges[] = { 512, 4096, 8192, 12288, 16384, 65536, 131072, 262144,
					1 << 20, 4 << 20 };
	uint32_t random = 12345;

	copy_both_ways(bench, 0, 0, 0);
	for (size_t size = 1; size <= 300; size++)
		copy_both_ways(bench, dma_random(&random) % 64, dma_random(&random) % 64, size);
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (int around = -1; around <= 1; around++)
			copy_both_ways(bench, dma_random(&random) % 5000,
				       dma_random(&random) % 5000, edges[i] + (size_t)around);
}

static void pageable_body(void)
{
	struct bench bench;

	open_bench(&bench);
	copy_all_sizes(&bench);
	close_bench(&bench);
}

/* Reads that pin what they write to, window by window. */
static void windows_body(void)
{
	struct gdri_dma_options options = dma_options();
	struct bench bench;

	options.pin_from = 1;
	options.pin_window = 16384;
	open_with(&bench, &options);
	copy_all_sizes(&bench);
	close_bench(&bench);
}

static void windows(void)
{
	dma_run_with("", windows_body);
}

/* The driver pins the first windows and then no more: bounce memory takes the rest. */
static void unpinnable(void)
{
	for (unsigned n = 2; n <= 6; n++) {
		char settings[64];

		snprintf(settings, sizeof(settings), "fail=dma-host:%u,fail=dma-host:%u", n, n + 3);
		dma_run_with(settings, windows_body);
	}
}

static void registered_body(void)
{
	struct bench bench;

	open_bench(&bench);
	CHECK(!gdri_dma_is_registered(bench.rig.dma, bench.host, 1));
	REQUIRE_EQ(gdri_dma_register(bench.rig.dma, bench.host, SPACE), 0);
	CHECK(gdri_dma_is_registered(bench.rig.dma, bench.host, SPACE));
	CHECK(!gdri_dma_is_registered(bench.rig.dma, bench.host, SPACE + 1));
	copy_all_sizes(&bench);
	CHECK_EQ(gdri_dma_unregister(bench.rig.dma, bench.host), 0);
	CHECK(!gdri_dma_is_registered(bench.rig.dma, bench.host, 1));
	close_bench(&bench);
}

/* Both ends of the copies lie outside; a copy inside goes directly. */
static void partly_body(void)
{
	struct bench bench;

	open_bench(&bench);
	REQUIRE_EQ(gdri_dma_register(bench.rig.dma, bench.host + 8192, 16384), 0);
	REQUIRE_EQ(gdri_dma_register(bench.rig.dma, bench.host + 32768, 4096), 0);
	copy_both_ways(&bench, 5, 0, 100000);
	copy_both_ways(&bench, 5, 8192 - HOST_GUARD - 1, 16384);
	copy_both_ways(&bench, 5, 8192 - HOST_GUARD, 16384);
	copy_both_ways(&bench, 5, 8192 - HOST_GUARD, 16385);
	copy_both_ways(&bench, 5, 20000, 20000);
	CHECK_EQ(gdri_dma_unregister(bench.rig.dma, bench.host + 32768), 0);
	copy_both_ways(&bench, 5, 20000, 20000);
	/* The other one goes with the engine. */
	close_bench(&bench);
}

static void ranges_body(void)
{
	struct bench bench;
	struct gdri_dma *dma;
	uint8_t *host;

	open_bench(&bench);
	dma = bench.rig.dma;
	host = bench.host;
	CHECK_EQ(gdri_dma_register(dma, NULL, 4096), -EINVAL);
	CHECK_EQ(gdri_dma_register(dma, host, 0), -EINVAL);
	CHECK_EQ(gdri_dma_register(dma, host + 100, SIZE_MAX - 50), -EINVAL);
	CHECK_EQ(gdri_dma_unregister(dma, host), -ENOENT);
	CHECK_EQ(gdri_dma_unregister(dma, NULL), -ENOENT);
	/* Pages around what was asked for. */
	REQUIRE_EQ(gdri_dma_register(dma, host + 4096 + 100, 10), 0);
	CHECK(gdri_dma_is_registered(dma, host + 4096, 4096));
	CHECK(!gdri_dma_is_registered(dma, host + 4095, 2));
	CHECK_EQ(gdri_dma_register(dma, host + 4096 + 200, 10), -EEXIST);
	CHECK_EQ(gdri_dma_register(dma, host, 4097), -EEXIST);
	CHECK_EQ(gdri_dma_register(dma, host, 1 << 20), -EEXIST);
	CHECK_EQ(gdri_dma_unregister(dma, host + 4096), -ENOENT);
	/* Neighbours are two ranges, in any order of registering. */
	for (unsigned i = 0; i < 64; i++)
		REQUIRE_EQ(gdri_dma_register(dma, host + 65536 + (i * 37 % 64) * 4096, 4096), 0);
	CHECK(gdri_dma_is_registered(dma, host + 65536, 4096));
	CHECK(!gdri_dma_is_registered(dma, host + 65536, 4097));
	for (unsigned i = 0; i < 64; i++)
		CHECK_EQ(gdri_dma_unregister(dma, host + 65536 + (i * 11 % 64) * 4096), 0);
	CHECK(!gdri_dma_is_registered(dma, host + 65536, 1));
	CHECK_EQ(gdri_dma_unregister(dma, host + 4096 + 100), 0);
	close_bench(&bench);
}

/* Registered before any device is known, and between devices. */
static void later_devices_body(void)
{
	const struct gdri_dma_options options = dma_options();
	struct dma_rig rig;
	struct dma_memory memory[2];
	uint8_t *host = dma_pages(SPACE);
	enum gdri_dma_route route;

	dma_open(&rig, &options);
	REQUIRE_EQ(gdri_dma_register(rig.dma, host, 65536), 0);
	for (int device = 0; device < 2; device++) {
		dma_attach(&rig, device, SPACE, &memory[device]);
		dma_fill(host, 65536, 9 + (uint32_t)device);
		CHECK_EQ(gdri_dma_to_device(memory[device].target, 1, host, 65535), 0);
		CHECK(memcmp(memory[device].cpu + 1, host, 65535) == 0);
	}
	CHECK_EQ(gdri_dma_unregister(rig.dma, host), 0);
	CHECK_EQ(gdri_dma_between(memory[0].target, 0, memory[1].target, 1, 65535,
				  GDRI_DMA_ROUTE_AUTO, &route), 0);
	CHECK(memcmp(memory[0].cpu, host, 65535) == 0);
	dma_free(&rig, &memory[0]);
	dma_free(&rig, &memory[1]);
	dma_close(&rig);
}

/* Every engine alone, and a wrong one. */
static void engines_body(void)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma_memory described;
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SPACE);
	char text[128], want[32];

	for (int engine = 0; engine < 6; engine++) {
		options.engine = engine;
		dma_open(&rig, &options);
		dma_alloc(&rig, 0, SPACE, &memory);
		described = dma_describe(&memory);
		if (engine == 5) {
			CHECK_EQ(gdri_dma_attach(rig.dma, &described, &memory.target), -EOPNOTSUPP);
			CHECK_EQ(gdri_dma_attach(rig.dma, &described, &memory.target), -EOPNOTSUPP);
			CHECK(memory.target == NULL);
		} else {
			REQUIRE_EQ(gdri_dma_attach(rig.dma, &described, &memory.target), 0);
			gdri_dma_describe(memory.target, text, sizeof(text));
			snprintf(want, sizeof(want), "COPY%d to the device, COPY%d", engine,
				 engine);
			CHECK(strncmp(text, want, strlen(want)) == 0);
			dma_fill(host, SPACE, (uint32_t)engine);
			CHECK_EQ(gdri_dma_to_device(memory.target, 0, host, SPACE), 0);
			CHECK(memcmp(host, memory.cpu, SPACE) == 0);
		}
		dma_free(&rig, &memory);
		dma_close(&rig);
	}
}

static void copy_after_count(void *dst, const void *src, size_t size)
{
	memcpy(dst, src, size);
}

static void calibration_body(void)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma_calibration found;
	struct dma_memory memory;
	struct dma_rig rig;

	dma_open(&rig, &options);
	dma_attach(&rig, 0, SPACE, &memory);
	gdri_dma_get_calibration(memory.target, &found);
	/* The usual figures: reads pay from a few KiB on, writes from a few hundred. */
	CHECK(found.crossover[1][0] >= 2048 && found.crossover[1][0] <= 8192);
	CHECK(found.crossover[1][1] <= found.crossover[1][0]);
	CHECK(found.crossover[0][1] >= 32768 && found.crossover[0][1] <= 262144);
	CHECK(found.crossover[0][0] > found.crossover[0][1]);
	dma_free(&rig, &memory);
	dma_close(&rig);

	options.calibrate = true;
	options.to_mapping = options.from_mapping = copy_after_count;
	dma_open(&rig, &options);
	dma_attach(&rig, 0, SPACE, &memory);
	gdri_dma_get_calibration(memory.target, &found);
	CHECK(found.to_device_ns > 0 && found.to_device_ns < 1000000000);
	CHECK(found.from_device_ns > 0 && found.from_device_ns < 1000000000);
	CHECK(found.to_device_rate > 0 && found.from_device_rate > 0);
	CHECK(found.bounce_to_rate > 0 && found.bounce_from_rate > 0);
	/* A CPU that reaches this memory as fast as its own never needs an engine early. */
	CHECK(found.crossover[1][1] > 64);
	printf("# model: to %llu ns, from %llu ns\n", (unsigned long long)found.to_device_ns,
	       (unsigned long long)found.from_device_ns);
	dma_free(&rig, &memory);
	dma_close(&rig);
}

static void options_body(void)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma *dma = NULL;
	struct dma_rig rig;

	dma_open(&rig, &options);
	options.chunk_bytes = 1000;
	CHECK_EQ(gdri_dma_create(&rig.port.base, &options, &dma), -EINVAL);
	options.chunk_bytes = 2 << 20;
	CHECK_EQ(gdri_dma_create(&rig.port.base, &options, &dma), -EINVAL);
	options.chunk_bytes = 4096;
	CHECK_EQ(gdri_dma_create(&rig.port.base, &options, &dma), -EINVAL);
	options.chunk_bytes = 0;
	options.launch_bytes = (uint64_t)1 << 33;
	CHECK_EQ(gdri_dma_create(&rig.port.base, &options, &dma), -EINVAL);
	CHECK(dma == NULL);
	dma_close(&rig);
}

static void pageable(void)
{
	dma_run_with("", pageable_body);
}

static void pageable_small_rings(void)
{
	dma_run_with("dma=small", pageable_body);
}

static void registered(void)
{
	dma_run_with("", registered_body);
}

static void partly_registered(void)
{
	dma_run_with("", partly_body);
}

static void ranges(void)
{
	dma_run_with("", ranges_body);
}

static void later_devices(void)
{
	dma_run_with("devices=2", later_devices_body);
}

static void engines(void)
{
	dma_run_with("", engines_body);
}

static void calibration(void)
{
	dma_run_with("", calibration_body);
}

static void options(void)
{
	dma_run_with("", options_body);
}

static const struct harness_case cases[] = {
	{ "pageable", pageable },
	{ "pageable_small_rings", pageable_small_rings },
	{ "windows", windows },
	{ "unpinnable", unpinnable },
	{ "registered", registered },
	{ "partly_registered", partly_registered },
	{ "ranges", ranges },
	{ "later_devices", later_devices },
	{ "engines", engines },
	{ "calibration", calibration },
	{ "options", options },
};

HARNESS_MAIN(cases)
