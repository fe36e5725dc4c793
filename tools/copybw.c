/* SPDX-License-Identifier: MIT */
/* gdrcopy_copybw: how many bytes per second the CPU writes to and reads from a GPU buffer. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/device.h"
#include "common/gpu_buffer.h"
#include "common/json.h"
#include "common/mapping.h"
#include "common/options.h"
#include "common/pattern.h"
#include "common/report.h"
#include "common/stats.h"

#define MEBIBYTE 1048576.0

/*
 * A write-combined mapping writes several GB/s from 4 KiB on, an uncached one
 * tens of MB/s (field reports of 400 times slower hosts); this lies between.
 */
#define UNCACHED_MB_PER_S 200.0
#define UNCACHED_MIN_SIZE 4096

static size_t size = 131072;
static size_t copy_size;
static size_t copy_offset;
static bool sweep;
static uint64_t write_iters = 10000;
static uint64_t read_iters = 100;

static const struct option_spec option_table[] = {
	{ 's', "size", "BYTES", "allocation, rounded up to 64 KiB (default 131072)" },
	{ 'c', "copy-size", "BYTES", "bytes of one copy (default: the whole allocation)" },
	{ 'o', "offset", "BYTES", "where copies start, a multiple of 4 (default 0)" },
	{ 'l', "sweep", NULL, "copy 1, 2, 4, ... bytes, less than the copy size" },
	{ 'w', "write-iters", "N", "copies of a write test (default 10000)" },
	{ 'r', "read-iters", "N", "copies of a read test (default 100)" },
	{ 0 }
};

static void take_option(int letter, const char *argument)
{
	if (letter == 's')
		size = options_number("-s", argument, 1, (size_t)1 << 46);
	else if (letter == 'c')
		copy_size = options_number("-c", argument, 1, (size_t)1 << 46);
	else if (letter == 'o')
		copy_offset = options_number("-o", argument, 0, (size_t)1 << 46);
	else if (letter == 'l')
		sweep = true;
	else if (letter == 'w')
		write_iters = options_number("-w", argument, 1, UINT32_MAX);
	else if (letter == 'r')
		read_iters = options_number("-r", argument, 1, UINT32_MAX);
}

static void check_options(void)
{
	if (copy_size == 0)
		copy_size = size;
	if (copy_offset % 4)
		fail_with(TOOL_USAGE, "-o %zu is not a multiple of 4", copy_offset);
	if (copy_offset >= size || copy_size > size - copy_offset)
		fail_with(TOOL_USAGE, "offset %zu + copy size %zu exceed the allocation of %zu bytes",
			  copy_offset, copy_size, size);
}

/* Everything that the tests need: two host buffers as long as the allocation. */
struct bench {
	struct gpu_buffer buffer;
	struct mapping mapping;
	char *source;
	char *scratch;
};

static double rate_of(size_t bytes, uint64_t iters, uint64_t ns)
{
	return (double)bytes * (double)iters / MEBIBYTE / ((double)(ns ? ns : 1) / 1e9);
}

static void report_rate(const char *what, const char *key, size_t bytes, uint64_t iters,
			double rate)
{
	say("%s BW: %.3fMB/s\n", what, rate);
	json_open_object(NULL);
	json_string("direction", key);
	json_uint("size", bytes);
	json_uint("offset", copy_offset);
	json_uint("iterations", iters);
	json_double("mb_per_s", rate);
	json_double("gb_per_s", rate * MEBIBYTE / 1e9);
	json_close();
}

/*
 * Writes are posted.  A read through the mapping waits for them, so that
 * CUDA's copy, which takes another road, finds them in memory.
 */
static void fetch_buffer(const struct bench *bench, char *out)
{
	uint32_t word;

	GDR(gdr_copy_from_mapping, bench->mapping.handle, &word, bench->mapping.ptr, sizeof(word));
	CU(cuMemcpyDtoH, out, bench->buffer.ptr, bench->buffer.size);
}

static double write_test(const struct bench *bench, size_t bytes)
{
	char *target = bench->mapping.ptr + copy_offset;
	uint64_t start, end;
	int error = 0;
	double rate;

	say("writing test, size=%zu offset=%zu num_iters=%" PRIu64 "\n", bytes, copy_offset,
	    write_iters);
	pattern_fill(bench->source, bench->buffer.size, (uint32_t)bytes);
	CU(cuMemsetD8, bench->buffer.ptr, 0, bench->buffer.size);
	CU(cuCtxSynchronize);

	start = clock_ns();
	for (uint64_t i = 0; i < write_iters; i++)
		error |= gdr_copy_to_mapping(bench->mapping.handle, target,
					     bench->source + copy_offset, bytes);
	end = clock_ns();

	gdr_check(error, "gdr_copy_to_mapping");
	rate = rate_of(bytes, write_iters, end - start);
	report_rate("write", "write", bytes, write_iters, rate);
	/* The buffer must hold the copied bytes, and zeroes before and after them. */
	memset(bench->source, 0, copy_offset);
	memset(bench->source + copy_offset + bytes, 0, bench->buffer.size - copy_offset - bytes);
	fetch_buffer(bench, bench->scratch);
	pattern_check(bench->scratch, bench->source, bench->buffer.size, "gdr_copy_to_mapping");
	return rate;
}

