/* SPDX-License-Identifier: MIT */
/* The runtime's error names and the last error of a thread. */
#include "runtime.h"

static __thread cudaError_t last_error;

static const struct {
	cudaError_t error;
	const char *name;
} names[] = {
#define ENTRY(name) { name, #name }
	ENTRY(cudaSuccess),
	ENTRY(cudaErrorInvalidValue),
	ENTRY(cudaErrorMemoryAllocation),
	ENTRY(cudaErrorInitializationError),
	ENTRY(cudaErrorCudartUnloading),
	ENTRY(cudaErrorInvalidMemcpyDirection),
	ENTRY(cudaErrorInsufficientDriver),
	ENTRY(cudaErrorDevicesUnavailable),
	ENTRY(cudaErrorNoDevice),
	ENTRY(cudaErrorInvalidDevice),
	ENTRY(cudaErrorDeviceUninitialized),
	ENTRY(cudaErrorAlreadyMapped),
	ENTRY(cudaErrorNoKernelImageForDevice),
	ENTRY(cudaErrorNotMapped),
	ENTRY(cudaErrorPeerAccessUnsupported),
	ENTRY(cudaErrorOperatingSystem),
	ENTRY(cudaErrorInvalidResourceHandle),
	ENTRY(cudaErrorIllegalState),
	ENTRY(cudaErrorSymbolNotFound),
	ENTRY(cudaErrorNotReady),
	ENTRY(cudaErrorIllegalAddress),
	ENTRY(cudaErrorLaunchTimeout),
	ENTRY(cudaErrorPeerAccessAlreadyEnabled),
	ENTRY(cudaErrorPeerAccessNotEnabled),
	ENTRY(cudaErrorSetOnActiveProcess),
	ENTRY(cudaErrorContextIsDestroyed),
	ENTRY(cudaErrorHostMemoryAlreadyRegistered),
	ENTRY(cudaErrorHostMemoryNotRegistered),
	ENTRY(cudaErrorLaunchFailure),
	ENTRY(cudaErrorNotPermitted),
	ENTRY(cudaErrorNotSupported),
	ENTRY(cudaErrorSystemNotReady),
	ENTRY(cudaErrorSystemDriverMismatch),
	ENTRY(cudaErrorUnknown),
#undef ENTRY
};

/* cudaErrorNotReady is an answer and not kept. */
cudaError_t emu_runtime_result(CUresult result)
{
	cudaError_t error = (cudaError_t)result;

	if (error != cudaSuccess && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

EMU_API const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].error == error)
			return names[i].name;
	return "unrecognized error code";
}

EMU_API const char *cudaGetErrorString(cudaError_t error)
{
	const char *text;

	if (error == cudaErrorInvalidMemcpyDirection)
		return "invalid copy direction for memcpy";
	if (error == cudaErrorInsufficientDriver)
		return "CUDA driver version is insufficient for CUDA runtime version";
	if (cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS)
		return text;
	return "unrecognized error code";
}

EMU_API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

EMU_API cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}
