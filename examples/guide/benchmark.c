/* SPDX-License-Identifier: MIT */
/*
 * benchmark SRC_DEVICE DST_DEVICE SIZE ITERATIONS: the mean time of a copy.  The rate counts
 * 2^30 bytes as a GB, as gdr_bench does.
 *
 * gcc -O3 -I<prefix>/include/gdrcopy -L<prefix>/lib benchmark.c -lgdrapi -lnvidia-ml -lcuda
 */
#include <cuda.h>
#include <string.h>
#include <time.h>

#include "check.h"

static CUdeviceptr allocate(int device, size_t size, int byte)
{
	CUdeviceptr memory;
	CUcontext context;

	CUDA(cuDevicePrimaryCtxRetain(&context, device));
	CUDA(cuCtxSetCurrent(context));
	CUDA(cuMemAlloc(&memory, size));
	CUDA(cuMemsetD8(memory, (unsigned char)byte, size));
	CUDA(cuCtxSynchronize());
	return memory;
}

static double time_copies(gdr_t g, uint64_t from, uint64_t to, size_t size, int iterations)
{
	struct timespec start, end;
	double microseconds = 0;

	for (int i = 0; i < iterations; i++) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		GDR(gdr_copy_to_device(g, from, to, 0, 0, size));
		clock_gettime(CLOCK_MONOTONIC, &end);
		microseconds += (double)(end.tv_sec - start.tv_sec) * 1e6 +
				(double)(end.tv_nsec - start.tv_nsec) / 1e3;
	}
	return microseconds / iterations;
}

static int all_are(CUdeviceptr memory, size_t size, int byte)
{
	unsigned char *seen = malloc(size);
	int right = 1;

	CUDA(cuMemcpyDtoH(seen, memory, size));
	for (size_t i = 0; i < size; i++)
		right &= seen[i] == byte;
	free(seen);
	return right;
}

int main(int argc, char **argv)
{
	CUdeviceptr source, destination;
	uint64_t from, to;
	int devices[2], iterations;
	double mean;
	size_t size;
	gdr_t g;

	if (argc != 5) {
		fprintf(stderr, "usage: %s SRC_DEVICE DST_DEVICE SIZE ITERATIONS\n", argv[0]);
		return 2;
	}
	devices[0] = atoi(argv[1]);
	devices[1] = atoi(argv[2]);
	size = strtoull(argv[3], NULL, 0);
	iterations = atoi(argv[4]);

	CUDA(cuInit(0));
	source = allocate(devices[0], size, 0x3c);
	destination = allocate(devices[1], size, 0);
	GDR(gdr_open(&g));
	GDR(gdr_pin_buffer(g, source, size, GDR_PIN_BUFFER_SYNC, devices[0], &from));
	GDR(gdr_pin_buffer(g, destination, size, 0, devices[1], &to));
	mean = time_copies(g, from, to, size, iterations);
	GDR(gdr_unpin(g, from));
	GDR(gdr_unpin(g, to));
	GDR(gdr_close(g));
	if (!all_are(destination, size, 0x3c)) {
		fprintf(stderr, "the bytes are wrong\n");
		return 1;
	}
	printf("Avg latency: %.2f us, Bandwidth: %.1f GB/s\n", mean,
	       (double)size / (1 << 30) * 1e6 / mean);
	return 0;
}
