/* SPDX-License-Identifier: MIT */
/* How many copies of each kind were made and looked at, over several runs. */
#ifndef TESTS_DEVICE_SOAK_COUNTERS_H
#define TESTS_DEVICE_SOAK_COUNTERS_H

#include "soak/soak.h"

struct counter {
	uint64_t copies;
	uint64_t stale;		/* copies with a wrong byte */
	uint64_t wrong;		/* bytes */
};

/* Written by the engine's thread alone, read by any; the numbers of engines are below 32. */
struct counters {
	bool known[GDRI_DMA_MAX_ENGINES];
	struct counter of[GDRI_DMA_MAX_ENGINES][WAYS][CLASSES];
};

void counter_add(struct counter *counter, size_t wrong);
struct counter counter_get(const struct counter *counter);

/*
 * The file is text; the first line names the way of completion, and a file of
 * another one ends the program.  A file that is not there yet has no counts.
 */
void counters_read(struct counters *counters, const char *file, const char *completion);
void counters_write(const struct counters *counters, const char *file, const char *completion);

/* The table, then what each still lacks, then "N copies, M stale".  The sum of all stale ones. */
uint64_t counters_print(const struct counters *counters, const struct options *options);

#endif
