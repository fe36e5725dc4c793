/* SPDX-License-Identifier: MIT */
/*
 * What a channel may not be told: each mistake kills it, with the error that
 * tells which part of the channel refused.
 */
#include "helper_channel.h"

#include <string.h>

#define MMU_FAULT 31
#define HOST_ERROR 32
#define COPY0_ERROR 39

/* Each writes one entry behind a good one. */
static void no_object(struct rig *rig)
{
	rig_copy(rig, rig->device, rig->host_address, 8, LAUNCH_PIPELINED);
}

static void wrong_class(struct rig *rig)
{
	rig_methods(rig, COPY, 0, 1, 0xc7b5u);
}

static void object_on_host(struct rig *rig)
{
	rig_methods(rig, HOST, 0, 1, rig->queue->copy_class);
}

static void copy_on_host(struct rig *rig)
{
	rig_methods(rig, HOST, 0x300, 1, 0u);
}

static void host_on_copy(struct rig *rig)
{
	rig_set_object(rig);
	rig_methods(rig, COPY, 0x5c, 1, 0u);
}

static void other_subchannel(struct rig *rig)
{
	rig_methods(rig, 3, 0, 1, rig->queue->copy_class);
}

static void unknown_host_method(struct rig *rig)
{
	rig_methods(rig, HOST, 0x78, 1, 0u);
}

static void unknown_copy_method(struct rig *rig)
{
	rig_set_object(rig);
	rig_methods(rig, COPY, 0x410, 1, 0u);
}

static void header_without_words(struct rig *rig)
{
	rig_methods(rig, HOST, 0x64, 0);
}

static void header_past_end(struct rig *rig)
{
	rig_word(rig, 0x20000000u | 2u << 16 | 0x64 >> 2);
	rig_word(rig, 0);
}

static void header_not_incrementing(struct rig *rig)
{
	rig_word(rig, 0x60000000u | 1u << 16 | 0x64 >> 2);
	rig_word(rig, 0);
}

static void header_unused_bit(struct rig *rig)
{
	rig_word(rig, 0x20000000u | 1u << 16 | 1u << 12 | 0x64 >> 2);
	rig_word(rig, 0);
}

static void method_past_semaphore(struct rig *rig)
{
	rig_methods(rig, HOST, 0x64, 4, 0u, 0u, EXECUTE_RELEASE, 0u);
}

static void semaphore_unaligned(struct rig *rig)
{
	rig_release(rig, rig->host_address + 2, 1, EXECUTE_RELEASE);
}

static void semaphore_outside(struct rig *rig)
{
	rig_release(rig, rig->host_address + RIG_BYTES, 1, EXECUTE_RELEASE);
}

static void semaphore_nowhere(struct rig *rig)
{
	rig_release(rig, 0, 1, EXECUTE_RELEASE);
}

static void semaphore_acquire(struct rig *rig)
{
	rig_release(rig, rig->host_address, 1, 0);
}

static void semaphore_timestamp(struct rig *rig)
{
	rig_release(rig, rig->host_address, 1, EXECUTE_RELEASE | 1u << 25);
}

static void semaphore_high_bits(struct rig *rig)
{
	rig_release(rig, rig->host_address | 1ull << 57, 1, EXECUTE_RELEASE);
}

static void engine_semaphore_unaligned(struct rig *rig)
{
	rig_set_object(rig);
	rig_target(rig, rig->host_address + 1, 1);
	rig_methods(rig, COPY, 0x300, 1, LAUNCH_RELEASE);
}

static void engine_semaphore_unset(struct rig *rig)
{
	rig_set_object(rig);
	rig_methods(rig, COPY, 0x300, 1, LAUNCH_RELEASE);
}

static void engine_semaphore_timestamp(struct rig *rig)
{
	rig_set_object(rig);
	rig_target(rig, rig->host_address, 1);
	rig_methods(rig, COPY, 0x300, 1, 2u << 3);
}

static void launch(struct rig *rig, uint64_t destination, uint64_t source, uint32_t length,
		   uint32_t value)
{
	rig_set_object(rig);
	rig_copy(rig, destination, source, length, value);
	rig_release(rig, rig->host_address, 1, EXECUTE_RELEASE_WFI);
}

static void launch_unset(struct rig *rig)
{
	rig_set_object(rig);
	rig_methods(rig, COPY, 0x418, 1, 8u);
	rig_methods(rig, COPY, 0x300, 1, LAUNCH_PIPELINED);
}

