/* SPDX-License-Identifier: MIT */
/* gdrcopy_copylat: how long one copy of each size takes, by the CPU and by CUDA. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cache.h"
#include "common/device.h"
#include "common/gpu_buffer.h"
#include "common/json.h"
#include "common/mapping.h"
#include "common/options.h"
#include "common/pattern.h"
#include "common/report.h"
#include "common/stats.h"

/*
 * A clock read costs as much as a small copy, so a sample is the mean of one
 * bucket of copies, and the median and the least are taken over the buckets.
 */
#define BUCKETS 100

#define MAX_SIZES 64

enum { OPTION_PINNED = 256 };

static size_t max_size = 16777216;
static uint64_t write_iters = 10000;
static uint64_t read_iters = 100;
static bool with_cuda;
static bool with_pinned;
static bool cold_cache;

static const struct option_spec option_table[] = {
	{ 's', "size", "BYTES", "largest copy; from 1, doubling (default 16777216)" },
	{ 'w', "write-iters", "N", "writes of each size, a multiple of 100 (default 10000)" },
	{ 'r', "read-iters", "N", "reads of each size, a multiple of 100 (default 100)" },
	{ 'c', "cuda", NULL, "also time cuMemcpy, and show from which size on it wins" },
	{ OPTION_PINNED, "pinned", NULL, "as -c, and with page-locked host memory too" },
	{ 'C', "cold-cache", NULL, "evict the caches before each copy (cached mappings only)" },
	{ 0 }
};

static void take_option(int letter, const char *argument)
{
	if (letter == 's')
		max_size = options_number("-s", argument, 1, (size_t)1 << 46);
	else if (letter == 'w')
		write_iters = options_number("-w", argument, 1, UINT32_MAX);
	else if (letter == 'r')
		read_iters = options_number("-r", argument, 1, UINT32_MAX);
	else if (letter == 'c')
		with_cuda = true;
	else if (letter == OPTION_PINNED)
		with_cuda = with_pinned = true;
	else if (letter == 'C')
		cold_cache = true;
}

static void round_iters(const char *option, uint64_t *iters)
{
	uint64_t rounded = (*iters + BUCKETS - 1) / BUCKETS * BUCKETS;

	if (rounded != *iters)
		warn("%s %" PRIu64 " is rounded up to %" PRIu64 ", a multiple of %d", option,
		     *iters, rounded, BUCKETS);
	*iters = rounded;
}

struct bench {
	struct gpu_buffer buffer;
	struct mapping mapping;
	char *pageable;
	char *pinned;		/* NULL without --pinned */
	char *wanted;		/* what a copy must leave behind */
};

/* One way of moving size bytes between host and the buffer. */
struct road {
	const char *name;
	bool to_gpu;
	bool cuda;
	bool pinned;
	int (*copy)(const struct bench *bench, char *host, size_t size);
};

static int copy_to_mapping(const struct bench *bench, char *host, size_t size)
{
	return gdr_copy_to_mapping(bench->mapping.handle, bench->mapping.ptr, host, size);
}

static int copy_from_mapping(const struct bench *bench, char *host, size_t size)
{
	return gdr_copy_from_mapping(bench->mapping.handle, host, bench->mapping.ptr, size);
}

static int copy_cuda_htod(const struct bench *bench, char *host, size_t size)
{
	return CU_TRY(cuMemcpyHtoD, bench->buffer.ptr, host, size);
}

static int copy_cuda_dtoh(const struct bench *bench, char *host, size_t size)
{
	return CU_TRY(cuMemcpyDtoH, host, bench->buffer.ptr, size);
}

static const struct road write_roads[] = {
	{ "gdr_copy_to_mapping", true, false, false, copy_to_mapping },
	{ "cuMemcpy_H2D", true, true, false, copy_cuda_htod },
	{ "cuMemcpy_H2D_pinned", true, true, true, copy_cuda_htod }
};

