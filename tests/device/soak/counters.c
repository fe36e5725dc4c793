/* SPDX-License-Identifier: MIT */
/* Counts copies, and keeps the counts in a file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak/counters.h"

static void bump(uint64_t *value, uint64_t by)
{
	__atomic_store_n(value, *value + by, __ATOMIC_RELAXED);
}

void counter_add(struct counter *counter, size_t wrong)
{
	if (wrong) {
		bump(&counter->stale, 1);
		bump(&counter->wrong, wrong);
	}
	bump(&counter->copies, 1);
}

struct counter counter_get(const struct counter *counter)
{
	return (struct counter){
		.copies = __atomic_load_n(&counter->copies, __ATOMIC_RELAXED),
		.stale = __atomic_load_n(&counter->stale, __ATOMIC_RELAXED),
		.wrong = __atomic_load_n(&counter->wrong, __ATOMIC_RELAXED),
	};
}

static _Noreturn void refuse(const char *file, const char *why)
{
	fprintf(stderr, "%s: %s\n", file, why);
	exit(1);
}

static int find_name(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
}

static bool read_line(struct counters *counters, const char *line)
{
	struct counter counter;
	char way_name[16], class_name[16];
	unsigned engine;
	int way, class;

	if (sscanf(line, "COPY%u %15s %15s %" SCNu64 " %" SCNu64 " %" SCNu64, &engine, way_name,
		   class_name, &counter.copies, &counter.stale, &counter.wrong) != 6)
		return false;
	way = find_name(way_name, way_names, WAYS);
	class = find_name(class_name, class_names, CLASSES);
	if (engine >= GDRI_DMA_MAX_ENGINES || way < 0 || class < 0)
		return false;
	counters->known[engine] = true;
	counters->of[engine][way][class] = counter;
	return true;
}

void counters_read(struct counters *counters, const char *file, const char *completion)
{
	char line[256], wanted[64];
	FILE *in = fopen(file, "r");

	if (!in && errno == ENOENT)
		return;
	if (!in)
		refuse(file, strerror(errno));
	snprintf(wanted, sizeof(wanted), "completion %s\n", completion);
	if (!fgets(line, sizeof(line), in) || strcmp(line, wanted) != 0)
		refuse(file, "counts of another way of completion");
	while (fgets(line, sizeof(line), in))
		if (!read_line(counters, line))
			refuse(file, "a line that is not a count");
	fclose(in);
}

/* Written beside the file and moved, so that a run that is cut off loses no earlier one. */
void counters_write(const struct counters *counters, const char *file, const char *completion)
{
	char name[4096];
	FILE *out;

	snprintf(name, sizeof(name), "%s.new", file);
	out = fopen(name, "w");
	if (!out)
		refuse(name, strerror(errno));
	fprintf(out, "completion %s\n", completion);
	for (unsigned engine = 0; engine < GDRI_DMA_MAX_ENGINES; engine++)
		for (int i = 0; counters->known[engine] && i < WAYS * CLASSES; i++) {
			const int way = i / CLASSES, class = i % CLASSES;
			const struct counter c = counter_get(&counters->of[engine][way][class]);

			fprintf(out, "COPY%u %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", engine,
				way_names[way], class_names[class], c.copies, c.stale, c.wrong);
		}
	if (fclose(out) != 0 || rename(name, file) != 0)
		refuse(file, strerror(errno));
}

static uint64_t missing_of(uint64_t copies, uint64_t target)
{
	return copies < target ? target - copies : 0;
}

uint64_t counters_print(const struct counters *counters, const struct options *options)
{
	uint64_t copies = 0, stale = 0, missing = 0;

	printf("%-8s %-7s %-6s %12s %12s %10s %12s\n", "engine", "way", "size", "copies",
	       "missing", "stale", "wrong bytes");
	for (unsigned engine = 0; engine < GDRI_DMA_MAX_ENGINES; engine++)
		for (int i = 0; counters->known[engine] && i < WAYS * CLASSES; i++) {
			const int way = i / CLASSES, class = i % CLASSES;
			const struct counter c = counter_get(&counters->of[engine][way][class]);
			const uint64_t lacks = missing_of(c.copies, options->copies[class]);

			if (!(options->ways >> way & 1) && c.copies == 0)
				continue;
			printf("COPY%-4u %-7s %-6s %12" PRIu64 " %12" PRIu64 " %10" PRIu64
			       " %12" PRIu64 "\n", engine, way_names[way], class_names[class],
			       c.copies, lacks, c.stale, c.wrong);
			copies += c.copies;
			stale += c.stale;
			missing += lacks;
		}
	if (missing)
		printf("still missing: %" PRIu64 " copies\n", missing);
	printf("%" PRIu64 " copies, %" PRIu64 " stale\n", copies, stale);
	return stale;
}
