/* SPDX-License-Identifier: MIT */
/* A nanosecond clock and the summary of a set of times. */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* All in the unit of the samples. */
struct stats {
	double mean;
	double min;
	double median;
	double p99;
	double max;
};

/* Sorts the samples, of which there is at least one. */
struct stats stats_of(double *samples, size_t count);

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