static const struct road read_roads[] = {
	{ "gdr_copy_from_mapping", false, false, false, copy_from_mapping },
	{ "cuMemcpy_D2H", false, true, false, copy_cuda_dtoh },
	{ "cuMemcpy_D2H_pinned", false, true, true, copy_cuda_dtoh }
};

#define ROAD_COUNT 3

static void check_result(const struct road *road, int result)
{
	if (road->cuda)
		cuda_driver_check(result, road->to_gpu ? "cuMemcpyHtoD" : "cuMemcpyDtoH",
				  __FILE__, __LINE__);
	else
		gdr_check(result, road->name);
}

/* Microseconds of one copy, as the mean over a bucket. */
static double time_bucket(const struct bench *bench, const struct road *road, char *host,
			  size_t size, uint64_t copies)
{
	uint64_t start, total = 0;
	int result = 0;

	if (!cold_cache) {
		start = clock_ns();
		for (uint64_t i = 0; i < copies; i++)
			result |= road->copy(bench, host, size);
		total = clock_ns() - start;
	}
	for (uint64_t i = 0; cold_cache && i < copies; i++) {
		cache_evict(bench->mapping.ptr, size);
		cache_evict(host, size);
		start = clock_ns();
		result |= road->copy(bench, host, size);
		total += clock_ns() - start;
	}
	check_result(road, result);
	return (double)total / 1000 / (double)copies;
}

/* Before the timed part: the source holds new bytes and the destination zeroes. */
static void prepare_bytes(const struct bench *bench, const struct road *road, char *host,
			  size_t size, uint32_t seed)
{
	pattern_fill(bench->wanted, size, seed);
	if (road->to_gpu) {
		memcpy(host, bench->wanted, size);
		CU(cuMemsetD8, bench->buffer.ptr, 0, size);
	} else {
		memset(host, 0, size);
		CU(cuMemcpyHtoD, bench->buffer.ptr, bench->wanted, size);
	}
	CU(cuCtxSynchronize);
}

static void check_bytes(const struct bench *bench, const struct road *road, char *host, size_t size)
{
	char byte;

	if (road->to_gpu) {
		/* The read waits for posted writes, before CUDA looks at the memory. */
		GDR(gdr_copy_from_mapping, bench->mapping.handle, &byte, bench->mapping.ptr, 1);
		CU(cuMemcpyDtoH, host, bench->buffer.ptr, size);
	}
	pattern_check(host, bench->wanted, size, road->name);
}

static double measure_road(const struct bench *bench, const struct road *road, size_t size,
			   uint32_t seed)
{
	uint64_t iters = road->to_gpu ? write_iters : read_iters;
	char *host = road->pinned ? bench->pinned : bench->pageable;
	double samples[BUCKETS];
	struct stats stats;

	prepare_bytes(bench, road, host, size, seed);
	for (int i = 0; i < BUCKETS; i++)
		samples[i] = time_bucket(bench, road, host, size, iters / BUCKETS);
	check_bytes(bench, road, host, size);

	stats = stats_of(samples, BUCKETS);
	say("%s \t %8zu \t %11.4f \t %11.4f\n", road->name, size, stats.median, stats.min);
	json_open_object(NULL);
	json_string("test", road->name);
	json_uint("size", size);
	json_stats("us", &stats);
	json_close();
	return stats.median;
}

/*
 * The least size from which on CUDA's copy is the faster one up to the end of
 * the sweep; a single lucky size in the middle does not count.
 */
static void report_crossover(const char *name, const double *gdr, const double *cuda_us, int count)
{
	int from = count;

	while (from > 0 && cuda_us[from - 1] < gdr[from - 1])
		from--;
	json_open_object(NULL);
	json_string("test", name);
	if (from == count) {
		say("crossover: %s is never the faster one up to %zu bytes\n", name,
		    (size_t)1 << (count - 1));
		json_string("faster_from_size", NULL);
	} else {
		say("crossover: %s is the faster one from %zu bytes on\n", name, (size_t)1 << from);
		json_uint("faster_from_size", (uint64_t)1 << from);
	}
	json_close();
}

