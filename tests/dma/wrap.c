/* SPDX-License-Identifier: MIT */
/* Tickets, ring and push buffer begin again at their ends, and nothing is overtaken there. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "copy/dma/queue.h"
#include "dma/helper_dma.h"

#define SIZE ((size_t)64 << 10)

static void (*change_port)(struct dma_rig *rig);

/* Copies of one and of several launches on one queue, past the end of the tickets. */
static void run_past(uint32_t first_ticket)
{
	struct gdri_dma_options options = dma_options();
	struct dma_memory memory;
	struct dma_rig rig;
	uint8_t *host = dma_pages(SIZE), *check = dma_pages(SIZE);
	uint32_t random = first_ticket | 1;

	options.engine = 0;
	options.first_ticket = first_ticket;
	options.launch_bytes = 5000;	/* so that copies have odd numbers of launches */
	dma_open(&rig, &options);
	if (change_port)
		change_port(&rig);
	dma_attach(&rig, 0, SIZE, &memory);
	REQUIRE_EQ(gdri_dma_register(rig.dma, host, SIZE), 0);
	for (unsigned turn = 0; turn < dma_turns(600); turn++) {
		const size_t size = 1 + dma_random(&random) % SIZE;

		dma_fill(host, size, turn);
		CHECK_EQ(gdri_dma_to_device(memory.target, 0, host, size), 0);
		CHECK_EQ(gdri_dma_from_device(memory.target, 0, check, size), 0);
		CHECK(memcmp(host, check, size) == 0);
	}
	dma_free(&rig, &memory);
	dma_close(&rig);
}

static void tickets_body(void)
{
	run_past(0xffffffff);
	run_past(0xfffffff0);
	run_past(0xffffff80);
	run_past(0x7ffffff0);
	run_past(0x80000000);
}

static void tickets(void)
{
	dma_run_with("", tickets_body);
}

static void tickets_small_rings(void)
{
	dma_run_with("dma=small", tickets_body);
}

/*
 * The channel is slower than its users, so they meet a full ring all the time,
 * and wait for room beside each other.
 */
struct rush {
	struct gdri_dma_target *target;
	const uint8_t *host;
	_Atomic unsigned failures;
};

static void *rush_in(void *arg)
{
	struct rush *rush = arg;

	for (unsigned turn = 0; turn < dma_turns(20); turn++)
		if (gdri_dma_to_device(rush->target, 0, rush->host, SIZE) != 0)
			rush->failures++;
	return NULL;
}

static void full_ring_body(void)
{
	struct gdri_dma_options options = dma_options();
	struct rush rush = { .failures = 0 };
	struct dma_memory memory;
	struct dma_rig rig;
	pthread_t threads[4];
	uint8_t *host = dma_pages(SIZE);

	options.engine = 1;
	options.first_ticket = 0xfffffffe;
	options.launch_bytes = 1000;
	dma_open(&rig, &options);
	dma_attach(&rig, 0, SIZE, &memory);
	REQUIRE_EQ(gdri_dma_register(rig.dma, host, SIZE), 0);
	dma_fill(host, SIZE, 5);
	rush.target = memory.target;
	rush.host = host;
	for (unsigned i = 0; i < 4; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, rush_in, &rush), 0);
	for (unsigned i = 0; i < 4; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(rush.failures, 0);
	CHECK(memcmp(host, memory.cpu, SIZE) == 0);
	dma_free(&rig, &memory);
	dma_close(&rig);
}

static void full_ring(void)
{
	dma_run_with("dma=small", full_ring_body);
}

/*
 * A port whose push buffers are the last eight lines of the real ones, so that
 * what is written or read past their end is a fault; and whose channels have a
 * doorbell, which a thread answers.
 */
static struct gdri_dma_port_ops ops;
static const struct gdri_dma_port_ops *real_ops;
static void (*real_knock)(struct gdri_dma_queue *queue);

#define PUSH_WORDS 128
#define TOKEN 0x1234

static struct {
	struct gdri_dma_queue queue;
	uint32_t word;
	_Atomic bool open;
	pthread_t thread;
} bell;

static void *answer(void *arg)
{
	(void)arg;
	while (bell.open)
		if (__atomic_exchange_n(&bell.word, 0, __ATOMIC_ACQUIRE) == TOKEN)
			real_knock(&bell.queue);
		else
			sched_yield();
	return NULL;
}

static int open_at_the_end(struct gdri_dma_space *space, const struct gdri_dma_engine *engine,
			   struct gdri_dma_queue *queue)
{
	const int rc = real_ops->open_queue(space, engine, queue);
	const uint32_t skip = queue->push_words - PUSH_WORDS;

	REQUIRE_EQ(rc, 0);
	bell.queue = *queue;
	real_knock = queue->knock;
	queue->knock = NULL;
	queue->doorbell = &bell.word;
	queue->token = TOKEN;
	queue->push += skip;
	queue->push_address += (uint64_t)skip * 4;
	queue->push_words = PUSH_WORDS;
	bell.open = true;
	REQUIRE_EQ(pthread_create(&bell.thread, NULL, answer, NULL), 0);
	return 0;
}

static int close_at_the_end(struct gdri_dma_queue *queue)
{
	bell.open = false;
	REQUIRE_EQ(pthread_join(bell.thread, NULL), 0);
	return real_ops->close_queue(queue);
}

static void use_end(struct dma_rig *rig)
{
	real_ops = rig->port.base.ops;
	ops = *real_ops;
	ops.open_queue = open_at_the_end;
	ops.close_queue = close_at_the_end;
	rig->port.base.ops = &ops;
}

static void end_body(void)
{
	change_port = use_end;
	tickets_body();
}

static void end_of_push_buffer(void)
{
	dma_run_with("", end_body);
}

static const struct harness_case cases[] = {
	{ "tickets", tickets },
	{ "tickets_small_rings", tickets_small_rings },
	{ "full_ring", full_ring },
	{ "end_of_push_buffer", end_of_push_buffer },
};

HARNESS_MAIN(cases)
