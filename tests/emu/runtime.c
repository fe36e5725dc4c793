/* SPDX-License-Identifier: MIT */
/* The CUDA runtime's calls, on top of the emulated driver. */
#include "helper_case.h"

#include <pthread.h>
#include <string.h>

#include "cuda_runtime.h"

#define CHECK_RT(call) CHECK_EQ(call, cudaSuccess)
#define REQUIRE_RT(call) REQUIRE_EQ(call, cudaSuccess)

static void malloc_and_copy(void)
{
	unsigned char in[1000], out[1000];
	struct cudaPointerAttributes attributes;
	void *ptr, *other;

	memset(in, 0x61, sizeof(in));
	REQUIRE_RT(cudaMalloc(&ptr, sizeof(in)));
	REQUIRE_RT(cudaMalloc(&other, sizeof(in)));
	CHECK_RT(cudaMemcpy(ptr, in, sizeof(in), cudaMemcpyHostToDevice));
	CHECK_RT(cudaMemcpy(other, ptr, sizeof(in), cudaMemcpyDeviceToDevice));
	CHECK_RT(cudaMemset((char *)other + 1, 0, 1));
	CHECK_RT(cudaMemcpy(out, other, sizeof(in), cudaMemcpyDefault));
	CHECK_EQ(out[0], 0x61);
	CHECK_EQ(out[1], 0);
	CHECK_EQ(out[999], 0x61);
	CHECK_RT(cudaPointerGetAttributes(&attributes, (char *)ptr + 10));
	CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
	CHECK_EQ(attributes.device, 0);
	CHECK(attributes.devicePointer == (char *)ptr + 10);
	CHECK_RT(cudaPointerGetAttributes(&attributes, in));
	CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
	CHECK_RT(cudaFree(ptr));
	CHECK_RT(cudaFree(other));
	CHECK_RT(cudaFree(NULL));
}

static void errors_are_kept(void)
{
	void *ptr;

	CHECK_EQ(cudaMalloc(&ptr, (size_t)1 << 50), cudaErrorMemoryAllocation);
	CHECK_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
	CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
	CHECK_EQ(cudaGetLastError(), cudaSuccess);
	CHECK_EQ(cudaMemcpy(&ptr, &ptr, 8, (enum cudaMemcpyKind)9),
		 cudaErrorInvalidMemcpyDirection);
	CHECK(strcmp(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported") == 0);
	CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
}

static void devices(void)
{
	struct cudaDeviceProp prop;
	struct cudaPointerAttributes attributes;
	int count, device, can;
	unsigned char out = 0;
	void *a, *b;

	REQUIRE_RT(cudaGetDeviceCount(&count));
	CHECK_EQ(count, 2);
	CHECK_RT(cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	REQUIRE_RT(cudaMalloc(&a, 100));
	REQUIRE_RT(cudaSetDevice(1));
	CHECK_RT(cudaGetDevice(&device));
	CHECK_EQ(device, 1);
	REQUIRE_RT(cudaMalloc(&b, 100));
	CHECK_RT(cudaPointerGetAttributes(&attributes, b));
	CHECK_EQ(attributes.device, 1);
	CHECK_RT(cudaDeviceCanAccessPeer(&can, 1, 0));
	CHECK_EQ(can, 1);
	CHECK_RT(cudaDeviceEnablePeerAccess(0, 0));
	CHECK_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
	CHECK_RT(cudaMemset(a, 7, 100));
	CHECK_RT(cudaMemcpyPeer(b, 1, a, 0, 100));
	CHECK_RT(cudaMemcpy(&out, b, 1, cudaMemcpyDeviceToHost));
	CHECK_EQ(out, 7);
	CHECK_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
	CHECK_RT(cudaGetDeviceProperties(&prop, 1));
	CHECK(strstr(prop.name, "Emulated") != NULL);
	CHECK_EQ(prop.gpuDirectRDMASupported, 1);
	CHECK_EQ(prop.maxThreadsPerBlock, 1024);
	CHECK_RT(cudaDeviceReset());
	CHECK_EQ(cudaFree(b), cudaErrorInvalidValue);
	REQUIRE_RT(cudaMalloc(&b, 100));
}

static void *thread_starts_on_device_0(void *arg)
{
	int device = -1;

	(void)arg;
	CHECK_RT(cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	CHECK_RT(cudaDeviceSynchronize());
	return NULL;
}

static void threads(void)
{
	pthread_t thread;

	REQUIRE_RT(cudaSetDevice(1));
	REQUIRE_EQ(pthread_create(&thread, NULL, thread_starts_on_device_0, NULL), 0);
	pthread_join(thread, NULL);
}

static void streams(void)
{
	cudaStream_t stream;
	cudaEvent_t begin, end;
	unsigned char *pinned;
	void *ptr, *pooled;
	float ms = -1;

	REQUIRE_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	REQUIRE_RT(cudaEventCreate(&begin));
	REQUIRE_RT(cudaEventCreate(&end));
	REQUIRE_RT(cudaMallocHost((void **)&pinned, 4096));
	REQUIRE_RT(cudaMalloc(&ptr, 4096));
	CHECK_RT(cudaEventRecord(begin, stream));
	CHECK_RT(cudaMemsetAsync(ptr, 8, 4096, stream));
	CHECK_RT(cudaMemcpyAsync(pinned, ptr, 4096, cudaMemcpyDeviceToHost, stream));
	CHECK_RT(cudaEventRecord(end, stream));
	CHECK_RT(cudaStreamSynchronize(stream));
	CHECK_EQ(pinned[4095], 8);
	CHECK_RT(cudaEventElapsedTime(&ms, begin, end));
	CHECK(ms >= 0);
	REQUIRE_RT(cudaMallocAsync(&pooled, 100, stream));
	CHECK_RT(cudaFreeAsync(pooled, stream));
	CHECK_RT(cudaFreeHost(pinned));
	CHECK_RT(cudaEventDestroy(begin));
	CHECK_RT(cudaStreamDestroy(stream));
	CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaErrorNotSupported);
}

static void managed(void)
{
	struct cudaPointerAttributes attributes;
	int *ptr;

	REQUIRE_RT(cudaMallocManaged((void **)&ptr, 100, cudaMemAttachGlobal));
	*ptr = 5;
	CHECK_RT(cudaMemset(ptr, 0, 4));
	CHECK_EQ(*ptr, 0);
	CHECK_RT(cudaPointerGetAttributes(&attributes, ptr));
	CHECK_EQ(attributes.type, cudaMemoryTypeManaged);
	CHECK(attributes.hostPointer == ptr);
}

/* The runtime works in the context that the program chose through the driver. */
static void drivers_context_counts(void)
{
	CUcontext ctx, found;
	void *ptr;

	ctx = emu_start(1);
	REQUIRE_RT(cudaMalloc(&ptr, 100));
	CHECK_CU(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t)ptr));
	CHECK(found == ctx);
}

static void no_device(void)
{
	int count = 5;

	CHECK_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
	CHECK_EQ(count, 0);
}

static const struct emu_case cases[] = {
	{ .name = "malloc_and_copy", .run = malloc_and_copy },
	{ .name = "errors_are_kept", .run = errors_are_kept },
	{ .name = "devices", .emu = "devices=2", .run = devices },
	{ .name = "threads", .emu = "devices=2", .run = threads },
	{ .name = "streams", .run = streams },
	{ .name = "managed", .run = managed },
	{ .name = "drivers_context_counts", .emu = "devices=2", .run = drivers_context_counts },
	{ .name = "no_device", .emu = "devices=0", .run = no_device },
};

EMU_CASE_MAIN(cases)
