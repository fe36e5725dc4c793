/* SPDX-License-Identifier: MIT */
/*
 * The model of a copy-engine channel, driven by hand: it moves the right bytes
 * and keeps no order that it was not asked for.
 */
#include "helper_channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int rounds(int full)
{
	return getenv("HARNESS_SLOW") ? full / 10 : full;
}

static void fill(unsigned char *bytes, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)((i * 31 + seed) >> 3 ^ i);
}

static void both_ways(void)
{
	static const uint32_t lengths[] = { 1, 3, 64, 4095, 65536, RIG_BYTES / 4 };
	unsigned char *source, *check = malloc(RIG_BYTES);
	struct rig rig;

	rig_open(&rig, 0);
	source = rig.host;
	fill(source, RIG_BYTES / 2, 1);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t length = lengths[i];
		uint64_t middle = rig.device + RIG_BYTES / 2 + 5;

		memset(rig.host + RIG_BYTES / 2, 0xee, RIG_BYTES / 2);
		REQUIRE_CU(cuMemsetD8(rig.ptr, 0xdd, RIG_BYTES));
		rig_submit(&rig, rig.device + 7, rig.host_address + 3, length);
		REQUIRE(rig_wait(&rig, rig.ticket));
		CHECK_CU(cuMemcpyDtoH(check, rig.ptr, length + 8));
		CHECK(memcmp(check + 7, source + 3, length) == 0);
		CHECK(check[6] == 0xdd && check[length + 7] == 0xdd);
		rig_submit(&rig, middle, rig.device + 7, length);
		REQUIRE(rig_wait(&rig, rig.ticket));
		rig_submit(&rig, rig.host_address + RIG_BYTES / 2 + 1, middle, length);
		REQUIRE(rig_wait(&rig, rig.ticket));
		CHECK(memcmp(rig.host + RIG_BYTES / 2 + 1, source + 3, length) == 0);
		CHECK_EQ(rig.host[RIG_BYTES / 2 + 1 + length], 0xee);
		CHECK_EQ(rig.host[RIG_BYTES / 2], 0xee);
	}
	rig_close(&rig);
	free(check);
}

static void engines(void)
{
	struct gdrcopy_emu_engine list[32];
	unsigned widest = 0;
	struct rig rig;
	int count;

	rig_open(&rig, 0);
	count = rig.entry->dma_engines(rig.space, list, 32);
	REQUIRE_EQ(count, 5);
	for (int i = 0; i < count; i++)
		if (list[i].width > list[widest].width)
			widest = (unsigned)i;
	CHECK_EQ(list[widest].number, 4);
	CHECK(!list[widest].shared);
	CHECK_EQ(rig.entry->dma_engines(rig.space, list, 2), 2);
	for (unsigned i = 0; i < 5; i++) {
		rig_close_queue(&rig);
		rig_open_queue(&rig, i);
		rig_submit(&rig, rig.device, rig.host_address, 100);
		CHECK(rig_wait(&rig, rig.ticket));
	}
	CHECK_EQ(rig.entry->dma_queue(rig.space, 5, &rig.queue), -EINVAL);
	rig_close(&rig);
}

/* Ring and push buffer both come round several times. */
static void wraps(void)
{
	struct rig rig;
	uint32_t count;

	rig_open(&rig, 0);
	count = rig.queue->ring_entries * 4 + 5;
	for (uint32_t i = 0; i < count; i++) {
		memcpy(rig.host, &i, sizeof(i));
		rig_submit(&rig, rig.device + (i % 1000) * 4, rig.host_address, 4);
		REQUIRE(rig_wait(&rig, rig.ticket));
		if (i % 16 == 0) {
			uint32_t got = 0;

			CHECK_CU(cuMemcpyDtoH(&got, rig.ptr + (i % 1000) * 4, 4));
			REQUIRE_EQ(got, i);
		}
	}
	CHECK(rig.words > 2 * rig.queue->push_words);
	CHECK_EQ(*rig.queue->get, rig.put);
	rig_close(&rig);
}

