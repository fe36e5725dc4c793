/* SPDX-License-Identifier: MIT */
/* Many threads on one device: mixed sizes and ways, every byte checked. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dma/helper_dma.h"

#define THREADS 8
#define SHARE ((size_t)512 << 10)	/* of the device memory: one thread's own */

struct crowd {
	struct dma_rig rig;
	struct dma_memory memory;
	_Atomic unsigned failures;
};

struct member {
	struct crowd *crowd;
	unsigned number;
	pthread_t thread;
};

static void note(struct crowd *crowd, bool good)
{
	if (!good)
		crowd->failures++;
}

/* Up to SHARE, small ones as often as large ones. */
static size_t random_size(uint32_t *random)
{
	const unsigned bits = dma_random(random) % 20;

	return 1 + dma_random(random) % ((size_t)1 << bits);
}

static void copy_once(struct crowd *crowd, uint64_t base, uint8_t *host, uint8_t *check,
		      uint32_t *random)
{
	struct gdri_dma_target *target = crowd->memory.target;
	const size_t size = random_size(random);
	const uint64_t offset = base + dma_random(random) % (SHARE - size + 1);
	const size_t skew = dma_random(random) % 128;

	dma_fill(host + skew, size, *random);
	memset(check + skew, 0x99, size);
	note(crowd, gdri_dma_to_device(target, offset, host + skew, size) == 0);
	note(crowd, gdri_dma_from_device(target, offset, check + skew, size) == 0);
	note(crowd, memcmp(host + skew, check + skew, size) == 0);
}

static void *run_member(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	uint8_t *host = dma_pages(SHARE + 4096), *check = dma_pages(SHARE + 4096);
	uint32_t random = 77 + member->number;
	const unsigned turns = dma_turns(400);

	for (unsigned turn = 0; turn < turns; turn++) {
		/* Some of the time its memory is registered, while all the others copy. */
		if (member->number % 2 == 0 && turn % 16 == 3)
			note(crowd, gdri_dma_register(crowd->rig.dma, check, SHARE + 128) == 0);
		copy_once(crowd, member->number * SHARE, host, check, &random);
		if (member->number % 2 == 0 && turn % 16 == 12)
			note(crowd, gdri_dma_unregister(crowd->rig.dma, check) == 0);
	}
	if (gdri_dma_is_registered(crowd->rig.dma, check, 1))
		note(crowd, gdri_dma_unregister(crowd->rig.dma, check) == 0);
	return NULL;
}

