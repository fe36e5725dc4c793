/* SPDX-License-Identifier: MIT */
/* The ways of moving bytes that a sweep compares, and what they need. */
#ifndef GDR_BENCH_ROADS_H
#define GDR_BENCH_ROADS_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "session.h"

enum direction { H2D, D2H, D2D, DIRECTION_COUNT };

/* Sessions of their own, since the library reads its settings at gdr_open. */
enum session_id { SESSION_AUTO, SESSION_CPU, SESSION_DMA, SESSION_STAGED, SESSION_COUNT };

/* Host memory: a range is registered with one session, or page-locked by CUDA, or neither. */
enum host_id { HOST_PAGEABLE, HOST_AUTO, HOST_DMA, HOST_CUDA, HOST_COUNT };

/* Places in the tables of roads, and the columns of the output. */
enum { AUTO_PAGEABLE, AUTO_REGISTERED, CPU_ROAD, DMA_PAGEABLE, DMA_REGISTERED, CUDA_PAGEABLE,
       CUDA_PINNED, HOST_ROADS };
enum { D2D_AUTO, D2D_CPU, D2D_DMA, D2D_STAGED, D2D_CUDA, D2D_ROADS };
#define ROADS_MAX HOST_ROADS

struct bench {
	struct device_buffer src, dst;	/* on one GPU; host copies use src alone */
	struct session sessions[SESSION_COUNT];
	bool engine;			/* there is one, and GDRCOPY_DMA=min=0 takes it */
	void *host[HOST_COUNT];
	struct bytes bytes;
	size_t size;
};

struct road {
	const char *name;
	enum session_id session;
	enum host_id host;
	bool cuda;
	int (*copy)(const struct bench *bench, const struct road *road, size_t size);
};

/* The roads of a direction. */
const struct road *roads_of(enum direction direction, int *count);
const char *direction_name(enum direction direction);

void bench_open(const struct gpu *gpu, size_t size, struct bench *bench);
void bench_close(struct bench *bench);

/* Whether a copy of this size takes that road at all. */
bool road_exists(const struct bench *bench, const struct road *road, size_t size);

/*
 * One copy of new bytes into a poisoned destination, compared byte for byte.
 * false: the library does not support this road here.  Any other failure and
 * any wrong byte end the program.
 */
bool road_verify(struct bench *bench, enum direction direction, const struct road *road,
		 size_t size);

/* Ends the program unless a copy's result is success. */
void road_check(const struct road *road, int result);

#endif