static void launch_no_bytes(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address, 0, LAUNCH_PIPELINED);
}

static void launch_not_pitch(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address, 8, LAUNCH_PIPELINED & ~0x100u);
}

static void launch_type_3(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address, 8, 0x183);
}

static void launch_lines(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address, 8, LAUNCH_PIPELINED | 1u << 9);
}

static void launch_physical(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address, 8, LAUNCH_PIPELINED | 1u << 12);
}

static void launch_many_lines(struct rig *rig)
{
	rig_set_object(rig);
	rig_methods(rig, COPY, 0x418, 2, 8u, 2u);
}

static void launch_past_end(struct rig *rig)
{
	launch(rig, rig->device + 1, rig->host_address, RIG_BYTES, LAUNCH_PIPELINED);
}

static void launch_before_start(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address - 1, 8, LAUNCH_PIPELINED);
}

static void launch_cpu_address(struct rig *rig)
{
	launch(rig, rig->device, (uintptr_t)rig->host, 8, LAUNCH_PIPELINED);
}

static void launch_over_long(struct rig *rig)
{
	launch(rig, rig->device, rig->host_address, 0xffffffffu, LAUNCH_PIPELINED);
}

static void launch_high_bits(struct rig *rig)
{
	launch(rig, rig->device | 1ull << 60, rig->host_address, 8, LAUNCH_PIPELINED);
}

static const struct refusal {
	const char *name;
	void (*write)(struct rig *rig);
	unsigned error;
} refusals[] = {
	{ "no_object", no_object, HOST_ERROR },
	{ "wrong_class", wrong_class, HOST_ERROR },
	{ "object_on_host", object_on_host, HOST_ERROR },
	{ "copy_on_host", copy_on_host, HOST_ERROR },
	{ "host_on_copy", host_on_copy, COPY0_ERROR },
	{ "other_subchannel", other_subchannel, HOST_ERROR },
	{ "unknown_host_method", unknown_host_method, HOST_ERROR },
	{ "unknown_copy_method", unknown_copy_method, COPY0_ERROR },
	{ "header_without_words", header_without_words, HOST_ERROR },
	{ "header_past_end", header_past_end, HOST_ERROR },
	{ "header_not_incrementing", header_not_incrementing, HOST_ERROR },
	{ "header_unused_bit", header_unused_bit, HOST_ERROR },
	{ "method_past_semaphore", method_past_semaphore, HOST_ERROR },
	{ "semaphore_unaligned", semaphore_unaligned, HOST_ERROR },
	{ "semaphore_outside", semaphore_outside, MMU_FAULT },
	{ "semaphore_nowhere", semaphore_nowhere, MMU_FAULT },
	{ "semaphore_acquire", semaphore_acquire, HOST_ERROR },
	{ "semaphore_timestamp", semaphore_timestamp, HOST_ERROR },
	{ "semaphore_high_bits", semaphore_high_bits, HOST_ERROR },
	{ "engine_semaphore_unaligned", engine_semaphore_unaligned, COPY0_ERROR },
	{ "engine_semaphore_unset", engine_semaphore_unset, COPY0_ERROR },
	{ "engine_semaphore_timestamp", engine_semaphore_timestamp, COPY0_ERROR },
	{ "launch_unset", launch_unset, COPY0_ERROR },
	{ "launch_no_bytes", launch_no_bytes, COPY0_ERROR },
	{ "launch_not_pitch", launch_not_pitch, COPY0_ERROR },
	{ "launch_type_3", launch_type_3, COPY0_ERROR },
	{ "launch_lines", launch_lines, COPY0_ERROR },
	{ "launch_physical", launch_physical, COPY0_ERROR },
	{ "launch_many_lines", launch_many_lines, COPY0_ERROR },
	{ "launch_past_end", launch_past_end, MMU_FAULT },
	{ "launch_before_start", launch_before_start, MMU_FAULT },
	{ "launch_cpu_address", launch_cpu_address, MMU_FAULT },
	{ "launch_over_long", launch_over_long, MMU_FAULT },
	{ "launch_high_bits", launch_high_bits, COPY0_ERROR },
};

static bool refused(struct rig *rig, unsigned error)
{
	bool ok = CHECK_EQ(rig_error(rig), error);
	uint32_t before = *rig->queue->semaphore;

	/* The channel is dead: even what is right does nothing. */
	rig_release(rig, rig->queue->semaphore_address, before + 1, EXECUTE_RELEASE);
	rig_entry(rig);
	rig_knock(rig);
	rig_sleep_us(200);
	return ok & CHECK_EQ(__atomic_load_n(rig->queue->semaphore, __ATOMIC_ACQUIRE), before);
}

