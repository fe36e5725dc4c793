/* SPDX-License-Identifier: MIT */
/* Loads the CUDA driver and explains its errors. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_driver cuda;

static void resolve_calls(void)
{
#define CUDA_DRIVER_RESOLVE(name, symbol, params) \
	*(void **)&cuda.name = dlsym(cuda.library, symbol);
	CUDA_DRIVER_CALLS(CUDA_DRIVER_RESOLVE)
#undef CUDA_DRIVER_RESOLVE
}

const char *cuda_driver_describe(CUresult result)
{
	const char *name = NULL, *text = NULL;
	static char line[256];

	CU_TRY(cuGetErrorName, result, &name);
	CU_TRY(cuGetErrorString, result, &text);
	snprintf(line, sizeof(line), "%s, %d (%s)", name ? name : "CUDA error", result,
		 text ? text : "no description");
	return line;
}

const char *cuda_driver_find(void)
{
	static char line[512];

	if (cuda.library)
		return NULL;
	cuda.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!cuda.library)
		cuda.library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
	if (!cuda.library) {
		snprintf(line, sizeof(line),
			 "no CUDA driver library (%s): install the NVIDIA driver, or use the "
			 "emulated GPU", dlerror());
		return line;
	}
	resolve_calls();
	return NULL;
}

const char *cuda_driver_try_load(void)
{
	static char line[512];
	const char *why = cuda_driver_find();
	CUresult result;

	if (why)
		return why;
	result = CU_TRY(cuInit, 0);
	if (result == CUDA_SUCCESS)
		return NULL;
	snprintf(line, sizeof(line), "cuInit failed with %s: nvidia-smi may tell why",
		 cuda_driver_describe(result));
	return line;
}

void cuda_driver_load(void)
{
	const char *why = cuda_driver_try_load();

	if (!why)
		return;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	exit(EXIT_FAILURE);
}

void cuda_driver_check(CUresult result, const char *call, const char *file, int line)
{
	const char *slash = strrchr(file, '/');

	if (result == CUDA_SUCCESS)
		return;
	if (result == CUDA_ERROR_NOT_FOUND && !dlsym(cuda.library, call))
		fprintf(stderr, "%s: %s is missing from this CUDA driver: update it\n",
			program_invocation_short_name, call);
	else
		fprintf(stderr, "%s: %s failed with %s at %s:%d\n",
			program_invocation_short_name, call, cuda_driver_describe(result),
			slash ? slash + 1 : file, line);
	exit(EXIT_FAILURE);
}