static void run_crowd(const struct gdri_dma_options *options)
{
	struct member members[THREADS];
	struct crowd crowd = { .failures = 0 };

	dma_open(&crowd.rig, options);
	dma_attach(&crowd.rig, 0, THREADS * SHARE, &crowd.memory);
	for (unsigned i = 0; i < THREADS; i++) {
		members[i] = (struct member){ .crowd = &crowd, .number = i };
		REQUIRE_EQ(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		REQUIRE_EQ(pthread_join(members[i].thread, NULL), 0);
	CHECK_EQ(crowd.failures, 0);
	dma_free(&crowd.rig, &crowd.memory);
	dma_close(&crowd.rig);
}

static void plenty_body(void)
{
	const struct gdri_dma_options options = dma_options();

	run_crowd(&options);
}

/* Two chunks for eight threads: whoever has one must get on without another. */
static void two_chunks_body(void)
{
	struct gdri_dma_options options = dma_options();

	options.bounce_bytes = 16384;
	options.chunk_bytes = 8192;
	run_crowd(&options);
}

static void one_chunk_body(void)
{
	struct gdri_dma_options options = dma_options();

	options.bounce_bytes = options.chunk_bytes = 65536;
	run_crowd(&options);
}

static void one_engine_body(void)
{
	struct gdri_dma_options options = dma_options();

	options.engine = 2;
	options.first_ticket = 0xffffff00;
	run_crowd(&options);
}

/* Attaching and detaching beside copies; each thread opens the device at once. */
static void *attach_often(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	const struct gdri_dma_memory described = dma_describe(&crowd->memory);
	uint8_t *host = dma_pages(8192), *check = dma_pages(8192);
	struct gdri_dma_target *target;

	for (unsigned turn = 0; turn < dma_turns(100); turn++) {
		if (gdri_dma_attach(crowd->rig.dma, &described, &target) != 0) {
			note(crowd, false);
			break;
		}
		dma_fill(host, 8192, turn + member->number * 1000);
		note(crowd, gdri_dma_to_device(target, member->number * SHARE, host, 8192) == 0);
		note(crowd, gdri_dma_from_device(target, member->number * SHARE, check, 8192) == 0);
		note(crowd, memcmp(host, check, 8192) == 0);
		gdri_dma_detach(target);
	}
	return NULL;
}

static void attaching_body(void)
{
	const struct gdri_dma_options options = dma_options();
	struct crowd crowd = { .failures = 0 };
	struct member members[THREADS];

	dma_open(&crowd.rig, &options);
	dma_alloc(&crowd.rig, 0, THREADS * SHARE, &crowd.memory);
	for (unsigned i = 0; i < THREADS; i++) {
		members[i] = (struct member){ .crowd = &crowd, .number = i };
		REQUIRE_EQ(pthread_create(&members[i].thread, NULL, attach_often, &members[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		REQUIRE_EQ(pthread_join(members[i].thread, NULL), 0);
	CHECK_EQ(crowd.failures, 0);
	dma_free(&crowd.rig, &crowd.memory);
	dma_close(&crowd.rig);
}

/*
 * A range comes and goes under a thread that copies to and from it all the time:
 * unregister waits for the copy that uses it, and the next one takes the other way.
 * (An engine that touches memory which was taken from it is an error.)
 */
struct flicker {
	struct crowd *crowd;
	uint8_t *host;
	_Atomic bool stop;
};

static void *copy_always(void *arg)
{
	struct flicker *flicker = arg;
	uint8_t *check = dma_pages(SHARE);
	struct gdri_dma_target *target = flicker->crowd->memory.target;

	dma_fill(check, SHARE, 3);
	while (!flicker->stop) {
		memcpy(flicker->host, check, SHARE);
		note(flicker->crowd, gdri_dma_to_device(target, 0, flicker->host, SHARE) == 0);
		memset(flicker->host, 0, SHARE);
		note(flicker->crowd, gdri_dma_from_device(target, 0, flicker->host, SHARE) == 0);
		note(flicker->crowd, memcmp(flicker->host, check, SHARE) == 0);
	}
	return NULL;
}

static void flicker_body(void)
{
	const struct gdri_dma_options options = dma_options();
	struct crowd crowd = { .failures = 0 };
	struct flicker flicker = { .crowd = &crowd, .host = dma_pages(SHARE) };
	pthread_t thread;

	dma_open(&crowd.rig, &options);
	dma_attach(&crowd.rig, 0, SHARE, &crowd.memory);
	REQUIRE_EQ(pthread_create(&thread, NULL, copy_always, &flicker), 0);
	for (unsigned turn = 0; turn < dma_turns(500); turn++) {
		CHECK_EQ(gdri_dma_register(crowd.rig.dma, flicker.host, SHARE), 0);
		usleep(turn % 7 * 100);
		CHECK_EQ(gdri_dma_unregister(crowd.rig.dma, flicker.host), 0);
	}
	flicker.stop = true;
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(crowd.failures, 0);
	dma_free(&crowd.rig, &crowd.memory);
	dma_close(&crowd.rig);
}

static void unregister_in_flight(void)
{
	dma_run_with("dma=delay:20", flicker_body);
}

static void plenty(void)
{
	dma_run_with("", plenty_body);
}

static void small_rings(void)
{
	dma_run_with("dma=small", plenty_body);
}

static void slow_channel(void)
{
	dma_run_with("dma=delay:50", two_chunks_body);
}

static void two_chunks(void)
{
	dma_run_with("", two_chunks_body);
}

static void one_chunk(void)
{
	dma_run_with("dma=small", one_chunk_body);
}

static void one_engine(void)
{
	dma_run_with("dma=small", one_engine_body);
}

static void attaching(void)
{
	dma_run_with("", attaching_body);
}

static const struct harness_case cases[] = {
	{ "plenty", plenty },
	{ "small_rings", small_rings },
	{ "slow_channel", slow_channel },
	{ "two_chunks", two_chunks },
	{ "one_chunk", one_chunk },
	{ "one_engine", one_engine },
	{ "attaching", attaching },
	{ "unregister_in_flight", unregister_in_flight },
};

HARNESS_MAIN(cases)
