/* SPDX-License-Identifier: MIT */
/* Times copies from one GPU buffer to another, as the users' guide does. */
#include "pair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "common/json.h"
#include "common/report.h"
#include "common/stats.h"
#include "session.h"

/* The users' guide prints GB/s of 2^30 bytes, and so does this line alone. */
#define GUIDE_GB (1024.0 * 1024 * 1024)

struct pair {
	struct gpu src_gpu, dst_gpu;
	struct device_buffer src, dst;
	struct session session;
	struct bytes bytes;
	size_t size;
};

static void copy_pair(const struct pair *pair)
{
	GDR3(gdr_copy_to_device, pair->session.g, pair->session.src, pair->session.dst, 0, 0,
	     pair->size);
}

/* New bytes into a poisoned destination, every one compared. */
static void verify_pair(struct pair *pair)
{
	bytes_turn(&pair->bytes, pair->size);
	bytes_upload(&pair->src, pair->bytes.wanted, pair->size);
	bytes_upload(&pair->dst, pair->bytes.poison, pair->size);
	copy_pair(pair);
	bytes_check_device(&pair->bytes, &pair->dst, pair->size, "gdr_copy_to_device");
}

static void check_ordinals(const struct pair_options *options)
{
	int count = 0, largest = options->src > options->dst ? options->src : options->dst;

	cuda_driver_load();
	CU(cuDeviceGetCount, &count);
	if (count > 0 && largest >= count)
		fail("there is no GPU %d: SRC_DEV and DST_DEV take 0 to %d", largest, count - 1);
}

static void open_gpus(const struct pair_options *options, struct pair *pair)
{
	check_ordinals(options);
	gpu_select(options->src, options->bind, &pair->src_gpu);
	pair->dst_gpu = pair->src_gpu;
	if (options->dst == options->src)
		return;
	gpu_describe(options->dst, &pair->dst_gpu);
	CU(cuDevicePrimaryCtxRetain, &pair->dst_gpu.ctx, pair->dst_gpu.device);
}

static void open_pair(const struct pair_options *options, struct pair *pair)
{
	/* The flag lifts the rule of 4096, which the guide's sizes keep. */
	uint32_t flags = options->size % 4096 ? GDR_PIN_BUFFER_UNALIGNED : 0;

	pair->size = options->size;
	open_gpus(options, pair);
	device_buffer_alloc(&pair->src_gpu, pair->size, &pair->src);
	device_buffer_alloc(&pair->dst_gpu, pair->size, &pair->dst);
	session_open(NULL, NULL, &pair->session);
	session_pin(&pair->session, &pair->src, &pair->dst, flags, "SIZE");
	bytes_alloc(&pair->bytes, pair->size);
}

static void close_pair(struct pair *pair)
{
	bytes_free(&pair->bytes);
	session_close(&pair->session, pair->size);
	device_buffer_free(&pair->dst);
	device_buffer_free(&pair->src);
	if (pair->dst_gpu.device != pair->src_gpu.device)
		gpu_release(&pair->dst_gpu);
	gpu_release(&pair->src_gpu);
}

/*
 * No call tells which road a copy took.  A session that may only copy directly
 * is asked whether it can: then the other one did.
 */
static bool is_direct(const struct pair *pair)
{
	const char *route = getenv("GDRCOPY_ROUTE");
	struct session direct;
	gdr_result_t result;

	if (route && strcmp(route, "staged") == 0)
		return false;
	session_open("GDRCOPY_ROUTE", "peer", &direct);
	session_pin(&direct, &pair->src, &pair->dst, GDR_PIN_BUFFER_UNALIGNED, "SIZE");
	result = gdr_copy_to_device(direct.g, direct.src, direct.dst, 0, 0, pair->size);
	session_close(&direct, pair->size);
	if (result != GDR_ERR_OP_NOT_SUPPORTED)
		result_check(result, "gdr_copy_to_device");
	return result == GDR_SUCCESS;
}

/* Below the crossover of reads the library lets the CPU do it, where that is allowed. */
static bool is_small(const struct pair *pair)
{
	const char *route = getenv("GDRCOPY_ROUTE"), *strict = getenv("GDRCOPY_STRICT_P2P");
	gdr_info_t info = { .size = sizeof(info) };

	if (pair->src_gpu.device != pair->dst_gpu.device &&
	    ((route && strcmp(route, "peer") == 0) || (strict && strcmp(strict, "1") == 0)))
		return false;
	GDR3(gdr_get_info, pair->session.g, pair->session.src, &info);
	return pair->size < info.read_crossover;
}

static const char *find_road(const struct pair *pair)
{
	if (!session_has_engine(&pair->session) || is_small(pair))
		return "CPU, through host memory";
	if (!is_direct(pair))
		return "copy engine, through host memory";
	return pair->src_gpu.device == pair->dst_gpu.device ?
	       "copy engine, inside the GPU" : "copy engine, directly from GPU to GPU";
}

static struct stats time_pair(const struct pair *pair, uint64_t iterations)
{
	double *us = calloc(iterations, sizeof(*us));
	struct stats stats;

	if (!us)
		fail("no host memory for %" PRIu64 " samples: lower ITERS", iterations);
	for (uint64_t i = 0; i < iterations; i++) {
		uint64_t start = clock_ns();

		copy_pair(pair);
		us[i] = (double)(clock_ns() - start) / 1000;
	}
	stats = stats_of(us, iterations);
	free(us);
	return stats;
}

static void report_pair(const struct pair *pair, const struct stats *us, uint64_t iterations)
{
	double seconds = us->mean / 1e6, bytes = (double)pair->size;
	const char *road = find_road(pair);

	say("Avg latency: %.2f us, Bandwidth: %.1f GB/s\n", us->mean, bytes / GUIDE_GB / seconds);
	say("min %.2f us, p50 %.2f us, p99 %.2f us, max %.2f us; 1 GB above is 2^30 bytes\n",
	    us->min, us->median, us->p99, us->max);
	say("road: %s\n", road);
	say("bytes: all %zu right, before and after %" PRIu64 " timed copies\n", pair->size,
	    iterations);
	json_uint("src", (uint64_t)pair->src_gpu.ordinal);
	json_uint("dst", (uint64_t)pair->dst_gpu.ordinal);
	json_string("road", road);
	json_uint("bytes", pair->size);
	json_uint("samples", iterations);
	json_stats("us", us);
	json_double("bytes_per_s", bytes / seconds);
}

void pair_run(const struct pair_options *options)
{
	struct pair pair = { 0 };
	struct stats us;

	json_open_object(NULL);
	json_string("tool", "gdr_bench");
	open_pair(options, &pair);
	verify_pair(&pair);
	us = time_pair(&pair, options->iterations);
	verify_pair(&pair);
	report_pair(&pair, &us, options->iterations);
	close_pair(&pair);
	json_close();
}