/* All sizes of one direction, road by road. */
static void run_direction(const struct bench *bench, const struct road *roads, const char *key)
{
	int used = with_pinned ? 3 : with_cuda ? 2 : 1, count = 0;
	double medians[ROAD_COUNT][MAX_SIZES];

	say("%s num iters for each size: %" PRIu64 "\n", roads[0].name,
	    roads[0].to_gpu ? write_iters : read_iters);
	say("Test \t\t\t Size(B) \t Median Time(us) \t Min. Time(us)\n");
	json_open_object(key);
	json_uint("iterations", roads[0].to_gpu ? write_iters : read_iters);
	json_open_array("rows");
	for (int road = 0; road < used; road++) {
		count = 0;
		for (size_t size = 1; size <= max_size; size *= 2, count++) {
			progress("%s, %zu of %zu bytes", roads[road].name, size, max_size);
			medians[road][count] =
				measure_road(bench, &roads[road], size, (uint32_t)count + 1);
		}
	}
	json_close();
	json_open_array("crossover");
	for (int road = 1; road < used; road++)
		report_crossover(roads[road].name, medians[0], medians[road], count);
	json_close();
	json_close();
	say("\n");
}

static void check_cold_cache(const struct mapping *mapping)
{
	if (!cold_cache)
		return;
	if (mapping->info.mapping_type != GDR_MAPPING_TYPE_CACHING)
		fail("-C needs a cached mapping, and this one is not: GPUs on PCIe have none");
	if (!cache_can_evict())
		fail("-C is not possible on this CPU: it cannot evict lines from user space");
}

static void open_bench(const struct common_options *common, const struct gpu *gpu,
		       struct bench *bench)
{
	gpu_buffer_alloc(common->alloc, gpu->device, max_size, &bench->buffer);
	mapping_open(gpu, &bench->buffer, common->map_flags, &bench->mapping);
	check_cold_cache(&bench->mapping);
	bench->pageable = host_buffer(max_size);
	bench->wanted = host_buffer(max_size);
	if (with_pinned)
		CU(cuMemHostAlloc, (void **)&bench->pinned, max_size, CU_MEMHOSTALLOC_PORTABLE);
}

static void close_bench(struct bench *bench)
{
	if (bench->pinned)
		CU(cuMemFreeHost, bench->pinned);
	free(bench->pageable);
	free(bench->wanted);
	mapping_close(&bench->mapping);
	gpu_buffer_free(&bench->buffer);
}

int main(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdrcopy_copylat",
		.summary = "Measures the time of single copies to and from a GPU buffer.",
		.options = option_table,
		.take = take_option
	};
	struct common_options common = options_parse(&spec, argc, argv);
	struct bench bench = { 0 };
	struct gpu gpu;

	round_iters("-w", &write_iters);
	round_iters("-r", &read_iters);
	json_open_object(NULL);
	json_string("tool", spec.name);
	gpu_select(common.device, common.bind, &gpu);
	open_bench(&common, &gpu, &bench);
	say("device ptr: 0x%" PRIx64 "\nallocated size: %zu\nuse cold cache: %s\n",
	    bench.buffer.ptr, bench.buffer.size, cold_cache ? "yes" : "no");
	json_string("alloc", gpu_alloc_name(common.alloc));
	json_uint("allocated_size", bench.buffer.size);
	json_bool("cold_cache", cold_cache);
	mapping_report(&bench.mapping);
	say("\n");

	run_direction(&bench, write_roads, "write");
	run_direction(&bench, read_roads, "read");

	close_bench(&bench);
	gpu_release(&gpu);
	json_close();
	return report_finish();
}
