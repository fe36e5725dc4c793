/* SPDX-License-Identifier: MIT */
/* What the examples need of CUDA: GPU 0, and memory on it that can be mapped. */
#ifndef EXAMPLES_GPU_H
#define EXAMPLES_GPU_H

#include <cuda.h>
#include <gdrapi.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program when a CUDA call fails. */
#define CU(call)                                                                           \
	do {                                                                               \
		CUresult cu_result = (call);                                               \
		if (cu_result != CUDA_SUCCESS) {                                           \
			fprintf(stderr, "%s:%d: %s: CUDA error %d\n", __FILE__, __LINE__, \
				#call, (int)cu_result);                                    \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

struct gpu_memory {
	CUdeviceptr block;	/* for cuMemFree */
	CUdeviceptr start;	/* the first GPU page boundary in it */
};

static inline void gpu_init(void)
{
	CUcontext context;
	CUdevice device;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
}

/*
 * CUDA packs small allocations into one GPU page, but a mapping starts at a
 * page boundary: allocate up to one page more and round up.
 */
static inline struct gpu_memory gpu_alloc(size_t size)
{
	struct gpu_memory memory;

	CU(cuMemAlloc(&memory.block, size + GPU_PAGE_OFFSET));
	memory.start = (memory.block + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
	return memory;
}

#endif
