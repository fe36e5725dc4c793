/* SPDX-License-Identifier: MIT */
/* Times every road at every size, and hands the results to output and check. */
#ifndef GDR_BENCH_SWEEP_H
#define GDR_BENCH_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/stats.h"
#include "roads.h"

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };

struct sweep_options {
	int device;
	bool bind;
	bool check;
	enum format format;
	bool directions[DIRECTION_COUNT];
	size_t min, max;
	uint64_t iterations;	/* rounds at one size, at most */
};

/* All roads at one size of one direction; times in microseconds. */
struct cell {
	enum direction direction;
	size_t size;
	uint64_t rounds;
	bool present[ROADS_MAX];
	struct stats us[ROADS_MAX];
};

/* Sizes of both kinds up to 2^30, in three directions. */
#define CELLS_MAX (DIRECTION_COUNT * 64)

void sweep_run(const struct sweep_options *options);

#endif
