/* SPDX-License-Identifier: MIT */
/* The runtime's streams and events. */
#include "runtime.h"

EMU_API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	EMU_RUNTIME(cuStreamCreate(stream, CU_STREAM_DEFAULT));
}

EMU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	EMU_RUNTIME(cuStreamCreate(stream, flags));
}

EMU_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	EMU_RUNTIME(cuStreamDestroy(stream));
}

EMU_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	EMU_RUNTIME(cuStreamSynchronize(stream));
}

EMU_API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	EMU_RUNTIME(cuStreamQuery(stream));
}

EMU_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	EMU_RUNTIME(cuStreamWaitEvent(stream, event, flags));
}

EMU_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	EMU_RUNTIME(cuEventCreate(event, CU_EVENT_DEFAULT));
}

EMU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	EMU_RUNTIME(cuEventCreate(event, flags));
}

EMU_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	EMU_RUNTIME(cuEventDestroy(event));
}

EMU_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	EMU_RUNTIME(cuEventRecord(event, stream));
}

EMU_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	EMU_RUNTIME(cuEventSynchronize(event));
}

EMU_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
	EMU_RUNTIME(cuEventQuery(event));
}

EMU_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	EMU_RUNTIME(cuEventElapsedTime(ms, start, end));
}
