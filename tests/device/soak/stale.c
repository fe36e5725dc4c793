/* SPDX-License-Identifier: MIT */
/*
 * Looks for one stale byte.  Every engine works at once, each with a thread, a
 * channel and memory of its own.  Before each copy its destination becomes the
 * complement of what must arrive; after it every byte is compared.
 *
 * What was written to the device is seen through a window of the CPU: all of it up
 * to 4 KiB; of larger copies 4 KiB somewhere, half of the time at the end, at once, and
 * then all of it by a read of the same engine, whose destination is poisoned as well.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak/counters.h"

/* Sources in the first half of the device memory, destinations in the second. */
#define AREA MIB(2)
#define SAMPLE KIB(4)

/* A round makes this part of what is wanted of each kind, so that all kinds grow together. */
#define ROUNDS 1000
#define SAVE_EVERY 10.0

struct work {
	const struct options *options;
	struct counter (*counter)[CLASSES];
	struct gdri_dma_engine engine;
	struct gdri_dma *dma;
	struct memory memory;
	struct gdri_dma_target *target;
	uint8_t *reference;	/* what the sources hold; registered */
	uint8_t *twin;		/* the same, pageable */
	uint8_t *inverse;	/* its complement */
	uint8_t *host;		/* destinations: registered, pageable, for the CPU's looks */
	uint8_t *loose;
	uint8_t *seen;
	uint64_t random;
	uint64_t turn;
	pthread_t thread;
	atomic_bool done;
};

static double end_at;

static size_t read_poisoned(struct work *work, uint64_t offset, size_t from, uint8_t *host,
			    size_t size)
{
	memcpy(host, work->inverse + from, size);
	must("read", gdri_dma_from_device(work->target, offset, host, size));
	return count_differences(host, work->reference + from, size);
}

static size_t look(struct work *work, size_t to, size_t from, size_t size)
{
	work->memory.load(work->seen, work->memory.window + AREA + to, size);
	return count_differences(work->seen, work->reference + from, size);
}

/* Bytes that are wrong in the destination at AREA + to. */
static size_t look_at_device(struct work *work, size_t to, size_t from, size_t size)
{
	size_t at = size - SAMPLE, wrong;

	if (size <= SAMPLE)
		return look(work, to, from, size);
	if (random_next(&work->random) >> 63)
		at = random_below(&work->random, size - SAMPLE);
	wrong = look(work, to + at, from + at, SAMPLE);
	return wrong + read_poisoned(work, AREA + to, from, work->host + to, size);
}

static size_t pick_size(struct work *work, enum size_class class)
{
	if (class == CLASS_SMALL)
		return 1 + random_below(&work->random, KIB(4));
	return class == CLASS_64K ? KIB(64) : MIB(1);
}

static void copy_once(struct work *work, enum way way, enum size_class class)
{
	const size_t size = pick_size(work, class);
	const size_t from = random_below(&work->random, AREA - size + 1);
	const size_t to = random_below(&work->random, AREA - size + 1);
	const bool pageable = work->turn++ % 8 == 7;
	enum gdri_dma_route route;
	size_t wrong;

	if (way == WAY_FROM) {
		wrong = read_poisoned(work, from, from, (pageable ? work->loose : work->host) + to,
				      size);
		counter_add(&work->counter[way][class], wrong);
		return;
	}
	work->memory.store(work->memory.window + AREA + to, work->inverse + from, size);
	if (way == WAY_TO)
		must("write", gdri_dma_to_device(work->target, AREA + to,
						 (pageable ? work->twin : work->reference) + from,
						 size));
	else
		must("copy within the device",
		     gdri_dma_between(work->target, AREA + to, work->target, from, size,
				      GDRI_DMA_ROUTE_AUTO, &route));
	wrong = look_at_device(work, to, from, size);
	counter_add(&work->counter[way][class], wrong);
}

/* Some copies of one kind; false when nothing is missing of it. */
static bool copy_some(struct work *work, enum way way, enum size_class class)
{
	static const unsigned between_looks_at_the_time[CLASSES] = { 64, 16, 1 };
	const uint64_t target = work->options->copies[class];
	const uint64_t done = work->counter[way][class].copies;
	uint64_t count = target / ROUNDS + 1;

	if (done >= target)
		return false;
	if (count > target - done)
		count = target - done;
	for (uint64_t i = 0; i < count; i++) {
		if (i % between_looks_at_the_time[class] == 0 && now() >= end_at)
			break;
		copy_once(work, way, class);
	}
	return true;
}

static void *run_work(void *arg)
{
	struct work *work = arg;
	bool missing = true;

	while (missing && now() < end_at) {
		missing = false;
		for (int way = 0; way < WAYS; way++)
			for (int class = 0; class < CLASSES; class++)
				if (work->options->ways >> way & 1)
					missing |= copy_some(work, (enum way)way,
							     (enum size_class)class);
	}
	atomic_store(&work->done, true);
	return NULL;
}

