/* SPDX-License-Identifier: MIT */
/* gdr_bench SRC_DEV DST_DEV SIZE ITERS. */
#ifndef GDR_BENCH_PAIR_H
#define GDR_BENCH_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair_options {
	int src, dst;		/* CUDA ordinals, which may be equal */
	size_t size;
	uint64_t iterations;
	bool bind;
};

void pair_run(const struct pair_options *options);

#endif