/* Several entries by one knock run in order. */
static void several_entries(void)
{
	unsigned char check[6];
	struct rig rig;

	rig_open(&rig, 0);
	memcpy(rig.host, "abcdef", 6);
	rig_set_object(&rig);
	for (unsigned i = 0; i < 6; i++) {
		rig_copy(&rig, rig.device + i, rig.host_address + i, 1, LAUNCH_PIPELINED);
		rig_release(&rig, rig.queue->semaphore_address, i + 1, EXECUTE_RELEASE_WFI);
		rig_entry(&rig);
	}
	CHECK_EQ(*rig.queue->semaphore, 0);
	rig_knock(&rig);
	REQUIRE(rig_wait(&rig, 6));
	CHECK_CU(cuMemcpyDtoH(check, rig.ptr, 6));
	CHECK(memcmp(check, "abcdef", 6) == 0);
	rig_close(&rig);
}

/* Nothing happens before the knock, whatever GP_PUT says. */
static void no_knock(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	rig_release(&rig, rig.queue->semaphore_address, 1, EXECUTE_RELEASE);
	rig_entry(&rig);
	*rig.queue->put = rig.put;
	rig_sleep_us(20000);
	CHECK_EQ(__atomic_load_n(rig.queue->semaphore, __ATOMIC_ACQUIRE), 0);
	rig_knock(&rig);
	CHECK(rig_wait(&rig, 1));
	rig_close(&rig);
}

/* Both kinds of semaphore, anywhere in memory that the space knows. */
static void semaphores(void)
{
	uint32_t word = 0;
	struct rig rig;

	rig_open(&rig, 0);
	rig_set_object(&rig);
	rig_target(&rig, rig.device + 400, 0x12345678);
	rig_methods(&rig, COPY, 0x300, 1, LAUNCH_NOTHING | LAUNCH_RELEASE);
	rig_target(&rig, rig.host_address + 8, 77);
	rig_methods(&rig, COPY, 0x300, 1, LAUNCH_NOTHING | LAUNCH_RELEASE | LAUNCH_FLUSH);
	rig_release(&rig, rig.queue->semaphore_address, 123456, EXECUTE_RELEASE);
	rig_entry(&rig);
	rig_knock(&rig);
	REQUIRE(rig_wait(&rig, 123456));
	CHECK_EQ(*(uint32_t *)(void *)(rig.host + 8), 77);
	CHECK_CU(cuMemcpyDtoH(&word, rig.ptr + 400, 4));
	CHECK_EQ(word, 0x12345678);
	rig_close(&rig);
}

/* Copies with a semaphore that is asked to wait for them, or not; returns the stale ones. */
static int count_stale(struct rig *rig, bool by_host, uint32_t launch_bits, uint32_t execute)
{
	unsigned char *destination = rig->host + 65536;
	uint64_t semaphore = rig->queue->semaphore_address;
	int stale = 0;

	rig_set_object(rig);
	for (int i = 0; i < rounds(400); i++) {
		memset(rig->host, i, 4096);
		memset(destination, ~i, 4096);
		rig_copy(rig, rig->device, rig->host_address, 4096, LAUNCH_PIPELINED);
		rig_release(rig, semaphore, ++rig->ticket, EXECUTE_RELEASE_WFI);
		rig_copy(rig, rig->host_address + 65536, rig->device, 4096,
			 LAUNCH_PIPELINED | (by_host ? 0 : launch_bits));
		if (by_host) {
			rig_release(rig, semaphore, ++rig->ticket, execute);
		} else {
			rig_target(rig, semaphore, ++rig->ticket);
			rig_methods(rig, COPY, 0x300, 1, launch_bits | LAUNCH_RELEASE);
		}
		rig_entry(rig);
		rig_knock(rig);
		REQUIRE(rig_wait(rig, rig->ticket));
		stale += memcmp(rig->host, destination, 4096) != 0;
		rig_methods(rig, COPY, 0x300, 1, LAUNCH_NOTHING | LAUNCH_FLUSH);
		rig_release(rig, semaphore, ++rig->ticket, EXECUTE_RELEASE_WFI);
		rig_entry(rig);
		rig_knock(rig);
		REQUIRE(rig_wait(rig, rig->ticket));
		if (memcmp(rig->host, destination, 4096) != 0 && stale == 0)
			CHECK(!"the bytes came at last");
	}
	return stale;
}

