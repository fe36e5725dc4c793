/* SPDX-License-Identifier: MIT */
/* gdrcopy_apiperf: how long pin, map, get_info, unmap and unpin take. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/device.h"
#include "common/gpu_buffer.h"
#include "common/json.h"
#include "common/mapping.h"
#include "common/options.h"
#include "common/report.h"
#include "common/stats.h"

#define HISTOGRAM_BINS 10

static size_t max_size = 16777216;
static uint64_t iters = 100;
static uint64_t warmup = 10;

static const struct option_spec option_table[] = {
	{ 's', "size", "BYTES", "largest buffer; from 64 KiB, doubling (default 16777216)" },
	{ 'n', "iters", "N", "rounds that are timed for each size (default 100)" },
	{ 'w', "warmup", "N", "rounds before them (default 10)" },
	{ 0 }
};

static void take_option(int letter, const char *argument)
{
	if (letter == 's')
		max_size = options_number("-s", argument, 1, (size_t)1 << 46);
	else if (letter == 'n')
		iters = options_number("-n", argument, 1, 100000000);
	else if (letter == 'w')
		warmup = options_number("-w", argument, 0, 100000000);
}

enum step { STEP_PIN, STEP_MAP, STEP_INFO, STEP_UNMAP, STEP_UNPIN, STEP_PIN_MAP, STEP_COUNT };

static const char *const step_names[STEP_COUNT] = {
	"pin", "map", "get_info", "unmap", "unpin", "pin_and_map"
};

/* Microseconds of every round, by step. */
struct samples {
	double *us[STEP_COUNT];
};

struct bench {
	const struct gpu *gpu;
	gdr_t g;
	struct gpu_buffer buffer;
	int map_flags;
};

static double microseconds(uint64_t from, uint64_t to)
{
	return (double)(to - from) / 1000;
}

/* One round on the first size bytes of the buffer. */
static void time_round(const struct bench *bench, size_t size, struct samples *samples,
		       size_t round)
{
	uint64_t at[STEP_UNPIN + 2];
	gdr_info_t info;
	gdr_mh_t handle;
	void *va;
	int error;

	at[STEP_PIN] = clock_ns();
	error = gdr_pin_buffer(bench->g, bench->buffer.ptr, size, 0, 0, &handle);
	at[STEP_MAP] = clock_ns();
	if (error)
		pin_failed(bench->gpu, size, error);
	GDR(gdr_map_v2, bench->g, handle, &va, size, bench->map_flags);
	at[STEP_INFO] = clock_ns();
	GDR(gdr_get_info, bench->g, handle, &info);
	at[STEP_UNMAP] = clock_ns();
	GDR(gdr_unmap, bench->g, handle, va, size);
	at[STEP_UNPIN] = clock_ns();
	GDR(gdr_unpin_buffer, bench->g, handle);
	at[STEP_UNPIN + 1] = clock_ns();

	for (int step = STEP_PIN; step <= STEP_UNPIN; step++)
		samples->us[step][round] = microseconds(at[step], at[step + 1]);
	samples->us[STEP_PIN_MAP][round] = microseconds(at[STEP_PIN], at[STEP_INFO]);
}

/* The samples are sorted; equal bins from the least to the greatest. */
static void report_histogram(const double *us, size_t size)
{
	double low = us[0], width = (us[iters - 1] - us[0]) / HISTOGRAM_BINS;
	uint64_t counts[HISTOGRAM_BINS] = { 0 };

	for (uint64_t i = 0; i < iters; i++) {
		size_t bin = width > 0 ? (size_t)((us[i] - low) / width) : 0;

		counts[bin < HISTOGRAM_BINS ? bin : HISTOGRAM_BINS - 1]++;
	}
	say("Histogram of gdr_pin_buffer latency for %zu bytes\n", size);
	json_open_array("pin_histogram");
	for (int bin = 0; bin < HISTOGRAM_BINS; bin++) {
		say("[%f\t-\t%f]\t%" PRIu64 "\n", low + bin * width, low + (bin + 1) * width,
		    counts[bin]);
		json_open_object(NULL);
		json_double("low_us", low + bin * width);
		json_double("high_us", low + (bin + 1) * width);
		json_uint("count", counts[bin]);
		json_close();
	}
	json_close();
}

