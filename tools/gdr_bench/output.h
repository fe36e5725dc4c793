/* SPDX-License-Identifier: MIT */
/* Prints a sweep as text, CSV or JSON. */
#ifndef GDR_BENCH_OUTPUT_H
#define GDR_BENCH_OUTPUT_H

#include "sweep.h"

/* Selects the GPU and prints what stands above every figure. */
void output_start(const struct sweep_options *options, struct gpu *gpu);

/* Around all rows. */
void output_table(enum format format);
void output_table_end(void);

void output_direction(enum format format, enum direction direction);
void output_cell(enum format format, const struct cell *cell);

#endif
