/* SPDX-License-Identifier: MIT */
/* Measures a device that was just opened, and finds the sizes from which the engine is faster. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "copy/dma/transfer.h"
#include "os/sys.h"

/*
 * Each figure is the best of a few copies: what disturbs a copy only makes it
 * slower.  The whole takes about 1 ms on an H200.
 */
#define SMALL ((size_t)64)
#define LARGE ((size_t)512 << 10)
#define SMALL_RUNS 8
#define LARGE_RUNS 3

/* A road's time for n bytes: fixed_ns + n / rate. */
struct cost {
	double fixed_ns;
	double ns_per_byte;
};

/*
 * Where nothing is measured: an H200 behind 16 lanes of the fifth PCIe
 * generation and a Xeon (docs/results/h200/).
 */
static const struct cost usual_engine[2] = { { 3700, 1e9 / 48e9 }, { 3000, 1e9 / 48e9 } };
static const struct cost usual_bounce[2] = { { 3700, 1e9 / 22e9 }, { 3000, 1e9 / 22e9 } };
static const struct cost usual_cpu[2] = { { 100, 1e9 / 17e9 }, { 100, 1e9 / 1.0e9 } };

struct trial {
	struct gdri_dma_target target;	/* the scratch memory */
	gdri_dma_copy_fn by_cpu;	/* NULL: by the engine */
	bool reads;
	uint8_t *host;
};

static int run_trial(struct trial *trial, size_t size)
{
	uint8_t *mapping = trial->target.device->scratch;

	if (trial->by_cpu && trial->reads)
		trial->by_cpu(trial->host, mapping, size);
	else if (trial->by_cpu)
		trial->by_cpu(mapping, trial->host, size);
	else if (trial->reads)
		return gdri_dma_from_device(&trial->target, 0, trial->host, size);
	else
		return gdri_dma_to_device(&trial->target, 0, trial->host, size);
	return 0;
}

static int find_best(struct trial *trial, size_t size, unsigned runs, double *best_ns)
{
	for (unsigned i = 0; i < runs; i++) {
		const uint64_t start = gdri_dma_now_ns();
		const int rc = run_trial(trial, size);
		const double took = (double)(gdri_dma_now_ns() - start);

		if (rc != 0)
			return rc;
		if (i == 0 || took < *best_ns)
			*best_ns = took;
	}
	return 0;
}

static int find_cost(struct trial *trial, size_t small, size_t large, struct cost *cost)
{
	double few = 0, many = 0;
	int rc;

	/* The first copy meets cold caches, or memory that no engine has read yet. */
	rc = run_trial(trial, large);
	if (rc == 0)
		rc = find_best(trial, small, SMALL_RUNS, &few);
	if (rc == 0)
		rc = find_best(trial, large, LARGE_RUNS, &many);
	if (rc != 0)
		return rc;
	if (many <= few)
		many = few + 1;
	cost->ns_per_byte = (many - few) / (double)(large - small);
	cost->fixed_ns = few - (double)small * cost->ns_per_byte;
	return 0;
}

/* The first size, in steps of a quarter, at which the engine takes no longer. */
static size_t find_crossover(const struct cost *cpu, const struct cost *engine)
{
	for (size_t size = SMALL; size <= ((size_t)1 << 30); size += size / 4) {
		const double n = (double)size;

		if (engine->fixed_ns + n * engine->ns_per_byte <=
		    cpu->fixed_ns + n * cpu->ns_per_byte)
			return size;
	}
	return SIZE_MAX;
}

static uint64_t rate_of(const struct cost *cost)
{
	return (uint64_t)(1e9 / cost->ns_per_byte);
}

static void conclude(struct gdri_dma_calibration *result, const struct cost engine[2],
		     const struct cost bounce[2], const struct cost cpu[2])
{
	*result = (struct gdri_dma_calibration){
		.to_device_ns = (uint64_t)engine[0].fixed_ns,
		.from_device_ns = (uint64_t)engine[1].fixed_ns,
		.to_device_rate = rate_of(&engine[0]),
		.from_device_rate = rate_of(&engine[1]),
		.bounce_to_rate = rate_of(&bounce[0]),
		.bounce_from_rate = rate_of(&bounce[1]),
	};
	for (unsigned way = 0; way < 2; way++) {
		result->crossover[way][0] = find_crossover(&cpu[way], &bounce[way]);
		result->crossover[way][1] = find_crossover(&cpu[way], &engine[way]);
	}
}

/*
 * The CPU's own road.  Its stores are posted, and the first ones cost nothing
 * but room in a queue, so the sizes are such that the bus is what limits them;
 * its loads take 1 us for every few lines, so theirs are small.
 */
static int measure_cpu(struct trial trial, struct cost cpu[2])
{
	const struct gdri_dma_options *options = &trial.target.device->dma->options;
	int rc = 0;

	trial.by_cpu = options->to_mapping;
	trial.reads = false;
	if (options->to_mapping)
		rc = find_cost(&trial, 64 << 10, LARGE, &cpu[0]);
	trial.by_cpu = options->from_mapping;
	trial.reads = true;
	if (rc == 0 && options->from_mapping)
		rc = find_cost(&trial, SMALL, 4 << 10, &cpu[1]);
	return rc;
}

static int measure(struct gdri_dma_device *device, uint8_t *pageable)
{
	struct trial trial = {
		.target = {
			.device = device,
			.view = { .address = device->scratch_address },
		},
	};
	struct cost engine[2], bounce[2], cpu[2] = { usual_cpu[0], usual_cpu[1] };
	int rc = 0;

	for (unsigned way = 0; way < 2 && rc == 0; way++) {
		trial.reads = way == 1;
		/* Bounce memory is registered, and nobody else takes chunks of it yet. */
		trial.host = device->bounce.base;
		rc = find_cost(&trial, SMALL, LARGE, &engine[way]);
		trial.host = pageable;
		if (rc == 0)
			rc = find_cost(&trial, SMALL, LARGE, &bounce[way]);
	}
	if (rc == 0)
		rc = measure_cpu(trial, cpu);
	if (rc == 0)
		conclude(&device->calibration, engine, bounce, cpu);
	return rc;
}

int gdri_dma_device_calibrate(struct gdri_dma_device *device)
{
	void *pageable;
	int rc;

	if (!device->dma->options.calibrate) {
		conclude(&device->calibration, usual_engine, usual_bounce, usual_cpu);
		return 0;
	}
	rc = gdri_os_mmap(LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0,
			  &pageable);
	if (rc != 0)
		return rc;
	memset(pageable, 0, LARGE);
	rc = measure(device, pageable);
	gdri_os_munmap(pageable, LARGE);
	return rc;
}
