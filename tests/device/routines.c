/* SPDX-License-Identifier: MIT */
/*
 * Measures every copy routine of this CPU on one mapping, interleaved.
 *
 * Each routine gets a session and a mapping of the same GPU buffer; rounds
 * visit the routines in turn, so that a noisy moment hits all of them.  Prints
 * a table of medians in microseconds for each direction.
 *
 *	routines [-d GPU] [-r ROUNDS]
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_driver.h"
#include "device.h"
#include "gdrapi.h"
#include "gpu_buffer.h"
#include "stats.h"

#define BUFFER_SIZE ((size_t)1 << 20)
#define MAX_ROUTINES 10
#define MAX_ROUNDS 2001

static const char *const names[] = {
	"auto", "plain", "sse2", "sse41", "avx", "avx2", "avx512", "movdir64b",
};
#define ROUTINES (sizeof(names) / sizeof(names[0]))

static const size_t sizes[] = { 4, 8, 16, 64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
				262144, 1048576 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct lane {
	gdr_t session;
	gdr_mh_t handle;
	unsigned char *mapping;
};

static struct lane lanes[ROUTINES];
static double samples[ROUTINES][MAX_ROUNDS];

static void require(int rc, const char *call)
{
	if (rc) {
		fprintf(stderr, "%s: %s\n", call, strerror(rc));
		exit(1);
	}
}

static void open_lane(struct lane *lane, const char *routine, const struct gpu_buffer *buffer)
{
	void *mapping;

	setenv("GDRCOPY_COPY", strcmp(routine, "auto") == 0 ? "" : routine, 1);
	lane->session = gdr_open();
	if (!lane->session) {
		fprintf(stderr, "gdr_open fails; set GDRCOPY_ENABLE_LOGGING=1\n");
		exit(1);
	}
	require(gdr_pin_buffer(lane->session, buffer->ptr, BUFFER_SIZE, 0, 0, &lane->handle),
		"gdr_pin_buffer");
	require(gdr_map(lane->session, lane->handle, &mapping, BUFFER_SIZE), "gdr_map");
	lane->mapping = mapping;
}

static double time_one(const struct lane *lane, bool write, unsigned char *host, size_t size,
		       unsigned repeat)
{
	uint64_t start = clock_ns();

	for (unsigned i = 0; i < repeat; i++) {
		if (write)
			gdr_copy_to_mapping(lane->handle, lane->mapping, host, size);
		else
			gdr_copy_from_mapping(lane->handle, host, lane->mapping, size);
	}
	return (double)(clock_ns() - start) / 1000.0 / repeat;
}

static void measure_size(bool write, unsigned char *host, size_t size, unsigned rounds)
{
	/* About 20 us of writes a sample; the queue behind the CPU is drained by then. */
	unsigned repeat = write && size < 16384 ? (unsigned)(32768 / (size + 512)) + 1 : 1;

	if (size >= 262144 || (!write && size >= 16384))
		rounds = rounds / 10 + 1;
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t r = 0; r < ROUTINES; r++) {
			/* A read settles what the last one left in flight. */
			time_one(&lanes[r], false, host, 4, 1);
			samples[r][round] = time_one(&lanes[r], write, host, size, repeat);
		}
	}
	printf("%9zu", size);
	for (size_t r = 0; r < ROUTINES; r++)
		printf(" %10.3f", stats_of(samples[r], rounds).median);
	printf("\n");
}

static void measure_direction(bool write, unsigned char *host, unsigned rounds)
{
	printf("%s, median us\n%9s", write ? "gdr_copy_to_mapping" : "gdr_copy_from_mapping",
	       "bytes");
	for (size_t r = 0; r < ROUTINES; r++)
		printf(" %10s", names[r]);
	printf("\n");
	for (size_t i = 0; i < SIZES; i++)
		measure_size(write, host, sizes[i], rounds);
}

int main(int argc, char **argv)
{
	unsigned rounds = 501;
	struct gpu_buffer buffer;
	int ordinal = 0, option;
	unsigned char *host;
	struct gpu gpu;

	while ((option = getopt(argc, argv, "d:r:")) != -1) {
		if (option == 'd')
			ordinal = atoi(optarg);
		else if (option == 'r' && atoi(optarg) > 0 && atoi(optarg) <= MAX_ROUNDS)
			rounds = (unsigned)atoi(optarg);
		else
			return 2;
	}
	gpu_select(ordinal, false, &gpu);
	gpu_buffer_alloc(GPU_ALLOC_MALLOC, gpu.device, BUFFER_SIZE, &buffer);
	host = aligned_alloc(4096, BUFFER_SIZE);
	if (!host)
		return 1;
	memset(host, 0x5a, BUFFER_SIZE);
	for (size_t r = 0; r < ROUTINES; r++)
		open_lane(&lanes[r], names[r], &buffer);
	measure_direction(true, host, rounds);
	measure_direction(false, host, rounds);
	for (size_t r = 0; r < ROUTINES; r++)
		require(gdr_close(lanes[r].session), "gdr_close");
	gpu_buffer_free(&buffer);
	gpu_release(&gpu);
	free(host);
	return 0;
}
