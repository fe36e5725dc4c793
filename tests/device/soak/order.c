/* SPDX-License-Identifier: MIT */
/*
 * Program order across roads.  Each thread stores through the window and lets an
 * engine read at once, lets an engine write and loads or stores through the window at
 * once, over ranges that overlap, and finds what it did last in every byte.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "soak/soak.h"

#define SLICE KIB(512)
#define LARGEST KIB(64)
#define NEAR KIB(2)
#define MOST_THREADS 64

enum action { CPU_STORE, CPU_LOAD, ENGINE_WRITE, ENGINE_READ, ENGINE_MOVE };

/* One access; everything about it is settled before the first one of its round. */
struct step {
	enum action action;
	unsigned how;		/* CPU_STORE */
	size_t at, size;	/* in the slice */
	size_t from;		/* ENGINE_MOVE */
	const uint8_t *content;	/* of what writes */
	uint8_t *found;		/* of what reads */
	uint8_t *expected;
};
#define MOST_STEPS 8
#define STEP_ROOM (LARGEST + 64)	/* of found and expected */

struct litmus {
	struct memory *memory;
	struct gdri_dma_target *target;
	size_t base;		/* of the thread's slice */
	uint8_t *model;		/* what the slice must hold after the steps so far */
	uint8_t *noise;		/* contents to write: registered, pageable */
	uint8_t *loose_noise;
	uint8_t *found;		/* for each step: registered, pageable */
	uint8_t *loose_found;
	uint8_t *expected;
	struct step step[MOST_STEPS];
	unsigned steps;
	uint64_t rounds;
	uint64_t random;
	uint64_t stale, wrong;
	pthread_t thread;
};

/* Ranges of a round lie around the same place, so that they overlap. */
static size_t pick_place(struct litmus *litmus, size_t centre, size_t size)
{
	static const size_t align[] = { 1, 1, 4, 64 };
	const size_t lead = random_below(&litmus->random, (size < NEAR ? size : NEAR) + 1);
	size_t at = centre > lead ? centre - lead : 0;

	at &= ~(align[random_below(&litmus->random, 4)] - 1);
	return at + size > SLICE ? SLICE - size : at;
}

static struct step *add_step(struct litmus *litmus, enum action action, size_t centre, size_t most)
{
	struct step *step = &litmus->step[litmus->steps++];

	*step = (struct step){ .action = action, .size = random_size(&litmus->random, most) };
	step->at = pick_place(litmus, centre, step->size);
	return step;
}

static void plan_write(struct litmus *litmus, enum action action, size_t centre)
{
	struct step *step = add_step(litmus, action, centre, LARGEST);
	const bool loose = random_below(&litmus->random, 4) == 0;

	step->how = (unsigned)random_below(&litmus->random, 3);
	step->content = (loose ? litmus->loose_noise : litmus->noise) +
			random_below(&litmus->random, SLICE - step->size + 1);
	memcpy(litmus->model + step->at, step->content, step->size);
}

/* Loads are slow, so there is less of them. */
static void plan_read(struct litmus *litmus, enum action action, size_t centre)
{
	const size_t room = litmus->steps * STEP_ROOM;
	const bool loose = random_below(&litmus->random, 4) == 0;
	struct step *step = add_step(litmus, action, centre,
				     action == CPU_LOAD ? KIB(4) : LARGEST);

	step->found = (loose ? litmus->loose_found : litmus->found) + room +
		      random_below(&litmus->random, 64);
	step->expected = litmus->expected + room;
	memcpy(step->expected, litmus->model + step->at, step->size);
	complement(step->found, step->expected, step->size);
}

static void plan_move(struct litmus *litmus, size_t from, size_t to)
{
	struct step *step = add_step(litmus, ENGINE_MOVE, to, LARGEST);

	step->from = pick_place(litmus, from, step->size);
	memmove(litmus->model + step->at, litmus->model + step->from, step->size);
}

/* Nothing stands between the accesses of a round: buffers are poisoned and compared outside. */
static void plan_round(struct litmus *litmus)
{
	const size_t centre = random_below(&litmus->random, SLICE);
	const size_t elsewhere = random_below(&litmus->random, SLICE);
	const uint64_t dice = random_next(&litmus->random) >> 32;

	litmus->steps = 0;
	/* Stores, then an engine that reads them. */
	plan_write(litmus, CPU_STORE, centre);
	if (dice & 1)
		plan_move(litmus, centre, elsewhere);
	plan_read(litmus, ENGINE_READ, (dice & 3) == 3 ? elsewhere : centre);

	/* An engine that writes, then loads and stores, then an engine again. */
	if (dice & 4)
		plan_write(litmus, ENGINE_WRITE, centre);
	else
		plan_move(litmus, elsewhere, centre);
	if (dice & 8)
		plan_read(litmus, CPU_LOAD, centre);
	plan_write(litmus, CPU_STORE, centre);
	plan_read(litmus, ENGINE_READ, centre);
}

/* No fence behind these: the engine's submission has to bring them out by itself. */
static void store_bare(uint8_t *to, const uint8_t *from, size_t size)
{
	for (; size > 0 && (uintptr_t)to % 4; size--)
		*(volatile uint8_t *)to++ = *from++;
	for (; size >= 4; size -= 4, to += 4, from += 4) {
		uint32_t word;

		memcpy(&word, from, 4);
		*(volatile uint32_t *)to = word;
	}
	for (; size > 0; size--)
		*(volatile uint8_t *)to++ = *from++;
}

