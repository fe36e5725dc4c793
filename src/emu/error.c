/* SPDX-License-Identifier: MIT */
/* Names and sentences for CUDA results. */
#include "emu.h"

static const struct {
	CUresult result;
	const char *name, *text;
} results[] = {
#define ENTRY(name, text) { name, #name, text }
	ENTRY(CUDA_SUCCESS, "no error"),
	ENTRY(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	ENTRY(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	ENTRY(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	ENTRY(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
	ENTRY(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
	ENTRY(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
	ENTRY(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	ENTRY(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	ENTRY(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	ENTRY(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	ENTRY(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
	ENTRY(CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
	ENTRY(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
	ENTRY(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution"),
	ENTRY(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
	ENTRY(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
	ENTRY(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
	      "peer access is not supported between these two devices"),
	ENTRY(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	ENTRY(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	ENTRY(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
	ENTRY(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	ENTRY(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
	ENTRY(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	ENTRY(CUDA_ERROR_NOT_READY, "device not ready"),
	ENTRY(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	ENTRY(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
	ENTRY(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	ENTRY(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
	ENTRY(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
	ENTRY(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active"),
	ENTRY(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	ENTRY(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	      "part or all of the requested memory range is already mapped"),
	ENTRY(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
	      "pointer does not correspond to a registered memory region"),
	ENTRY(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	ENTRY(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
	ENTRY(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	ENTRY(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
	ENTRY(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported driver combination"),
	ENTRY(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ENTRY
};

EMU_API CUresult cuGetErrorName(CUresult error, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = NULL;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == error)
			*name = results[i].name;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuGetErrorString(CUresult error, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = NULL;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == error)
			*text = results[i].text;
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
