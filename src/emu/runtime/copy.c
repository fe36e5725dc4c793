/* SPDX-License-Identifier: MIT */
/* cudaMemcpy and cudaMemset. */
#include "runtime.h"

static CUresult copy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoD(emu_runtime_ptr(dst), src, size);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoH(dst, emu_runtime_ptr(src), size);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoD(emu_runtime_ptr(dst), emu_runtime_ptr(src), size);
	default:
		return cuMemcpy(emu_runtime_ptr(dst), emu_runtime_ptr(src), size);
	}
}

static CUresult copy_async(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
			   cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoDAsync(emu_runtime_ptr(dst), src, size, stream);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoHAsync(dst, emu_runtime_ptr(src), size, stream);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoDAsync(emu_runtime_ptr(dst), emu_runtime_ptr(src), size, stream);
	default:
		return cuMemcpyAsync(emu_runtime_ptr(dst), emu_runtime_ptr(src), size, stream);
	}
}

EMU_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	if ((unsigned)kind > cudaMemcpyDefault)
		return emu_runtime_result((CUresult)cudaErrorInvalidMemcpyDirection);
	EMU_RUNTIME(copy(dst, src, size, kind));
}

EMU_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size,
				    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	if ((unsigned)kind > cudaMemcpyDefault)
		return emu_runtime_result((CUresult)cudaErrorInvalidMemcpyDirection);
	EMU_RUNTIME(copy_async(dst, src, size, kind, stream));
}

static CUresult check_devices(int a, int b)
{
	int count;
	CUresult ret = cuDeviceGetCount(&count);

	if (ret != CUDA_SUCCESS)
		return ret;
	return a >= 0 && a < count && b >= 0 && b < count ? CUDA_SUCCESS :
							    CUDA_ERROR_INVALID_DEVICE;
}

static CUresult copy_peer(void *dst, int dst_device, const void *src, int src_device, size_t size)
{
	CUresult ret = check_devices(dst_device, src_device);

	return ret == CUDA_SUCCESS ? copy(dst, src, size, cudaMemcpyDeviceToDevice) : ret;
}

EMU_API cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
				   size_t size)
{
	EMU_RUNTIME(copy_peer(dst, dst_device, src, src_device, size));
}

static CUresult copy_peer_async(void *dst, int dst_device, const void *src, int src_device,
				size_t size, cudaStream_t stream)
{
	CUresult ret = check_devices(dst_device, src_device);

	if (ret != CUDA_SUCCESS)
		return ret;
	return copy_async(dst, src, size, cudaMemcpyDeviceToDevice, stream);
}

EMU_API cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
					size_t size, cudaStream_t stream)
{
	EMU_RUNTIME(copy_peer_async(dst, dst_device, src, src_device, size, stream));
}

EMU_API cudaError_t cudaMemset(void *ptr, int value, size_t size)
{
	EMU_RUNTIME(cuMemsetD8(emu_runtime_ptr(ptr), (unsigned char)value, size));
}

EMU_API cudaError_t cudaMemsetAsync(void *ptr, int value, size_t size, cudaStream_t stream)
{
	EMU_RUNTIME(cuMemsetD8Async(emu_runtime_ptr(ptr), (unsigned char)value, size, stream));
}
