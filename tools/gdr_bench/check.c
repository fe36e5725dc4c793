/* SPDX-License-Identifier: MIT */
/* Compares the automatic road with its rivals of the same run and with fixed times. */
#include "check.h"

#include <stdio.h>

#include "common/json.h"
#include "common/report.h"

/* The automatic road may be so much slower than the best rival: noise of one run. */
#define ALLOWANCE 1.03

#define NO_LIMIT 0.0	/* the ratio is told, not judged */

/* What one size of one automatic road is held against, within one run. */
struct rivals {
	enum direction direction;
	int ours;
	int theirs[2];		/* -1: none */
	size_t judged_to;	/* the largest size with a verdict */
	double allowance;
};

static const struct rivals rival_table[] = {
	{ H2D, AUTO_PAGEABLE, { CPU_ROAD, CUDA_PAGEABLE }, 16u << 20, ALLOWANCE },
	{ H2D, AUTO_REGISTERED, { CPU_ROAD, CUDA_PINNED }, 16u << 20, ALLOWANCE },
	{ D2H, AUTO_PAGEABLE, { CPU_ROAD, CUDA_PAGEABLE }, 16u << 20, ALLOWANCE },
	{ D2H, AUTO_REGISTERED, { CPU_ROAD, CUDA_PINNED }, 16u << 20, ALLOWANCE },
	{ D2D, D2D_AUTO, { D2D_CUDA, -1 }, 2u << 20, 1.0 },
};

/*
 * Microseconds to reach on an H200 behind PCIe 5 x16: what a first proof of the
 * copy-engine channel reached there, or one step beyond.
 */
static const struct target {
	enum direction direction;
	int ours;
	size_t size;
	double us;
} target_table[] = {
	{ D2H, AUTO_PAGEABLE, 4096, 3.4 },
	{ D2H, AUTO_PAGEABLE, 65536, 7.0 },
	{ D2H, AUTO_PAGEABLE, 1048576, 50 },
	{ D2H, AUTO_REGISTERED, 4096, 3.2 },
	{ D2H, AUTO_REGISTERED, 65536, 4.0 },
	{ D2H, AUTO_REGISTERED, 1048576, 22 },
	{ H2D, AUTO_PAGEABLE, 1048576, 50 },
	{ H2D, AUTO_REGISTERED, 1048576, 23.5 },
	{ D2D, D2D_AUTO, 4096, 3.2 },
	{ D2D, D2D_AUTO, 1048576, 5.3 },
};

struct tally {
	enum format format;
	unsigned ok, missed;
};

/* limit: the largest ratio that is good, or NO_LIMIT. */
static void print_verdict(struct tally *tally, const struct cell *cell, int ours,
			  const char *against, double theirs_us, double limit)
{
	int count;
	const struct road *roads = roads_of(cell->direction, &count);
	double ours_us = cell->us[ours].median, ratio = ours_us / theirs_us;
	const char *verdict = limit == NO_LIMIT ? "reported" : ratio <= limit ? "ok" : "missed";

	if (limit != NO_LIMIT)
		*(ratio <= limit ? &tally->ok : &tally->missed) += 1;
	if (tally->format == FORMAT_TEXT)
		say("%9s %10zu %15s %10.3f %15s %10.3f %7.3f  %s\n",
		    direction_name(cell->direction), cell->size, roads[ours].name, ours_us,
		    against, theirs_us, ratio, verdict);
	if (tally->format == FORMAT_CSV)
		printf("# check,%s,%zu,%s,%.3f,%s,%.3f,%.3f,%s\n",
		       direction_name(cell->direction), cell->size, roads[ours].name, ours_us,
		       against, theirs_us, ratio, verdict);
	json_open_object(NULL);
	json_string("direction", direction_name(cell->direction));
	json_uint("bytes", cell->size);
	json_string("road", roads[ours].name);
	json_double("us", ours_us);
	json_string("against", against);
	json_double("against_us", theirs_us);
	json_double("ratio", ratio);
	json_string("verdict", verdict);
	json_close();
}

static void judge_rivals(struct tally *tally, const struct cell *cell, const struct rivals *rivals)
{
	int count, best = -1;
	const struct road *roads = roads_of(cell->direction, &count);

	if (rivals->direction != cell->direction || !cell->present[rivals->ours])
		return;
	for (int i = 0; i < 2; i++) {
		int road = rivals->theirs[i];

		if (road >= 0 && cell->present[road] &&
		    (best < 0 || cell->us[road].median < cell->us[best].median))
			best = road;
	}
	if (best >= 0)
		print_verdict(tally, cell, rivals->ours, roads[best].name, cell->us[best].median,
			      cell->size <= rivals->judged_to ? rivals->allowance : NO_LIMIT);
}

static void judge_target(struct tally *tally, const struct cell *cell, const struct target *target)
{
	if (target->direction == cell->direction && target->size == cell->size &&
	    cell->present[target->ours])
		print_verdict(tally, cell, target->ours, "target", target->us, 1.0);
}

void check_print(enum format format, const struct cell *cells, int count)
{
	struct tally tally = { .format = format };

	say("\n%9s %10s %15s %10s %15s %10s %7s  verdict\n", "direction", "bytes", "road", "us",
	    "against", "us", "ratio");
	if (format == FORMAT_CSV)
		printf("# check,direction,bytes,road,us,against,against_us,ratio,verdict\n");
	json_open_array("check");
	for (size_t i = 0; i < sizeof(rival_table) / sizeof(rival_table[0]); i++)
		for (int cell = 0; cell < count; cell++)
			judge_rivals(&tally, &cells[cell], &rival_table[i]);
	for (size_t i = 0; i < sizeof(target_table) / sizeof(target_table[0]); i++)
		for (int cell = 0; cell < count; cell++)
			judge_target(&tally, &cells[cell], &target_table[i]);
	json_close();
	say("check: %u ok, %u missed\n", tally.ok, tally.missed);
	if (format == FORMAT_CSV)
		printf("# check: %u ok, %u missed\n", tally.ok, tally.missed);
	json_uint("check_ok", tally.ok);
	json_uint("check_missed", tally.missed);
}