static void words(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		rig_close_queue(&rig);
		rig_open_queue(&rig, 0);
		memset(rig.host, 0, 64);
		rig_release(&rig, rig.queue->semaphore_address, 1, EXECUTE_RELEASE);
		rig_entry(&rig);
		rig_knock(&rig);
		REQUIRE(rig_wait(&rig, 1));
		refusals[i].write(&rig);
		rig_entry(&rig);
		rig_knock(&rig);
		if (!refused(&rig, refusals[i].error))
			fprintf(stderr, "%s was not refused as it should be\n", refusals[i].name);
		CHECK_EQ(*(uint32_t *)(void *)rig.host, 0);
	}
	rig_close(&rig);
}

/* A good entry, changed. */
static uint64_t spoil_entry(const struct rig *rig, unsigned n, unsigned *error)
{
	uint64_t address = rig->queue->push_address, words = rig->queue->push_words;
	uint64_t good = address | (uint64_t)rig->words << 42;

	*error = n < 3 ? MMU_FAULT : HOST_ERROR;
	switch (n) {
	case 0:
		return good | 1ull << 39;		/* nothing is there */
	case 1:
		return (address + 4) | words << 42;	/* past the end */
	case 2:
		return (address - 4) | 6ull << 42;
	case 3:
		return good | 1;			/* conditional */
	case 4:
		return good | 2;
	case 5:
		return good | 1ull << 40;
	case 6:
		return good | 1ull << 41;		/* subroutine */
	case 7:
		return good | 1ull << 63;		/* wait */
	case 8:
		return address;				/* no words */
	default:
		return address | (words + 1) << 42;
	}
}

static void entries(void)
{
	struct rig rig;
	unsigned error;

	rig_open(&rig, 0);
	for (unsigned n = 0; n < 10; n++) {
		rig_close_queue(&rig);
		rig_open_queue(&rig, 0);
		rig_release(&rig, rig.queue->semaphore_address, 1, EXECUTE_RELEASE);
		rig_raw_entry(&rig, spoil_entry(&rig, n, &error));
		rig_knock(&rig);
		if (!refused(&rig, error))
			fprintf(stderr, "entry %u was not refused as it should be\n", n);
		CHECK_EQ(*rig.queue->semaphore, 0);
	}
	rig_close(&rig);
}

static void put(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	*rig.queue->put = rig.queue->ring_entries;
	rig.entry->dma_knock(rig.queue);
	refused(&rig, HOST_ERROR);
	rig_close(&rig);
}

/* A channel that hangs consumes nothing: the ring is full before GP_PUT comes round. */
static void ring_overrun(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	rig_release(&rig, rig.queue->semaphore_address, 1, EXECUTE_RELEASE);
	for (uint32_t i = 0; i <= rig.queue->ring_entries; i++) {
		REQUIRE_EQ(*rig.queue->notifier, 0);
		rig_raw_entry(&rig, rig.queue->push_address | (uint64_t)rig.words << 42);
		rig_knock(&rig);
		while (__atomic_load_n(rig.queue->get, __ATOMIC_ACQUIRE) == 0)
			rig_sleep_us(10);	/* the first one has left the ring */
	}
	CHECK_EQ(rig_error(&rig), HOST_ERROR);
	rig_close(&rig);
}

/* Words belong to the channel until they are done; this races with it by intention. */
__attribute__((no_sanitize("thread")))
static void words_changed(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	rig_submit(&rig, rig.device, rig.host_address, 8);
	rig.queue->push[9]++;
	CHECK_EQ(rig_error(&rig), HOST_ERROR);
	rig_close_queue(&rig);
	rig_open_queue(&rig, 0);
	rig_submit(&rig, rig.device, rig.host_address, 8);
	rig_submit(&rig, rig.device, rig.host_address, 8);
	rig.queue->ring[1] += 4;
	CHECK_EQ(rig_error(&rig), HOST_ERROR);
	rig_close(&rig);
}

static const struct emu_case cases[] = {
	{ .name = "words", .run = words },
	{ .name = "entries", .run = entries },
	{ .name = "put", .run = put },
	{ .name = "ring_overrun", .emu = "dma=hang,dma=small", .run = ring_overrun },
	{ .name = "words_changed", .emu = "dma=delay:50000", .run = words_changed },
};

EMU_CASE_MAIN(cases)
