/* SPDX-License-Identifier: MIT */
/* The sweep: sizes, rounds, and one sample after another. */
#include "sweep.h"

#include <stdlib.h>

#include "check.h"
#include "common/json.h"
#include "common/report.h"
#include "output.h"

/*
 * A size ends after so many rounds or so much time, but not before the least
 * number of rounds: one CPU read of 64 MiB takes 90 ms.  The full sweep then
 * takes one to two minutes.
 */
#define ROUNDS_MIN 11
#define CELL_BUDGET_NS 800000000ull

/* Between these, where the roads cross, 3 * 2^k is measured beside the powers of two. */
#define DENSE_MIN 768
#define DENSE_MAX (3u << 20)

struct run {
	struct bench bench;
	const struct sweep_options *options;
	double *samples[ROADS_MAX];
	struct cell cells[CELLS_MAX];
	int count;
};

static size_t follow_size(size_t size)
{
	bool power = (size & (size - 1)) == 0;
	size_t next = power ? size / 2 * 3 : size / 3 * 4;

	return power && (next < DENSE_MIN || next > DENSE_MAX) ? size * 2 : next;
}

/* The least size of the series above this one, which need not be in the series. */
static size_t next_size(size_t after)
{
	size_t size = 1;

	while (size <= after)
		size = follow_size(size);
	return size;
}

/* Fisher-Yates with xorshift32: no road always follows the same other one. */
static void shuffle_order(int *order, int count)
{
	static uint32_t state = 1;

	for (int i = count - 1; i > 0; i--) {
		int other, kept = order[i];

		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		other = (int)(state % (uint32_t)(i + 1));
		order[i] = order[other];
		order[other] = kept;
	}
}

/*
 * The untimed copy puts caches and buses into the state that this road leaves
 * itself, whatever road came before.
 */
static double time_copy(const struct bench *bench, const struct road *road, size_t size)
{
	uint64_t start, end;
	int result;

	road_check(road, road->copy(bench, road, size));
	start = clock_ns();
	result = road->copy(bench, road, size);
	end = clock_ns();
	road_check(road, result);
	return (double)(end - start) / 1000;
}

static bool is_over(const struct sweep_options *options, uint64_t round, uint64_t start)
{
	if (round >= options->iterations)
		return true;
	return round >= ROUNDS_MIN && clock_ns() - start > CELL_BUDGET_NS;
}

static void time_rounds(struct run *run, const struct road *roads, int count, struct cell *cell)
{
	uint64_t start = clock_ns();
	int order[ROADS_MAX], used = 0;

	for (int i = 0; i < count; i++)
		if (cell->present[i])
			order[used++] = i;
	for (cell->rounds = 0; !is_over(run->options, cell->rounds, start); cell->rounds++) {
		shuffle_order(order, used);
		for (int i = 0; i < used; i++)
			run->samples[order[i]][cell->rounds] =
				time_copy(&run->bench, &roads[order[i]], cell->size);
	}
	for (int i = 0; i < used; i++)
		cell->us[order[i]] = stats_of(run->samples[order[i]], cell->rounds);
}

/* Bytes are compared before the rounds, which warms the roads up, and after them. */
static void measure_cell(struct run *run, struct cell *cell)
{
	enum direction direction = cell->direction;
	struct bench *bench = &run->bench;
	int count;
	const struct road *roads = roads_of(direction, &count);

	progress("%s, %zu bytes", direction_name(direction), cell->size);
	for (int i = 0; i < count; i++)
		cell->present[i] = road_exists(bench, &roads[i], cell->size) &&
				   road_verify(bench, direction, &roads[i], cell->size);
	time_rounds(run, roads, count, cell);
	for (int i = 0; i < count; i++)
		if (cell->present[i])
			road_verify(bench, direction, &roads[i], cell->size);
}

static void measure_direction(struct run *run, enum direction direction)
{
	output_direction(run->options->format, direction);
	for (size_t size = run->options->min; size <= run->options->max; size = next_size(size)) {
		struct cell *cell = &run->cells[run->count];

		*cell = (struct cell){ .direction = direction, .size = size };
		measure_cell(run, cell);
		output_cell(run->options->format, cell);
		run->count++;
	}
}

void sweep_run(const struct sweep_options *options)
{
	struct run *run = calloc(1, sizeof(*run));
	struct gpu gpu;

	if (!run)
		fail("no host memory");
	run->options = options;
	output_start(options, &gpu);
	bench_open(&gpu, options->max, &run->bench);
	for (int i = 0; i < ROADS_MAX; i++) {
		run->samples[i] = calloc(options->iterations, sizeof(double));
		if (!run->samples[i])
			fail("no host memory for %zu samples: lower --iterations",
			     (size_t)options->iterations);
	}
	output_table(options->format);
	for (int direction = 0; direction < DIRECTION_COUNT; direction++)
		if (options->directions[direction])
			measure_direction(run, (enum direction)direction);
	output_table_end();
	if (options->check)
		check_print(options->format, run->cells, run->count);
	for (int i = 0; i < ROADS_MAX; i++)
		free(run->samples[i]);
	bench_close(&run->bench);
	gpu_release(&gpu);
	free(run);
	json_close();
}