static void fill_memory(struct work *work)
{
	uint8_t **const pages[] = { &work->reference, &work->twin, &work->inverse, &work->host,
				    &work->loose, &work->seen };

	for (unsigned i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		*pages[i] = must_alloc(AREA);
	work->random = UINT64_C(0x9e3779b97f4a7c15) * (work->engine.number + 1);
	/* Runs that go on with a file of counters differ. */
	work->random ^= (uint64_t)(now() * 1e9);
	random_fill(&work->random, work->reference, AREA);
	memcpy(work->twin, work->reference, AREA);
	complement(work->inverse, work->reference, AREA);
	must("register", gdri_dma_register(work->dma, work->reference, AREA));
	must("register", gdri_dma_register(work->dma, work->host, AREA));
	/* By the CPU, whose road is not what this looks at. */
	work->memory.store(work->memory.window, work->reference, AREA);
}

static bool open_work(struct machine *machine, struct work *work)
{
	const struct gdri_dma_options options = {
		.engine = (int)work->engine.number,
		.completion = work->options->completion,
	};
	int rc;

	memory_open(machine, 2 * AREA, &work->memory);
	must("engine", gdri_dma_create(machine->port, &options, &work->dma));
	rc = gdri_dma_attach(work->dma, &work->memory.described, &work->target);
	if (rc != 0) {
		printf("COPY%u: not opened (%d)\n", work->engine.number, rc);
		must("destroy", gdri_dma_destroy(work->dma));
		memory_close(machine, &work->memory);
		return false;
	}
	fill_memory(work);
	return true;
}

static void close_work(struct machine *machine, struct work *work)
{
	must("unregister", gdri_dma_unregister(work->dma, work->reference));
	must("unregister", gdri_dma_unregister(work->dma, work->host));
	gdri_dma_detach(work->target);
	must("destroy", gdri_dma_destroy(work->dma));
	memory_close(machine, &work->memory);
}

static bool is_wider(const struct gdri_dma_engine *a, const struct gdri_dma_engine *b)
{
	return a->width != b->width ? a->width > b->width : !a->shared && b->shared;
}

/* What the option asks for moves to the front; how many that are. */
static unsigned choose_engines(int wish, struct gdri_dma_engine *engines, unsigned count)
{
	unsigned chosen = 0;

	if (wish == ENGINE_ALL)
		return count;
	for (unsigned i = 1; i < count; i++)
		if (wish == ENGINE_WIDEST ? is_wider(&engines[i], &engines[chosen]) :
		    engines[i].number == (unsigned)wish)
			chosen = i;
	engines[0] = engines[chosen];
	must("no such engine", wish != ENGINE_WIDEST && engines[0].number != (unsigned)wish);
	return 1;
}

static unsigned open_works(struct machine *machine, const struct options *options,
			   struct counters *counters, struct work *works)
{
	struct gdri_dma_engine engines[GDRI_DMA_MAX_ENGINES];
	unsigned count = machine_list_engines(machine, engines), opened = 0;

	count = choose_engines(options->engine, engines, count);
	for (unsigned i = 0; i < count; i++) {
		const unsigned n = engines[i].number;
		struct work *work = &works[opened];

		*work = (struct work){ .options = options, .engine = engines[i] };
		must("number of the engine", n >= GDRI_DMA_MAX_ENGINES);
		work->counter = counters->of[n];
		if (open_work(machine, work)) {
			counters->known[n] = true;
			opened++;
		}
	}
	must("no engine opened", opened == 0);
	return opened;
}

static bool all_done(struct work *works, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!atomic_load(&works[i].done))
			return false;
	return true;
}

static void run_works(const struct options *options, const struct counters *counters,
		      struct work *works, unsigned count)
{
	const char *completion = completion_names[options->completion];
	double save_at = now() + SAVE_EVERY;

	for (unsigned i = 0; i < count; i++)
		must("thread", pthread_create(&works[i].thread, NULL, run_work, &works[i]));
	while (!all_done(works, count)) {
		usleep(20000);
		if (options->counters && now() >= save_at) {
			counters_write(counters, options->counters, completion);
			save_at = now() + SAVE_EVERY;
		}
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(works[i].thread, NULL);
	if (options->counters)
		counters_write(counters, options->counters, completion);
}

int soak_stale(struct machine *machine, const struct options *options)
{
	static struct work works[GDRI_DMA_MAX_ENGINES];
	static struct counters counters;
	const char *completion = completion_names[options->completion];
	const bool must_find = options->completion == GDRI_DMA_BY_ENGINE_UNSAFE;
	struct load *load = NULL;
	uint64_t stale, bytes;
	unsigned count;
	double start;

	if (options->counters)
		counters_read(&counters, options->counters, completion);
	count = open_works(machine, options, &counters, works);
	if (options->with_load)
		load = load_start(machine);
	start = now();
	end_at = start + options->seconds;
	run_works(options, &counters, works, count);
	printf("%u engines, completion %s, %.1f s\n", count, completion, now() - start);
	if (load) {
		bytes = load_stop(load);
		printf("load: %.1f GB by CUDA\n", (double)bytes / 1e9);
		must("no load ran beside", bytes == 0);
	}
	for (unsigned i = 0; i < count; i++)
		close_work(machine, &works[i]);
	stale = counters_print(&counters, options);
	return must_find ? stale == 0 : stale != 0;
}
