/* SPDX-License-Identifier: MIT */
/* One measurement of the round trip between a CPU thread and a GPU kernel. */
#ifndef TOOLS_PPLAT_PINGPONG_H
#define TOOLS_PPLAT_PINGPONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/device.h"
#include "../common/gpu_buffer.h"
#include "../common/mapping.h"

/* Where a flag or the payload lives; the order of the options' choices. */
enum place { PLACE_GPUMEM, PLACE_HOSTMEM };

struct pingpong_options {
	uint32_t rounds;
	unsigned timeout_s;	/* 0: wait for ever */
	size_t payload;		/* bytes, a multiple of 4 */
	unsigned blocks, threads;
	int direction;		/* PPLAT_CPU_TO_GPU or PPLAT_GPU_TO_CPU */
	enum place gpu_flag, cpu_flag, data;
	enum gpu_alloc alloc;
	int map_flags;
};

/* One piece of memory that both sides reach. */
struct shared_memory {
	enum place place;
	char *cpu;		/* host memory, or the mapping */
	CUdeviceptr gpu;
};

struct pingpong {
	const struct pingpong_options *options;
	const struct gpu *gpu;
	struct gpu_buffer buffer;
	struct mapping mapping;
	char *host;		/* page-locked, mapped into the GPU */
	struct shared_memory gpu_flag, cpu_flag, data;
	CUdeviceptr scratch;
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	uint32_t *message;	/* the payload as the CPU sends or receives it */
};

void pingpong_open(struct pingpong *pp, const struct gpu *gpu,
		   const struct pingpong_options *options);

/*
 * Runs the kernel and fills one time in microseconds for each round.  Ends the
 * program when the GPU does not answer in time or the payload is wrong.
 */
void pingpong_run(struct pingpong *pp, double *us);

void pingpong_close(struct pingpong *pp);

#endif
