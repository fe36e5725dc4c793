/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for os/cuda.c: a CUDA driver of a few tables, for tests of back
 * end dmabuf.  Contexts and current contexts behave as the driver's do; every
 * call is counted and can be made to fail.
 */
#ifndef TESTS_SCRIPTED_CUDA_H
#define TESTS_SCRIPTED_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRIPTED_CUDA_DEVICES 2

struct scripted_allocation {
	uint64_t base;
	size_t size;
	int device;
	uint32_t memory_type;	/* 2: device */
	uint32_t managed;
	uint64_t pool;
};

/* What the driver is like; tests change it at will between calls. */
struct scripted_cuda {
	int load_error;		/* of gdri_os_cuda_load, negative */
	int version;
	int version_result;
	bool has_range_export;
	bool initialised;
	int export_result;	/* what every export answers instead */
	bool strict_ranges;	/* exports end at the allocation's last host page */
	bool dead;		/* after the driver's shutdown: every call answers 4 */
	int coherent[SCRIPTED_CUDA_DEVICES];
	int dma_buf[SCRIPTED_CUDA_DEVICES];
	const struct scripted_allocation *allocations;
	size_t allocation_count;

	/* What has happened. */
	int loads;		/* less unloads */
	int primary_references[SCRIPTED_CUDA_DEVICES];
	int exports;
	uint64_t export_start;	/* of the last one that was asked for */
	size_t export_size;
	unsigned long long export_flags;
};

extern struct scripted_cuda scripted_cuda;

/* A driver for CUDA 13.3 with two plain GPUs and these allocations. */
void scripted_cuda_start(const struct scripted_allocation *allocations, size_t count);

/* Makes the nth call from now on (1: the next) answer result; 0 takes that back. */
void scripted_cuda_fail(unsigned nth, int result);
unsigned scripted_cuda_calls(void);

/* The calling thread's context and the depth of its stack, without a counted call. */
void *scripted_cuda_current(int *depth);
void scripted_cuda_push(void *context);

#endif