static void store_by_cpu(const struct litmus *litmus, const struct step *step)
{
	uint8_t *window = litmus->memory->window + litmus->base + step->at;

	if (step->how == 0)
		store_bare(window, step->content, step->size);
	else if (step->how == 1)
		memcpy(window, step->content, step->size);
	else
		litmus->memory->store(window, step->content, step->size);
}

static void do_step(const struct litmus *litmus, const struct step *step)
{
	const uint64_t at = litmus->base + step->at;
	enum gdri_dma_route route;

	switch (step->action) {
	case CPU_STORE:
		store_by_cpu(litmus, step);
		break;
	case CPU_LOAD:
		litmus->memory->load(step->found, litmus->memory->window + at, step->size);
		break;
	case ENGINE_WRITE:
		must("write", gdri_dma_to_device(litmus->target, at, step->content, step->size));
		break;
	case ENGINE_READ:
		must("read", gdri_dma_from_device(litmus->target, at, step->found, step->size));
		break;
	case ENGINE_MOVE:
		must("copy within the device",
		     gdri_dma_between(litmus->target, at, litmus->target,
				      litmus->base + step->from, step->size,
				      GDRI_DMA_ROUTE_AUTO, &route));
		break;
	}
}

static void check(struct litmus *litmus, const uint8_t *found, const uint8_t *expected, size_t size)
{
	const size_t wrong = count_differences(found, expected, size);

	litmus->stale += wrong != 0;
	litmus->wrong += wrong;
}

static void *run_litmus(void *arg)
{
	struct litmus *litmus = arg;

	for (uint64_t i = 0; i < litmus->rounds; i++) {
		plan_round(litmus);
		for (unsigned k = 0; k < litmus->steps; k++)
			do_step(litmus, &litmus->step[k]);
		for (unsigned k = 0; k < litmus->steps; k++)
			if (litmus->step[k].found)
				check(litmus, litmus->step[k].found, litmus->step[k].expected,
				      litmus->step[k].size);
	}
	return NULL;
}

static void open_litmus(struct litmus *litmus, struct gdri_dma *dma)
{
	litmus->model = must_alloc(SLICE);
	litmus->noise = must_alloc(SLICE);
	litmus->loose_noise = must_alloc(SLICE);
	litmus->found = must_alloc(MOST_STEPS * STEP_ROOM);
	litmus->loose_found = must_alloc(MOST_STEPS * STEP_ROOM);
	litmus->expected = must_alloc(MOST_STEPS * STEP_ROOM);
	must("register", gdri_dma_register(dma, litmus->noise, SLICE));
	must("register", gdri_dma_register(dma, litmus->found, MOST_STEPS * STEP_ROOM));
	random_fill(&litmus->random, litmus->model, SLICE);
	random_fill(&litmus->random, litmus->noise, SLICE);
	random_fill(&litmus->random, litmus->loose_noise, SLICE);
	litmus->memory->store(litmus->memory->window + litmus->base, litmus->model, SLICE);
}

/* The whole slice, so that nothing was written beside the ranges. */
static void close_litmus(struct litmus *litmus, struct gdri_dma *dma)
{
	litmus->memory->load(litmus->loose_noise, litmus->memory->window + litmus->base, SLICE);
	check(litmus, litmus->loose_noise, litmus->model, SLICE);
	must("unregister", gdri_dma_unregister(dma, litmus->noise));
	must("unregister", gdri_dma_unregister(dma, litmus->found));
}

int soak_order(struct machine *machine, const struct options *options)
{
	static struct litmus litmus[MOST_THREADS];
	const unsigned threads = options->threads ? options->threads : 4;
	const uint64_t rounds = options->rounds ? options->rounds : 1000000;
	const struct gdri_dma_options engine_options = { .engine = -1 };
	struct gdri_dma_target *target;
	struct memory memory;
	struct gdri_dma *dma;
	uint64_t stale = 0, wrong = 0;
	double start;

	must("number of threads", threads > MOST_THREADS);
	memory_open(machine, threads * SLICE, &memory);
	must("engine", gdri_dma_create(machine->port, &engine_options, &dma));
	must("attach", gdri_dma_attach(dma, &memory.described, &target));
	for (unsigned i = 0; i < threads; i++) {
		litmus[i] = (struct litmus){
			.memory = &memory,
			.target = target,
			.base = i * SLICE,
			.rounds = (rounds + threads - 1) / threads,
			.random = 4711 + i,
		};
		open_litmus(&litmus[i], dma);
	}
	start = now();
	for (unsigned i = 0; i < threads; i++)
		must("thread", pthread_create(&litmus[i].thread, NULL, run_litmus, &litmus[i]));
	for (unsigned i = 0; i < threads; i++)
		pthread_join(litmus[i].thread, NULL);
	printf("%u threads, %.1f s\n", threads, now() - start);
	for (unsigned i = 0; i < threads; i++) {
		close_litmus(&litmus[i], dma);
		stale += litmus[i].stale;
		wrong += litmus[i].wrong;
	}
	gdri_dma_detach(target);
	must("destroy", gdri_dma_destroy(dma));
	memory_close(machine, &memory);
	printf("%" PRIu64 " rounds, %" PRIu64 " looks with stale bytes, %" PRIu64 " stale bytes\n",
	       (rounds + threads - 1) / threads * threads, stale, wrong);
	return stale != 0;
}
