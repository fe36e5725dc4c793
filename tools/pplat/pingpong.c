/* SPDX-License-Identifier: MIT */
/* Sends rounds to the kernel, waits for its answers and takes the time. */
#include "pingpong.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/pattern.h"
#include "../common/report.h"
#include "../common/stats.h"
#include "kernel_ptx.h"

/* The first answers wait for the launch. */
#define WARMUP_ROUNDS 16

/* The pieces keep out of each other's cache lines; the payload begins a GPU page. */
#define GPU_FLAG_OFFSET 0
#define CPU_FLAG_OFFSET 4096
#define SCRATCH_OFFSET 8192
#define DATA_OFFSET 65536

/* So many looks at the flag pass between two looks at the clock. */
#define POLLS_PER_CHECK 4096

static struct shared_memory share(struct pingpong *pp, enum place place, size_t offset)
{
	struct shared_memory memory = { .place = place };

	if (place == PLACE_GPUMEM) {
		memory.cpu = pp->mapping.ptr + offset;
		memory.gpu = pp->buffer.ptr + offset;
	} else {
		memory.cpu = pp->host + offset;
		CU(cuMemHostGetDevicePointer, &memory.gpu, memory.cpu, 0);
	}
	return memory;
}

void pingpong_open(struct pingpong *pp, const struct gpu *gpu,
		   const struct pingpong_options *options)
{
	size_t size = DATA_OFFSET + options->payload;

	*pp = (struct pingpong){ .options = options, .gpu = gpu };
	gpu_buffer_alloc(options->alloc, gpu->device, size, &pp->buffer);
	mapping_open(gpu, &pp->buffer, options->map_flags, &pp->mapping);
	CU(cuMemHostAlloc, (void **)&pp->host, size,
	   CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
	memset(pp->host, 0, size);
	CU(cuMemsetD8, pp->buffer.ptr, 0, pp->buffer.size);
	CU(cuCtxSynchronize);
	pp->gpu_flag = share(pp, options->gpu_flag, GPU_FLAG_OFFSET);
	pp->cpu_flag = share(pp, options->cpu_flag, CPU_FLAG_OFFSET);
	pp->data = share(pp, options->data, DATA_OFFSET);
	pp->scratch = pp->buffer.ptr + SCRATCH_OFFSET;
	pp->message = host_buffer(options->payload);
	CU(cuModuleLoadData, &pp->module, pplat_kernel_ptx);
	CU(cuModuleGetFunction, &pp->kernel, pp->module, PPLAT_KERNEL);
	CU(cuStreamCreate, &pp->stream, CU_STREAM_NON_BLOCKING);
}

void pingpong_close(struct pingpong *pp)
{
	CU(cuStreamDestroy, pp->stream);
	CU(cuModuleUnload, pp->module);
	free(pp->message);
	CU(cuMemFreeHost, pp->host);
	mapping_close(&pp->mapping);
	gpu_buffer_free(&pp->buffer);
}

static void launch(struct pingpong *pp, uint32_t rounds)
{
	uint32_t words = (uint32_t)(pp->options->payload / sizeof(uint32_t));
	uint32_t direction = (uint32_t)pp->options->direction;
	void *params[] = { &pp->gpu_flag.gpu, &pp->cpu_flag.gpu, &pp->data.gpu, &pp->scratch,
			   &words, &direction, &rounds };
	unsigned blocks = words ? pp->options->blocks : 1;
	unsigned threads = words ? pp->options->threads : 1;

	CU(cuLaunchKernel, pp->kernel, blocks, 1, 1, threads, 1, 1, 0, pp->stream, params, NULL);
}

static inline void store(struct pingpong *pp, const struct shared_memory *memory, const void *from,
			 size_t size)
{
	if (memory->place == PLACE_GPUMEM)
		GDR(gdr_copy_to_mapping, pp->mapping.handle, memory->cpu, from, size);
	else
		memcpy(memory->cpu, from, size);
}

/* A mapping may be write-combined, whose stores pass others without a full fence. */
static inline void send_flag(struct pingpong *pp, uint32_t value)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (pp->gpu_flag.place == PLACE_GPUMEM)
		GDR(gdr_copy_to_mapping, pp->mapping.handle, pp->gpu_flag.cpu, &value,
		    sizeof(value));
	else
		__atomic_store_n((uint32_t *)(void *)pp->gpu_flag.cpu, value, __ATOMIC_RELEASE);
}

