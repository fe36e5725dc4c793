/* SPDX-License-Identifier: MIT */
/*
 * Threads that share one engine object and copy within their slices of one
 * buffer, in every direction, with sizes from 1 B to 1 MiB, each power of two as often.
 * Every destination is compared, and in the end the whole buffer.  Nothing is left
 * open afterwards.
 */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "soak/soak.h"

#define SLICE MIB(2)
#define LARGEST MIB(1)
#define GUARD 64		/* bytes on both sides of what a read writes */
#define MOST_THREADS 64
#define SHORT_RUN 10		/* copies by each thread */

struct worker {
	struct memory *memory;
	struct gdri_dma_target *target;
	size_t base;
	uint8_t *model;		/* what the slice must hold */
	uint8_t *noise[2];	/* contents to write: pageable, registered */
	uint8_t *host[2];	/* destinations: pageable, registered */
	uint64_t copies;
	uint64_t random;
	uint64_t done[WAYS][2];
	uint64_t stale, wrong;
	pthread_t thread;
};

static void note(struct worker *worker, size_t wrong)
{
	worker->stale += wrong != 0;
	worker->wrong += wrong;
}

/* Reads what the model knows, and looks whether anything beside was written. */
static size_t read_checked(struct worker *worker, size_t at, size_t size, bool registered)
{
	uint8_t *host = worker->host[registered] + GUARD +
			random_below(&worker->random, SLICE - size + 1);
	uint8_t before[GUARD], after[GUARD];

	complement(host, worker->model + at, size);
	memcpy(before, host - GUARD, GUARD);
	memcpy(after, host + size, GUARD);
	must("read", gdri_dma_from_device(worker->target, worker->base + at, host, size));
	return count_differences(host, worker->model + at, size) +
	       count_differences(host - GUARD, before, GUARD) +
	       count_differences(host + size, after, GUARD);
}

static void write_once(struct worker *worker, size_t at, size_t size, bool registered)
{
	const uint8_t *noise = worker->noise[registered] +
			       random_below(&worker->random, SLICE - size + 1);

	must("write", gdri_dma_to_device(worker->target, worker->base + at, noise, size));
	memcpy(worker->model + at, noise, size);
}

static void move_once(struct worker *worker, size_t at, size_t size)
{
	const size_t from = random_below(&worker->random, SLICE - size + 1);
	enum gdri_dma_route route;

	must("copy within the device",
	     gdri_dma_between(worker->target, worker->base + at, worker->target,
			      worker->base + from, size, GDRI_DMA_ROUTE_AUTO, &route));
	memmove(worker->model + at, worker->model + from, size);
}

static void copy_once(struct worker *worker)
{
	const enum way way = (enum way)random_below(&worker->random, WAYS);
	const bool registered = random_below(&worker->random, 2);
	const size_t size = random_size(&worker->random, LARGEST);
	const size_t at = random_below(&worker->random, SLICE - size + 1);

	if (way == WAY_TO)
		write_once(worker, at, size, registered);
	else if (way == WAY_WITHIN)
		move_once(worker, at, size);
	/* What arrived at the device is read back, which is not counted as a copy. */
	note(worker, read_checked(worker, at, size, way == WAY_FROM ? registered : true));
	worker->done[way][way == WAY_WITHIN ? 0 : registered]++;
}

static void *run_worker(void *arg)
{
	struct worker *worker = arg;

	for (uint64_t i = 0; i < worker->copies; i++)
		copy_once(worker);
	return NULL;
}

static void alloc_worker(struct worker *worker)
{
	worker->model = must_alloc(SLICE);
	for (unsigned i = 0; i < 2; i++) {
		worker->noise[i] = must_alloc(SLICE);
		worker->host[i] = must_alloc(SLICE + 2 * GUARD);
		random_fill(&worker->random, worker->noise[i], SLICE);
	}
}

static void start_worker(struct worker *worker, struct gdri_dma *dma)
{
	must("register", gdri_dma_register(dma, worker->noise[1], SLICE));
	must("register", gdri_dma_register(dma, worker->host[1], SLICE + 2 * GUARD));
	random_fill(&worker->random, worker->model, SLICE);
	worker->memory->store(worker->memory->window + worker->base, worker->model, SLICE);
	must("thread", pthread_create(&worker->thread, NULL, run_worker, worker));
}

static void finish_worker(struct worker *worker, struct gdri_dma *dma)
{
	note(worker, read_checked(worker, 0, SLICE, false));
	must("unregister", gdri_dma_unregister(dma, worker->noise[1]));
	must("unregister", gdri_dma_unregister(dma, worker->host[1]));
}

