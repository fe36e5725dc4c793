/* SPDX-License-Identifier: MIT */
/* What the files of the emulated CUDA runtime share. */
#ifndef EMU_RUNTIME_H
#define EMU_RUNTIME_H

#include "cuda.h"
#include "cuda_runtime.h"

#define EMU_API __attribute__((visibility("default")))

/*
 * Makes sure that the thread has a context: the program's own one if it set
 * one through the driver, or else the primary context of the chosen device.
 */
CUresult emu_runtime_enter(void);

/* Keeps an error for cudaGetLastError and returns it; results have CUDA's own numbers. */
cudaError_t emu_runtime_result(CUresult result);

/* Turns a call of the driver into one of the runtime, inside a context. */
#define EMU_RUNTIME(call)                                        \
	do {                                                     \
		CUresult result_ = emu_runtime_enter();          \
		if (result_ == CUDA_SUCCESS)                     \
			result_ = (call);                        \
		return emu_runtime_result(result_);              \
	} while (0)

static inline CUdeviceptr emu_runtime_ptr(const void *ptr)
{
	return (CUdeviceptr)(uintptr_t)ptr;
}

#endif
