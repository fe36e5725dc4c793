/* SPDX-License-Identifier: MIT */
/* Judges a sweep: no other road is faster than ours, and fixed times are reached. */
#ifndef GDR_BENCH_CHECK_H
#define GDR_BENCH_CHECK_H

#include "sweep.h"

void check_print(enum format format, const struct cell *cells, int count);

#endif
