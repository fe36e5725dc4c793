/* SPDX-License-Identifier: MIT */
/* The GPU that a tool works on. */
#ifndef TOOLS_DEVICE_H
#define TOOLS_DEVICE_H

#include <stdbool.h>

#include "cuda_driver.h"

struct gpu {
	CUdevice device;
	int ordinal;
	char name[128];
	char bus_id[16];	/* 0000:3b:00 */
	bool rdma;		/* GPUDirect RDMA supported */
	bool emulated;
	int numa_node;		/* -1: unknown */
	CUcontext ctx;		/* the primary context, current in this thread */
};

/* Fills what can be told without a context. */
void gpu_describe(int ordinal, struct gpu *gpu);

/*
 * Loads CUDA, lists the GPUs, selects one and makes its primary context
 * current; says when the GPU is emulated, and warns when the thread runs on
 * another NUMA node (bind moves it).  Ends the program on failure.
 */
void gpu_select(int ordinal, bool bind, struct gpu *gpu);
void gpu_release(struct gpu *gpu);

#endif