static void read_test(const struct bench *bench, size_t bytes)
{
	const char *from = bench->mapping.ptr + copy_offset;
	uint64_t start, end;
	int error = 0;

	say("reading test, size=%zu offset=%zu num_iters=%" PRIu64 "\n", bytes, copy_offset,
	    read_iters);
	pattern_fill(bench->source, bench->buffer.size, (uint32_t)bytes + 1);
	CU(cuMemcpyHtoD, bench->buffer.ptr, bench->source, bench->buffer.size);
	CU(cuCtxSynchronize);
	memset(bench->scratch, 0, bench->buffer.size);

	start = clock_ns();
	for (uint64_t i = 0; i < read_iters; i++)
		error |= gdr_copy_from_mapping(bench->mapping.handle,
					       bench->scratch + copy_offset, from, bytes);
	end = clock_ns();

	gdr_check(error, "gdr_copy_from_mapping");
	report_rate("read", "read", bytes, read_iters,
		    rate_of(bytes, read_iters, end - start));
	memset(bench->source, 0, copy_offset);
	memset(bench->source + copy_offset + bytes, 0, bench->buffer.size - copy_offset - bytes);
	pattern_check(bench->scratch, bench->source, bench->buffer.size, "gdr_copy_from_mapping");
}

/* What -l sweeps over ends below the largest power of two that the copy size holds. */
static size_t sweep_end(void)
{
	size_t end = 1;

	while (end <= copy_size / 2)
		end *= 2;
	return end;
}

static void run_tests(const struct bench *bench, const struct gpu *gpu)
{
	double rate = 0;
	size_t last = 0;

	json_open_array("results");
	for (size_t bytes = sweep ? 1 : copy_size; bytes < (sweep ? sweep_end() : copy_size + 1);
	     bytes *= 2) {
		progress("writing %zu of %zu bytes", bytes, copy_size);
		rate = write_test(bench, bytes);
		last = bytes;
	}
	for (size_t bytes = sweep ? 1 : copy_size; bytes < (sweep ? sweep_end() : copy_size + 1);
	     bytes *= 2) {
		progress("reading %zu of %zu bytes", bytes, copy_size);
		read_test(bench, bytes);
	}
	json_close();
	if (!gpu->emulated && last >= UNCACHED_MIN_SIZE && rate < UNCACHED_MB_PER_S)
		warn("writes of %zu bytes at %.0f MB/s: the mapping seems to be uncached instead of "
		     "write-combined (check PAT in the kernel's start-up log)", last, rate);
}

static void report_buffer(const struct bench *bench, size_t rounded)
{
	const struct mapping *mapping = &bench->mapping;

	say("device ptr: %" PRIx64 "\nmap_d_ptr: %p\ninfo.va: %" PRIx64 "\n",
	    bench->buffer.ptr, mapping->base, mapping->info.va);
	say("info.mapped_size: %" PRIu64 "\ninfo.page_size: %u\ninfo.mapped: %u\n",
	    mapping->info.mapped_size, mapping->info.page_size, mapping->info.mapped);
	say("info.wc_mapping: %u\npage offset: %" PRIu64 "\nuser-space pointer:%p\n",
	    mapping->info.wc_mapping, bench->buffer.ptr - mapping->info.va,
	    (void *)mapping->ptr);
	json_uint("testing_size", size);
	json_uint("rounded_size", rounded);
	json_string("alloc", gpu_alloc_name(bench->buffer.alloc));
	mapping_report(mapping);
}

/* On x86 over PCIe anything but write-combining makes writes hundreds of times slower. */
static void check_mapping_type(const struct mapping *mapping, int map_flags)
{
#if defined(__x86_64__)
	if (map_flags == GDR_MAP_FLAG_DEFAULT &&
	    mapping->info.mapping_type != GDR_MAPPING_TYPE_WC)
		warn("the mapping is not write-combined: expect slow writes over PCIe");
#else
	(void)mapping;
	(void)map_flags;
#endif
}

int main(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdrcopy_copybw",
		.summary = "Measures the rate of CPU writes to, and reads from, a GPU buffer. "
			   "MB are 2^20 bytes.",
		.options = option_table,
		.take = take_option
	};
	struct common_options common = options_parse(&spec, argc, argv);
	struct bench bench;
	struct gpu gpu;
	size_t rounded;

	check_options();
	json_open_object(NULL);
	json_string("tool", spec.name);
	gpu_select(common.device, common.bind, &gpu);

	rounded = (size + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
	say("testing size: %zu\nrounded size: %zu\ngpu alloc fn: %s\n", size, rounded,
	    gpu_alloc_name(common.alloc));
	gpu_buffer_alloc(common.alloc, gpu.device, rounded, &bench.buffer);
	mapping_open(&gpu, &bench.buffer, common.map_flags, &bench.mapping);
	report_buffer(&bench, rounded);
	check_mapping_type(&bench.mapping, common.map_flags);
	bench.source = host_buffer(rounded);
	bench.scratch = host_buffer(rounded);

	run_tests(&bench, &gpu);

	say("unmapping buffer\n");
	mapping_unmap(&bench.mapping);
	say("unpinning buffer\n");
	mapping_unpin(&bench.mapping);
	say("closing gdrdrv\n");
	session_close(&bench.mapping);
	free(bench.source);
	free(bench.scratch);
	gpu_buffer_free(&bench.buffer);
	gpu_release(&gpu);
	json_close();
	return report_finish();
}
