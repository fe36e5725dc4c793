/* SPDX-License-Identifier: MIT */
/* CUDA for one test process: start-up, and access to memory as the GPU sees it. */
#ifndef SANITY_GPU_H
#define SANITY_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda_driver.h"
#include "verdict.h"

/* Calls CUDA and fails the test unless that succeeds. */
#define GPU(call, ...) gpu_require(CU_TRY(call, __VA_ARGS__), #call, __FILE__, __LINE__)

void gpu_require(CUresult result, const char *call, const char *file, int line);

/*
 * Initialises CUDA on the GPU under test and makes its primary context current
 * in the calling thread.  Tests with several processes fork before.
 */
void gpu_start(void);

/* The same context, current in another thread. */
void gpu_enter_thread(void);

/* Whole words of GPU memory, through CUDA; complete on return. */
void gpu_read(void *dst, uint64_t addr, size_t size);
void gpu_write(uint64_t addr, const void *src, size_t size);
void gpu_fill(uint64_t addr, uint32_t word, size_t size);
uint32_t gpu_word(uint64_t addr);

#endif
