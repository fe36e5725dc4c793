/* SPDX-License-Identifier: MIT */
/* Summarises a set of times. */
#include "stats.h"

#include <stdlib.h>

static int compare_samples(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

struct stats stats_of(double *samples, size_t count)
{
	struct stats stats = { 0 };
	double sum = 0;

	qsort(samples, count, sizeof(*samples), compare_samples);
	for (size_t i = 0; i < count; i++)
		sum += samples[i];
	stats.mean = sum / (double)count;
	stats.min = samples[0];
	stats.median = count % 2 ? samples[count / 2]
				 : (samples[count / 2 - 1] + samples[count / 2]) / 2;
	/* Nearest rank: the smallest sample that at least 99 % do not exceed. */
	stats.p99 = samples[(count * 99 + 99) / 100 - 1];
	stats.max = samples[count - 1];
	return stats;
}
