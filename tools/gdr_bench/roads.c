/* SPDX-License-Identifier: MIT */
/* Opens the sessions of a sweep; copies by each road, and checks what arrived. */
#include "roads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pattern.h"
#include "common/report.h"

static int copy_to_gpu(const struct bench *bench, const struct road *road, size_t size)
{
	const struct session *session = &bench->sessions[road->session];

	return (int)gdr_copy_from_host(session->g, session->src, 0, bench->host[road->host], size);
}

static int copy_from_gpu(const struct bench *bench, const struct road *road, size_t size)
{
	const struct session *session = &bench->sessions[road->session];

	return (int)gdr_copy_to_host(session->g, session->src, 0, bench->host[road->host], size);
}

static int copy_on_gpu(const struct bench *bench, const struct road *road, size_t size)
{
	const struct session *session = &bench->sessions[road->session];

	return (int)gdr_copy_to_device(session->g, session->src, session->dst, 0, 0, size);
}

static int cuda_to_gpu(const struct bench *bench, const struct road *road, size_t size)
{
	return cuda.cuMemcpyHtoD(bench->src.ptr, bench->host[road->host], size);
}

static int cuda_from_gpu(const struct bench *bench, const struct road *road, size_t size)
{
	return cuda.cuMemcpyDtoH(bench->host[road->host], bench->src.ptr, size);
}

/* cuMemcpyDtoD returns before the bytes have arrived. */
static int cuda_on_gpu(const struct bench *bench, const struct road *road, size_t size)
{
	CUresult result = cuda.cuMemcpyDtoD(bench->dst.ptr, bench->src.ptr, size);

	(void)road;
	return result ? result : cuda.cuCtxSynchronize();
}

#define HOST_ROAD_TABLE(ours, theirs) {                                                         \
	[AUTO_PAGEABLE] = { "auto_pageable", SESSION_AUTO, HOST_PAGEABLE, false, ours },         \
	[AUTO_REGISTERED] = { "auto_registered", SESSION_AUTO, HOST_AUTO, false, ours },         \
	[CPU_ROAD] = { "cpu", SESSION_CPU, HOST_PAGEABLE, false, ours },                         \
	[DMA_PAGEABLE] = { "dma_pageable", SESSION_DMA, HOST_PAGEABLE, false, ours },            \
	[DMA_REGISTERED] = { "dma_registered", SESSION_DMA, HOST_DMA, false, ours },             \
	[CUDA_PAGEABLE] = { "cuda_pageable", SESSION_AUTO, HOST_PAGEABLE, true, theirs },        \
	[CUDA_PINNED] = { "cuda_pinned", SESSION_AUTO, HOST_CUDA, true, theirs },                \
}

static const struct road h2d_roads[HOST_ROADS] = HOST_ROAD_TABLE(copy_to_gpu, cuda_to_gpu);
static const struct road d2h_roads[HOST_ROADS] = HOST_ROAD_TABLE(copy_from_gpu, cuda_from_gpu);
static const struct road d2d_roads[D2D_ROADS] = {
	[D2D_AUTO] = { "auto", SESSION_AUTO, HOST_PAGEABLE, false, copy_on_gpu },
	[D2D_CPU] = { "cpu", SESSION_CPU, HOST_PAGEABLE, false, copy_on_gpu },
	[D2D_DMA] = { "dma", SESSION_DMA, HOST_PAGEABLE, false, copy_on_gpu },
	[D2D_STAGED] = { "staged", SESSION_STAGED, HOST_PAGEABLE, false, copy_on_gpu },
	[D2D_CUDA] = { "cuda", SESSION_AUTO, HOST_PAGEABLE, true, cuda_on_gpu },
};

const struct road *roads_of(enum direction direction, int *count)
{
	*count = direction == D2D ? D2D_ROADS : HOST_ROADS;
	return direction == H2D ? h2d_roads : direction == D2H ? d2h_roads : d2d_roads;
}

const char *direction_name(enum direction direction)
{
	static const char *const names[] = { "h2d", "d2h", "d2d" };

	return names[direction];
}

static void *register_host(const struct session *session, size_t size)
{
	void *host = host_buffer(size);

	GDR3(gdr_host_register, session->g, host, size);
	return host;
}

static void unregister_host(const struct session *session, void *host)
{
	GDR3(gdr_host_unregister, session->g, host);
	free(host);
}