/* The kernel still spins and would keep a clean exit waiting, so there is none. */
_Noreturn static void give_up(struct pingpong *pp, uint32_t round)
{
	CUresult result = CU_TRY(cuStreamQuery, pp->stream);

	send_flag(pp, PPLAT_STOP);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		fprintf(stderr, "gdrcopy_pplat: the kernel failed in round %u with %s\n", round,
			cuda_driver_describe(result));
	else
		fprintf(stderr, "gdrcopy_pplat: no answer from the GPU in round %u within %u s: "
			"is it busy, or are -B and -T more than fits at once?\n", round,
			pp->options->timeout_s);
	_exit(TOOL_FAILED);
}

/* Called now and then while the answer is missing. */
static void check_time(struct pingpong *pp, uint32_t round, uint64_t since)
{
	uint64_t limit = (uint64_t)pp->options->timeout_s * 1000000000;

	/* An emulated GPU is a thread, which may need this very CPU. */
	if (pp->gpu->emulated)
		sched_yield();
	if (limit && clock_ns() - since > limit)
		give_up(pp, round);
}

static inline void wait_answer(struct pingpong *pp, uint32_t round, uint64_t since)
{
	const uint32_t *flag = (const uint32_t *)(const void *)pp->cpu_flag.cpu;
	unsigned polls = 0;

	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round)
		if (++polls % POLLS_PER_CHECK == 0)
			check_time(pp, round, since);
}

static void fill_message(struct pingpong *pp, uint32_t round)
{
	for (size_t i = 0; i < pp->options->payload / sizeof(uint32_t); i++)
		pp->message[i] = round + (uint32_t)i;
}

static void check_message(struct pingpong *pp, uint32_t round)
{
	for (size_t i = 0; i < pp->options->payload / sizeof(uint32_t); i++)
		if (pp->message[i] != round + (uint32_t)i) {
			send_flag(pp, PPLAT_STOP);
			fail("payload word %zu from the GPU is %u in round %u, expected %u", i,
			     pp->message[i], round, round + (uint32_t)i);
		}
}

static void receive(struct pingpong *pp)
{
	if (pp->data.place == PLACE_GPUMEM)
		GDR(gdr_copy_from_mapping, pp->mapping.handle, pp->message, pp->data.cpu,
		    pp->options->payload);
	else
		memcpy(pp->message, pp->data.cpu, pp->options->payload);
}

/* Microseconds; filling and checking the payload are not part of them. */
static double time_round(struct pingpong *pp, uint32_t round)
{
	size_t payload = pp->options->payload;
	bool sends = payload && pp->options->direction == PPLAT_CPU_TO_GPU;
	bool receives = payload && pp->options->direction == PPLAT_GPU_TO_CPU;
	uint64_t start, end;

	if (sends)
		fill_message(pp, round);
	start = clock_ns();
	if (sends)
		store(pp, &pp->data, pp->message, payload);
	send_flag(pp, round);
	wait_answer(pp, round, start);
	if (receives)
		receive(pp);
	end = clock_ns();
	if (receives)
		check_message(pp, round);
	return (double)(end - start) / 1000;
}

static void check_kernel(struct pingpong *pp)
{
	struct pplat_scratch scratch;

	CU(cuStreamSynchronize, pp->stream);
	CU(cuMemcpyDtoH, &scratch, pp->scratch, sizeof(scratch));
	if (scratch.errors)
		fail("the GPU met %u payload words that had not arrived when the flag did",
		     scratch.errors);
}

void pingpong_run(struct pingpong *pp, double *us)
{
	uint32_t rounds = pp->options->rounds + WARMUP_ROUNDS;

	launch(pp, rounds);
	for (uint32_t round = 1; round <= WARMUP_ROUNDS; round++)
		time_round(pp, round);
	for (uint32_t i = 0; i < pp->options->rounds; i++)
		us[i] = time_round(pp, WARMUP_ROUNDS + 1 + i);
	check_kernel(pp);
}