static void ordered_releases(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	CHECK_EQ(count_stale(&rig, true, 0, EXECUTE_RELEASE_WFI), 0);
	CHECK_EQ(count_stale(&rig, false, LAUNCH_FLUSH, 0), 0);
	rig_close(&rig);
}

/* The other two deliver old bytes now and then, as measured on hardware. */
static void unordered_releases(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	CHECK(count_stale(&rig, true, 0, EXECUTE_RELEASE) > 0);
	CHECK(count_stale(&rig, false, 0, 0) > 0);
	rig_close(&rig);
}

/* A device that does not keep its word is caught even with the safe way. */
static void early_releases(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	CHECK(count_stale(&rig, true, 0, EXECUTE_RELEASE_WFI) > 0);
	CHECK(count_stale(&rig, false, LAUNCH_FLUSH, 0) > 0);
	rig_close(&rig);
}

/* Two launches to the same place: how often the first one wins. */
static int count_overtaken(struct rig *rig, uint32_t second)
{
	int overtaken = 0;

	memset(rig->host, 1, 4096);
	memset(rig->host + 4096, 2, 4096);
	for (int i = 0; i < rounds(200); i++) {
		unsigned char got[4096];

		rig_set_object(rig);
		rig_copy(rig, rig->device, rig->host_address, 4096, LAUNCH_PIPELINED);
		rig_copy(rig, rig->device, rig->host_address + 4096, 4096, second);
		rig_release(rig, rig->queue->semaphore_address, ++rig->ticket,
			    EXECUTE_RELEASE_WFI);
		rig_entry(rig);
		rig_knock(rig);
		REQUIRE(rig_wait(rig, rig->ticket));
		REQUIRE_CU(cuMemcpyDtoH(got, rig->ptr, 4096));
		overtaken += memchr(got, 1, 4096) != NULL;
	}
	return overtaken;
}

static void launch_order(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	CHECK(count_overtaken(&rig, LAUNCH_PIPELINED) > 0);
	CHECK_EQ(count_overtaken(&rig, LAUNCH_NON_PIPELINED), 0);
	rig_close(&rig);
}

static void *use_queue(void *arg)
{
	struct rig *rig = arg;
	unsigned char *host = rig->host + 4096 * rig->ticket;
	uint64_t host_address = rig->host_address + 4096 * rig->ticket;
	uint64_t device = rig->device + 4096 * rig->ticket;
	unsigned seed = rig->ticket;

	rig->ticket = 0;
	for (int i = 0; i < rounds(1000); i++) {
		fill(host, 2048, seed + (unsigned)i);
		memset(host + 2048, 0, 2048);
		rig_submit(rig, device, host_address, 2048);
		REQUIRE(rig_wait(rig, rig->ticket));
		rig_submit(rig, host_address + 2048, device, 2048);
		REQUIRE(rig_wait(rig, rig->ticket));
		REQUIRE(memcmp(host, host + 2048, 2048) == 0);
	}
	return NULL;
}

/* Queues of one space work at the same time. */
static void many_queues(void)
{
	struct rig rig, copies[4];
	pthread_t threads[4];

	rig_open(&rig, 0);
	for (unsigned i = 0; i < 4; i++) {
		copies[i] = rig;
		rig_open_queue(&copies[i], i + 1);
		copies[i].ticket = i;
		REQUIRE_EQ(pthread_create(&threads[i], NULL, use_queue, &copies[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(*copies[i].queue->notifier, 0);
		rig_close_queue(&copies[i]);
	}
	rig_close(&rig);
}

static const struct emu_case cases[] = {
	{ .name = "both_ways", .run = both_ways },
	{ .name = "engines", .run = engines },
	{ .name = "wraps", .emu = "dma=small", .run = wraps },
	{ .name = "wraps_large", .run = wraps },
	{ .name = "several_entries", .run = several_entries },
	{ .name = "no_knock", .run = no_knock },
	{ .name = "semaphores", .run = semaphores },
	{ .name = "ordered_releases", .run = ordered_releases },
	{ .name = "unordered_releases", .run = unordered_releases },
	{ .name = "early_releases", .emu = "dma=early", .run = early_releases },
	{ .name = "launch_order", .run = launch_order },
	{ .name = "many_queues", .run = many_queues },
};

EMU_CASE_MAIN(cases)