static void open_sessions(struct bench *bench)
{
	static const struct {
		const char *variable, *value;
	} settings[SESSION_COUNT] = {
		[SESSION_CPU] = { "GDRCOPY_DMA", "0" },
		[SESSION_DMA] = { "GDRCOPY_DMA", "min=0" },
		[SESSION_STAGED] = { "GDRCOPY_ROUTE", "staged" },
	};

	for (int id = 0; id < SESSION_COUNT; id++) {
		session_open(settings[id].variable, settings[id].value, &bench->sessions[id]);
		session_pin(&bench->sessions[id], &bench->src, &bench->dst,
			    GDR_PIN_BUFFER_UNALIGNED, "--max");
		session_map(&bench->sessions[id], bench->size);
	}
	bench->engine = session_has_engine(&bench->sessions[SESSION_DMA]);
}

/* Whole pages of 64 KiB, so that maps and registrations need no rounding. */
static size_t round_size(size_t size)
{
	return (size + 65535) & ~(size_t)65535;
}

void bench_open(const struct gpu *gpu, size_t size, struct bench *bench)
{
	*bench = (struct bench){ .size = round_size(size) };
	device_buffer_alloc(gpu, bench->size, &bench->src);
	device_buffer_alloc(gpu, bench->size, &bench->dst);
	open_sessions(bench);
	bench->host[HOST_PAGEABLE] = host_buffer(bench->size);
	bench->host[HOST_AUTO] = register_host(&bench->sessions[SESSION_AUTO], bench->size);
	bench->host[HOST_DMA] = register_host(&bench->sessions[SESSION_DMA], bench->size);
	CU(cuMemHostAlloc, &bench->host[HOST_CUDA], bench->size, CU_MEMHOSTALLOC_PORTABLE);
	bytes_alloc(&bench->bytes, bench->size);
}

void bench_close(struct bench *bench)
{
	bytes_free(&bench->bytes);
	CU(cuMemFreeHost, bench->host[HOST_CUDA]);
	unregister_host(&bench->sessions[SESSION_DMA], bench->host[HOST_DMA]);
	unregister_host(&bench->sessions[SESSION_AUTO], bench->host[HOST_AUTO]);
	free(bench->host[HOST_PAGEABLE]);
	for (int id = SESSION_COUNT; id-- > 0;)
		session_close(&bench->sessions[id], bench->size);
	device_buffer_free(&bench->dst);
	device_buffer_free(&bench->src);
}

void road_check(const struct road *road, int result)
{
	if (road->cuda)
		cuda_driver_check(result, road->name, __FILE__, __LINE__);
	else
		result_check((gdr_result_t)result, road->name);
}

/* CPU stores are posted: a read through the mapping waits for them, before CUDA looks. */
static void flush_stores(const struct bench *bench, const struct road *road)
{
	const struct session *session = &bench->sessions[road->session];
	char byte;

	GDR3(gdr_copy_to_host, session->g, session->src, 0, &byte, 1);
	GDR3(gdr_copy_to_host, session->g, session->dst, 0, &byte, 1);
}

bool road_exists(const struct bench *bench, const struct road *road, size_t size)
{
	if (road->cuda || road->session == SESSION_AUTO || road->session == SESSION_CPU)
		return true;
	/* Words from and to the host take the CPU road whatever is asked for. */
	return bench->engine && (road->copy == copy_on_gpu || size > sizeof(uint64_t));
}

static void prepare_bytes(struct bench *bench, enum direction direction, const struct road *road,
			  size_t size)
{
	const struct bytes *bytes = &bench->bytes;

	bytes_turn(&bench->bytes, size);
	if (direction == H2D)
		memcpy(bench->host[road->host], bytes->wanted, size);
	else
		bytes_upload(&bench->src, bytes->wanted, size);
	if (direction == H2D)
		bytes_upload(&bench->src, bytes->poison, size);
	else if (direction == D2H)
		memcpy(bench->host[road->host], bytes->poison, size);
	else
		bytes_upload(&bench->dst, bytes->poison, size);
}

static void check_bytes(struct bench *bench, enum direction direction, const struct road *road,
			size_t size)
{
	char what[64];

	snprintf(what, sizeof(what), "%s by road %s", direction_name(direction), road->name);
	if (!road->cuda)
		flush_stores(bench, road);
	if (direction == D2H)
		bytes_check_host(&bench->bytes, bench->host[road->host], size, what);
	else
		bytes_check_device(&bench->bytes, direction == H2D ? &bench->src : &bench->dst,
				   size, what);
}

bool road_verify(struct bench *bench, enum direction direction, const struct road *road,
		 size_t size)
{
	int result;

	prepare_bytes(bench, direction, road, size);
	result = road->copy(bench, road, size);
	if (!road->cuda && result == GDR_ERR_OP_NOT_SUPPORTED)
		return false;
	road_check(road, result);
	check_bytes(bench, direction, road, size);
	return true;
}