/* Everything that the engine makes is made and given back in here. */
static void run_workers(struct machine *machine, struct worker *workers, unsigned threads,
			uint64_t copies)
{
	const struct gdri_dma_options options = { .engine = -1 };
	struct gdri_dma_target *target;
	struct memory memory;
	struct gdri_dma *dma;
	char text[128];

	memory_open(machine, threads * SLICE, &memory);
	must("engine", gdri_dma_create(machine->port, &options, &dma));
	must("attach", gdri_dma_attach(dma, &memory.described, &target));
	gdri_dma_describe(target, text, sizeof(text));
	printf("%u threads, %" PRIu64 " copies: %s\n", threads, copies, text);
	for (unsigned i = 0; i < threads; i++) {
		workers[i].memory = &memory;
		workers[i].target = target;
		workers[i].base = i * SLICE;
		workers[i].copies = copies / threads + (i < copies % threads);
		start_worker(&workers[i], dma);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < threads; i++)
		finish_worker(&workers[i], dma);
	gdri_dma_detach(target);
	must("destroy", gdri_dma_destroy(dma));
	memory_close(machine, &memory);
}

/*
 * Of this process, without the heap, which grows and does not shrink whatever is given
 * back.  One of the descriptors is the folder's own, each time.
 */
struct holdings {
	unsigned fds, maps, device_maps;
	uint64_t map_bytes;
};

static struct holdings count_holdings(void)
{
	struct holdings found = { 0 };
	unsigned long start, end;
	char line[1024];
	DIR *fds = opendir("/proc/self/fd");
	FILE *maps = fopen("/proc/self/maps", "r");

	must("/proc/self", !fds || !maps);
	while (readdir(fds))
		found.fds++;
	while (fgets(line, sizeof(line), maps)) {
		must("/proc/self/maps", sscanf(line, "%lx-%lx", &start, &end) != 2);
		if (strstr(line, "[heap]"))
			continue;
		found.maps++;
		found.map_bytes += end - start;
		found.device_maps += strstr(line, "/dev/nvidia") != NULL;
	}
	closedir(fds);
	fclose(maps);
	return found;
}

static void print_holdings(const char *when, const struct holdings *h)
{
	printf("%s: %u descriptors, %u mappings of %" PRIu64 " bytes, %u of devices\n", when,
	       h->fds, h->maps, h->map_bytes, h->device_maps);
}

/*
 * What grows once was filled for the first time: a cache of the driver's, or of a
 * sanitizer's.  A leak grows each time.  Descriptors and mappings of devices never grow.
 */
static bool has_leak(struct machine *machine, struct worker *workers, unsigned threads,
		     struct holdings before)
{
	struct holdings after = count_holdings();
	bool leak = after.fds != before.fds || after.device_maps != before.device_maps;

	print_holdings("before", &before);
	print_holdings("after", &after);
	for (unsigned turn = 0; turn < 5 && after.map_bytes > before.map_bytes; turn++) {
		before = after;
		run_workers(machine, workers, threads, SHORT_RUN * threads);
		after = count_holdings();
		print_holdings("once more", &after);
	}
	leak = leak || after.map_bytes > before.map_bytes;
	printf("%s\n", leak ? "LEAKED" : "nothing leaked");
	return leak;
}

static uint64_t report_copies(const struct worker *workers, unsigned threads)
{
	uint64_t done[WAYS][2] = { { 0 } }, copies = 0, stale = 0, wrong = 0;

	for (unsigned i = 0; i < threads; i++) {
		for (int n = 0; n < WAYS * 2; n++) {
			done[n / 2][n % 2] += workers[i].done[n / 2][n % 2];
			copies += workers[i].done[n / 2][n % 2];
		}
		stale += workers[i].stale;
		wrong += workers[i].wrong;
	}
	printf("to: %" PRIu64 " pageable, %" PRIu64 " registered; from: %" PRIu64 " pageable, %"
	       PRIu64 " registered; within: %" PRIu64 "\n", done[WAY_TO][0], done[WAY_TO][1],
	       done[WAY_FROM][0], done[WAY_FROM][1], done[WAY_WITHIN][0]);
	printf("%" PRIu64 " copies, %" PRIu64 " wrong, %" PRIu64 " wrong bytes\n", copies, stale,
	       wrong);
	return stale;
}

int soak_mixed(struct machine *machine, const struct options *options)
{
	static struct worker workers[MOST_THREADS];
	const unsigned threads = options->threads ? options->threads : 8;
	const uint64_t copies = options->rounds ? options->rounds : 1000000;
	struct holdings before;
	double start;
	bool leak;

	must("number of threads", threads > MOST_THREADS);
	for (unsigned i = 0; i < threads; i++) {
		workers[i].random = 4711 + i;
		alloc_worker(&workers[i]);
	}
	/* What a first use leaves for good, such as stacks of threads, is there then. */
	run_workers(machine, workers, threads, SHORT_RUN * threads);
	before = count_holdings();
	start = now();
	run_workers(machine, workers, threads, copies);
	printf("%.1f s\n", now() - start);
	leak = has_leak(machine, workers, threads, before);
	return report_copies(workers, threads) != 0 || leak;
}