/* Returns the median of pin and map together. */
static double measure_size(const struct bench *bench, size_t size, struct samples *samples)
{
	struct stats stats[STEP_COUNT];

	for (uint64_t i = 0; i < warmup; i++)
		time_round(bench, size, samples, 0);
	for (uint64_t i = 0; i < iters; i++)
		time_round(bench, size, samples, i);
	for (int step = 0; step < STEP_COUNT; step++)
		stats[step] = stats_of(samples->us[step], iters);

	say("%zu\t%f\t%f\t%f\t%f\t%f\n", size, stats[STEP_PIN].mean, stats[STEP_MAP].mean,
	    stats[STEP_INFO].mean, stats[STEP_UNMAP].mean, stats[STEP_UNPIN].mean);
	json_open_object(NULL);
	json_uint("size", size);
	for (int step = 0; step < STEP_COUNT; step++) {
		char key[32];

		snprintf(key, sizeof(key), "%s_us", step_names[step]);
		json_stats(key, &stats[step]);
	}
	report_histogram(samples->us[STEP_PIN], size);
	json_close();
	return stats[STEP_PIN_MAP].median;
}

static void run_sweep(const struct bench *bench)
{
	size_t end = bench->buffer.size, first = GPU_PAGE_SIZE;
	struct samples samples;
	double median = 0;

	for (int step = 0; step < STEP_COUNT; step++) {
		samples.us[step] = malloc(iters * sizeof(double));
		if (!samples.us[step])
			fail("no host memory for %" PRIu64 " samples: lower -n", iters);
	}
	say("Size(B)\tpin.Time(us)\tmap.Time(us)\tget_info.Time(us)\tunmap.Time(us)\t"
	    "unpin.Time(us)\n");
	json_open_array("results");
	for (size_t size = first; size <= end; size *= 2) {
		double us;

		progress("pinning %zu of %zu bytes", size, end);
		us = measure_size(bench, size, &samples);
		if (size == first)
			median = us;
	}
	json_close();
	say("median of pin and map together for %zu bytes: %.3f us\n", first, median);
	for (int step = 0; step < STEP_COUNT; step++)
		free(samples.us[step]);
}

/* One mapping before the sweep, to tell its back end and type. */
static void report_mapping(struct bench *bench)
{
	struct mapping mapping;

	mapping_open(bench->gpu, &bench->buffer, bench->map_flags, &mapping);
	mapping_report(&mapping);
	mapping_close(&mapping);
}

int main(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdrcopy_apiperf",
		.summary = "Measures the time of pin, map, get_info, unmap and unpin. The rows "
			   "hold means.",
		.options = option_table,
		.take = take_option
	};
	struct common_options common = options_parse(&spec, argc, argv);
	struct bench bench = { .map_flags = common.map_flags };
	struct gpu gpu;

	json_open_object(NULL);
	json_string("tool", spec.name);
	gpu_select(common.device, common.bind, &gpu);
	bench.gpu = &gpu;
	gpu_buffer_alloc(common.alloc, gpu.device, max_size, &bench.buffer);
	say("device ptr: 0x%" PRIx64 "\nallocated size: %zu\n", bench.buffer.ptr,
	    bench.buffer.size);
	json_uint("iterations", iters);
	json_uint("warmup", warmup);
	json_string("alloc", gpu_alloc_name(common.alloc));
	report_mapping(&bench);
	bench.g = session_open();
	run_sweep(&bench);
	GDR(gdr_close, bench.g);
	gpu_buffer_free(&bench.buffer);
	gpu_release(&gpu);
	json_close();
	return report_finish();
}
