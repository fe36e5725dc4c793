/* SPDX-License-Identifier: MIT */
/*
 * Kernels and the order of streams.  "kernels hash" prints the hash of the PTX
 * text on its standard input, as src/emu/kernels.h needs it.
 */
#include "helper_case.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "selftest_ptx.h"

struct kernels {
	CUmodule module;
	CUfunction add_one, wait_flag;
};

static struct kernels load(void)
{
	struct kernels loaded;

	REQUIRE_CU(cuModuleLoadData(&loaded.module, selftest_ptx));
	REQUIRE_CU(cuModuleGetFunction(&loaded.add_one, loaded.module, "add_one"));
	REQUIRE_CU(cuModuleGetFunction(&loaded.wait_flag, loaded.module, "wait_flag"));
	return loaded;
}

static CUresult launch(CUfunction function, CUdeviceptr ptr, unsigned value, CUstream stream)
{
	void *params[] = { &ptr, &value };

	return cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL);
}

static void pause_ms(long ms)
{
	struct timespec delay = { 0, ms * 1000000 };

	nanosleep(&delay, NULL);
}

static void runs(void)
{
	struct { CUdeviceptr ptr; unsigned count; } args;
	size_t size = sizeof(args);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };
	struct kernels k;
	unsigned words[256];

	emu_start(0);
	k = load();
	REQUIRE_CU(cuMemAlloc(&args.ptr, sizeof(words)));
	CHECK_CU(cuMemsetD32(args.ptr, 10, 256));
	CHECK_CU(launch(k.add_one, args.ptr, 255, NULL));
	args.count = 1;
	CHECK_CU(cuLaunchKernel(k.add_one, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	CHECK_CU(cuMemcpyDtoH(words, args.ptr, sizeof(words)));
	CHECK_EQ(words[0], 12);
	CHECK_EQ(words[254], 11);
	CHECK_EQ(words[255], 10);
	CHECK_CU(cuModuleUnload(k.module));
	CHECK_EQ(launch(k.add_one, args.ptr, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void unknown_text(void)
{
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	char changed[sizeof(selftest_ptx)], log[128] = "";
	void *values[] = { log, (void *)sizeof(log) };
	CUfunction function;
	CUmodule module;

	emu_start(0);
	strcpy(changed, selftest_ptx);
	changed[sizeof(changed) - 3] = ' ';
	CHECK_EQ(cuModuleLoadDataEx(&module, changed, 2, options, values),
		 CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(log, "hash 0x") != NULL);
	CHECK_EQ(cuModuleLoadData(&module, "\x7f" "ELF"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	REQUIRE_CU(cuModuleLoadData(&module, selftest_ptx));
	CHECK_EQ(cuModuleGetFunction(&function, module, "sub_one"), CUDA_ERROR_NOT_FOUND);
}

static void bad_launches(void)
{
	CUdeviceptr ptr;
	void *params[] = { &ptr, &ptr };
	struct kernels k;

	emu_start(0);
	k = load();
	REQUIRE_CU(cuMemAlloc(&ptr, 16));
	CHECK_EQ(cuLaunchKernel(k.add_one, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		 CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernel(k.add_one, 1, 1, 1, 64, 64, 1, 0, NULL, params, NULL),
		 CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	CHECK_EQ(cuLaunchKernel(k.add_one, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		 CUDA_ERROR_INVALID_VALUE);
}

/* A kernel's fault stays with the context, and no later call succeeds. */
static void fault_sticks(void)
{
	struct kernels k;
	CUdeviceptr ptr;

	emu_start(0);
	k = load();
	REQUIRE_CU(cuMemAlloc(&ptr, 16));
	CHECK_CU(launch(k.add_one, ptr, 5, NULL));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(cuMemsetD8(ptr, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	emu_start(0);
	CHECK_CU(cuMemAlloc(&ptr, 16));
}

/* The CPU and a running kernel talk through page-locked memory. */
static void kernel_waits_for_the_cpu(void)
{
	struct kernels k;
	unsigned *flag;

	emu_start(0);
	k = load();
	REQUIRE_CU(cuMemHostAlloc((void **)&flag, 8, 0));
	flag[0] = flag[1] = 0;
	CHECK_CU(launch(k.wait_flag, (uintptr_t)flag, 7, NULL));
	pause_ms(20);
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	CHECK_EQ(__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE), 0);
	__atomic_store_n(&flag[0], 7, __ATOMIC_RELEASE);
	CHECK_CU(cuStreamSynchronize(NULL));
	CHECK_EQ(__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE), 8);
	CHECK_CU(cuStreamQuery(NULL));
}

struct ordered {
	struct kernels k;
	CUstream stream, other;
	unsigned *flag;
	CUdeviceptr word;
};

/* A stream whose first operation is a kernel that waits. */
static struct ordered start_waiting(unsigned flags)
{
	struct ordered o;

	emu_start(0);
	o.k = load();
	REQUIRE_CU(cuStreamCreate(&o.stream, flags));
	REQUIRE_CU(cuStreamCreate(&o.other, flags));
	REQUIRE_CU(cuMemHostAlloc((void **)&o.flag, 16, 0));
	memset(o.flag, 0, 16);
	REQUIRE_CU(cuMemAlloc(&o.word, 4));
	REQUIRE_CU(cuMemsetD32(o.word, 1, 1));
	REQUIRE_CU(launch(o.k.wait_flag, (uintptr_t)o.flag, 1, o.stream));
	return o;
}

static void release(struct ordered *o)
{
	__atomic_store_n(&o->flag[0], 1, __ATOMIC_RELEASE);
}

static void stream_keeps_order(void)
{
	struct ordered o = start_waiting(CU_STREAM_NON_BLOCKING);

	CHECK_CU(cuMemsetD32Async(o.word, 2, 1, o.stream));
	CHECK_CU(cuMemcpyDtoHAsync(&o.flag[2], o.word, 4, o.stream));
	/* A non-blocking stream does not stop the default stream. */
	CHECK_CU(cuMemcpyDtoH(&o.flag[3], o.word, 4));
	CHECK_EQ(o.flag[3], 1);
	CHECK_EQ(cuStreamQuery(o.stream), CUDA_ERROR_NOT_READY);
	release(&o);
	CHECK_CU(cuStreamSynchronize(o.stream));
	CHECK_EQ(o.flag[2], 2);
	CHECK_CU(cuStreamDestroy(o.stream));
	CHECK_EQ(cuStreamSynchronize(o.stream), CUDA_ERROR_INVALID_HANDLE);
}

static void default_stream_waits(void)
{
	struct ordered o = start_waiting(CU_STREAM_DEFAULT);

	CHECK_CU(cuMemsetD32Async(o.word, 2, 1, NULL));
	CHECK_CU(cuMemsetD32Async(o.word, 3, 1, o.other));
	pause_ms(20);
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	CHECK_EQ(cuStreamQuery(o.other), CUDA_ERROR_NOT_READY);
	release(&o);
	CHECK_CU(cuMemcpyDtoH(&o.flag[2], o.word, 4));
	CHECK_EQ(o.flag[2], 3);
}

static void events(void)
{
	struct ordered o = start_waiting(CU_STREAM_NON_BLOCKING);
	CUevent begin, end;
	float ms = -1;

	REQUIRE_CU(cuEventCreate(&begin, CU_EVENT_DEFAULT));
	REQUIRE_CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
	CHECK_EQ(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
	CHECK_CU(cuEventQuery(end));
	CHECK_CU(cuEventRecord(begin, o.other));
	CHECK_CU(cuEventRecord(end, o.stream));
	CHECK_CU(cuStreamWaitEvent(o.other, end, 0));
	CHECK_CU(cuMemsetD32Async(o.word, 9, 1, o.other));
	pause_ms(20);
	CHECK_EQ(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	CHECK_EQ(cuStreamQuery(o.other), CUDA_ERROR_NOT_READY);
	CHECK_EQ(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_NOT_READY);
	release(&o);
	CHECK_CU(cuEventSynchronize(end));
	CHECK_CU(cuEventElapsedTime(&ms, begin, end));
	CHECK(ms >= 15);
	CHECK_CU(cuStreamSynchronize(o.other));
	CHECK_CU(cuMemcpyDtoH(&o.flag[2], o.word, 4));
	CHECK_EQ(o.flag[2], 9);
	CHECK_CU(cuEventDestroy(begin));
	CHECK_EQ(cuEventRecord(begin, NULL), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuEventCreate(&begin, CU_EVENT_INTERPROCESS), CUDA_ERROR_NOT_SUPPORTED);
}

/* Memory freed under a running kernel stays until it ends. */
static void free_under_a_kernel(void)
{
	struct kernels k;
	CUdeviceptr ptr;
	unsigned out = 1, go = 3;
	CUstream stream;

	emu_start(0);
	k = load();
	REQUIRE_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	REQUIRE_CU(cuMemAllocManaged(&ptr, 8, CU_MEM_ATTACH_GLOBAL));
	REQUIRE_CU(cuMemsetD8(ptr, 0, 8));
	CHECK_CU(launch(k.wait_flag, ptr, 3, stream));
	CHECK_CU(cuMemcpyHtoD(ptr, &go, 4));
	CHECK_CU(cuStreamSynchronize(stream));
	CHECK_CU(cuMemcpyDtoH(&out, ptr + 4, 4));
	CHECK_EQ(out, 4);
	CHECK_CU(cuMemFree(ptr));
}

static void count_call(void *count)
{
	__atomic_add_fetch((int *)count, 1, __ATOMIC_RELAXED);
}

static void host_functions(void)
{
	int count = 0;

	emu_start(0);
	for (int i = 0; i < 50; i++)
		CHECK_CU(cuLaunchHostFunc(NULL, count_call, &count));
	CHECK_CU(cuCtxSynchronize());
	CHECK_EQ(__atomic_load_n(&count, __ATOMIC_RELAXED), 50);
}

static void context_ends_after_its_work(void)
{
	struct ordered o = start_waiting(CU_STREAM_DEFAULT);
	CUcontext ctx;

	REQUIRE_CU(cuCtxGetCurrent(&ctx));
	release(&o);
	CHECK_CU(cuCtxDestroy(ctx));
	CHECK_EQ(cuStreamQuery(o.stream), CUDA_ERROR_INVALID_CONTEXT);
}

static const struct emu_case cases[] = {
	{ .name = "runs", .run = runs },
	{ .name = "unknown_text", .run = unknown_text },
	{ .name = "bad_launches", .run = bad_launches },
	{ .name = "fault_sticks", .run = fault_sticks },
	{ .name = "kernel_waits_for_the_cpu", .run = kernel_waits_for_the_cpu },
	{ .name = "stream_keeps_order", .run = stream_keeps_order },
	{ .name = "default_stream_waits", .run = default_stream_waits },
	{ .name = "events", .run = events },
	{ .name = "free_under_a_kernel", .run = free_under_a_kernel },
	{ .name = "host_functions", .run = host_functions },
	{ .name = "context_ends_after_its_work", .run = context_ends_after_its_work },
};

/* FNV-1a, written again here, so that the emulator's own is checked by it. */
static int print_hash(void)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	unsigned char byte;

	while (read(STDIN_FILENO, &byte, 1) == 1)
		hash = (hash ^ byte) * 0x100000001b3ull;
	printf("0x%016llx\n", (unsigned long long)hash);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "hash") == 0)
		return print_hash();
	return emu_case_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
