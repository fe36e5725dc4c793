/* SPDX-License-Identifier: MIT */
/*
 * The copies of 2.6 by the device's copy engines: the bytes, which copies stay with
 * the CPU, what follows from an engine that fails, and ends of mappings beside copies.
 *
 * Which road a copy took shows in its time: the emulated engines wait DELAY
 * before each submission where a case asks for it.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define SPACE (5 * MIB)
#define GUARD 64
#define POISON 0x5a
#define DELAY_MS 150
#define SLOW_ENGINE "GDRCOPY_EMU=dma=delay:150000"

static bool is_poison(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != POISON)
			return false;
	return true;
}

static void end(struct gpu_mapping mapping)
{
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* There and back, with untouched bytes on both sides of both. */
static void there_and_back(const struct gpu_mapping *mapping, size_t offset,
			   const unsigned char *host, unsigned char *seen, size_t size)
{
	const CUdeviceptr ptr = mapping->buffer.ptr + offset;

	memset(seen, POISON, size + 2 * GUARD);
	gpu_write(ptr, seen, size + 2 * GUARD);
	CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va + offset + GUARD, host, size), 0);
	gpu_read(seen, ptr, size + 2 * GUARD);
	CHECK(memcmp(seen + GUARD, host, size) == 0);
	CHECK(is_poison(seen, GUARD) && is_poison(seen + GUARD + size, GUARD));

	memset(seen, POISON, size + 2 * GUARD);
	CHECK_EQ(gdr_copy_from_mapping(mapping->handle, seen + GUARD,
				       mapping->va + offset + GUARD, size), 0);
	CHECK(memcmp(seen + GUARD, host, size) == 0);
	CHECK(is_poison(seen, GUARD) && is_poison(seen + GUARD + size, GUARD));
}

static void every_byte(void)
{
	static const size_t edges[] = { 4 * KIB, 16 * KIB, 64 * KIB, 1 * MIB, 4 * MIB };
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), SPACE);
	unsigned char *host = malloc(SPACE), *seen = malloc(SPACE);

	REQUIRE(host && seen);
	gpu_fill(host, SPACE, 3);
	for (size_t size = 0; size <= 300; size++)
		there_and_back(&mapping, size * 7 & 63, host + (size & 63), seen + (size * 5 & 63),
			       size);
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (size_t around = 0; around < 3; around++)
			there_and_back(&mapping, 8191 * around, host + 13 * around, seen + around,
				       edges[i] - 1 + around);
	free(host);
	free(seen);
	end(mapping);
}

/* Copies that fail over to the CPU are whole; so are all after them. */
static void fails_over(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), SPACE);
	unsigned char *host = malloc(SPACE), *seen = malloc(SPACE);

	REQUIRE(host && seen);
	for (unsigned round = 0; round < 12; round++) {
		gpu_fill(host, MIB, round);
		there_and_back(&mapping, round * 100, host, seen, MIB - round);
	}
	free(host);
	free(seen);
	end(mapping);
}

/* What a lost channel knew is never freed; leak checkers find it here. */
static unsigned char *volatile lost_for_ever;

/* Nobody can say whether the dead channel still writes: the copy is an error. */
static void unconfirmed(bool reads)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	unsigned char *host = malloc(MIB);
	int rc = 0;

	REQUIRE(host != NULL);
	memset(host, 1, MIB);
	lost_for_ever = host;
	for (int i = 0; i < 40 && rc == 0; i++)
		rc = reads ? gdr_copy_from_mapping(mapping.handle, host, mapping.va, MIB) :
			     gdr_copy_to_mapping(mapping.handle, mapping.va, host, MIB);
	CHECK_EQ(rc, EIO);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, MIB), 0);
	gdr_unpin_buffer(mapping.g, mapping.handle);
	gdr_close(mapping.g);
}

static void unconfirmed_write(void)
{
	unconfirmed(false);
}

static void unconfirmed_read(void)
{
	unconfirmed(true);
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Whether one of a few tries was faster than the engine can be. */
static bool write_is_fast(const struct gpu_mapping *mapping, size_t offset, const void *host,
			  size_t size)
{
	for (int i = 0; i < 3; i++) {
		const double start = milliseconds();

		CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va + offset, host, size), 0);
		if (milliseconds() - start < DELAY_MS)
			return true;
	}
	return false;
}

static bool read_is_fast(const struct gpu_mapping *mapping, size_t offset, void *host, size_t size)
{
	for (int i = 0; i < 3; i++) {
		const double start = milliseconds();

		CHECK_EQ(gdr_copy_from_mapping(mapping->handle, host, mapping->va + offset, size),
			 0);
		if (milliseconds() - start < DELAY_MS)
			return true;
	}
	return false;
}

static void words_are_the_cpus(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	unsigned char host[32] = "word";

	for (size_t size = 1; size <= 8; size *= 2) {
		CHECK(write_is_fast(&mapping, 64, host, size));
		CHECK(read_is_fast(&mapping, 64, host, size));
	}
	CHECK(!write_is_fast(&mapping, 64, host, 16));
	CHECK(!read_is_fast(&mapping, 64, host, 16));
	end(mapping);
}

/* By default engines begin at a page, whatever was measured. */
static void small_copies_are_the_cpus(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	unsigned char *host = calloc(1, MIB);

	REQUIRE(host != NULL);
	CHECK(write_is_fast(&mapping, 1, host, 4095));
	CHECK(read_is_fast(&mapping, 1, host, 4095));
	CHECK(!read_is_fast(&mapping, 0, host, MIB));
	free(host);
	end(mapping);
}

/* A host pointer that is device memory itself, as a whole or at one end. */
static void mappings_as_host_memory(void)
{
	gdr_t g = gpu_open();
	struct gpu_mapping a = gpu_map_new(g, MIB), b = gpu_map_new(g, MIB);
	unsigned char *data = malloc(64 * KIB), *seen = malloc(64 * KIB);

	REQUIRE(data && seen);
	gpu_fill(data, 64 * KIB, 1);
	gpu_write(b.buffer.ptr, data, 64 * KIB);
	CHECK(write_is_fast(&a, 128 * KIB, b.va, 64 * KIB));
	gpu_read(seen, a.buffer.ptr + 128 * KIB, 64 * KIB);
	CHECK(memcmp(seen, data, 64 * KIB) == 0);

	gpu_fill(data, 64 * KIB, 2);
	gpu_write(a.buffer.ptr, data, 64 * KIB);
	CHECK(read_is_fast(&a, 0, b.va + MIB - 64 * KIB, 64 * KIB));
	gpu_read(seen, b.buffer.ptr + MIB - 64 * KIB, 64 * KIB);
	CHECK(memcmp(seen, data, 64 * KIB) == 0);

	/* Its own mapping is one, too. */
	CHECK(write_is_fast(&a, 256 * KIB, a.va, 64 * KIB));
	gpu_read(seen, a.buffer.ptr + 256 * KIB, 64 * KIB);
	CHECK(memcmp(seen, data, 64 * KIB) == 0);
	free(data);
	free(seen);
	gpu_unmap(a);
	gpu_unmap(b);
	CHECK_EQ(gdr_close(g), 0);
}

/*
 * The first opening of an engine fails, as GDRCOPY_EMU asks.  A session without
 * engines does not use that up: it falls to the next one, and only a third copies.
 */
static void disabled_opens_nothing(void)
{
	static const char *const settings[] = { "0", "min=0", "min=0" };
	unsigned char host[64] = "";

	for (int i = 0; i < 3; i++) {
		struct gpu_mapping mapping;

		setenv("GDRCOPY_DMA", settings[i], 1);
		mapping = gpu_map_new(gpu_open(), MIB);
		CHECK_EQ(write_is_fast(&mapping, 0, host, sizeof(host)), i < 2);
		end(mapping);
	}
}

/* A copy of many submissions, each of which takes its time. */
struct long_copy {
	struct gpu_mapping mapping;
	unsigned char *host;
	bool reads;
	_Atomic bool started, ended;
	int rc;
};

static void *copy_long(void *arg)
{
	struct long_copy *copy = arg;
	const struct gpu_mapping *mapping = &copy->mapping;

	atomic_store(&copy->started, true);
	copy->rc = copy->reads ?
		   gdr_copy_from_mapping(mapping->handle, copy->host, mapping->va, SPACE) :
		   gdr_copy_to_mapping(mapping->handle, mapping->va, copy->host, SPACE);
	atomic_store(&copy->ended, true);
	return NULL;
}

static int tear(struct gpu_mapping *mapping, int how)
{
	switch (how) {
	case 0:
		return gdr_unmap(mapping->g, mapping->handle, mapping->va, SPACE);
	case 1:
		return gdr_unpin_buffer(mapping->g, mapping->handle);
	default:
		return gdr_close(mapping->g);
	}
}

/* True: the teardown came while the copy ran, and the copy was whole. */
static bool tear_once(bool reads, int how)
{
	struct long_copy copy = { .mapping = gpu_map_new(gpu_open(), SPACE), .reads = reads };
	unsigned char *data = malloc(SPACE), *seen = calloc(1, SPACE);
	struct timespec nap = { 0, 3000000 };
	pthread_t thread;
	bool running;

	REQUIRE(data && seen);
	gpu_fill(data, SPACE, (unsigned)how + 1);
	if (reads)
		gpu_write(copy.mapping.buffer.ptr, data, SPACE);
	copy.host = reads ? seen : data;
	REQUIRE_EQ(pthread_create(&thread, NULL, copy_long, &copy), 0);
	while (!atomic_load(&copy.started))
		continue;
	nanosleep(&nap, NULL);
	running = !atomic_load(&copy.ended);
	CHECK_EQ(tear(&copy.mapping, how), 0);
	/* Nothing of the copy touches the device's memory any more: it is another's now. */
	if (!reads)
		gpu_read(seen, copy.mapping.buffer.ptr, SPACE);
	gpu_free(copy.mapping.buffer);
	pthread_join(thread, NULL);
	CHECK(copy.rc == 0 || copy.rc == EINVAL);
	if (copy.rc == 0)
		CHECK(memcmp(seen, data, SPACE) == 0);
	if (how != 2)
		CHECK_EQ(gdr_close(copy.mapping.g), 0);
	free(data);
	free(seen);
	return running && copy.rc == 0;
}

static void ends_wait(void)
{
	for (int how = 0; how < 3; how++)
		for (int reads = 0; reads < 2; reads++) {
			bool proven = false;

			for (int i = 0; i < 20 && !proven; i++)
				proven = tear_once(reads, how);
			CHECK(proven);
		}
}

#define PART (64 * KIB)

static struct gpu_mapping handler_mapping;
static unsigned char handler_data[PART], handler_seen[PART];
static volatile sig_atomic_t handler_runs, handler_wrong;

/* In the second part of the mapping, while the thread that it interrupts is in the first. */
static void copy_in_handler(int number)
{
	const struct gpu_mapping *mapping = &handler_mapping;
	const int saved = errno;

	(void)number;
	handler_data[handler_runs % PART]++;
	if (gdr_copy_to_mapping(mapping->handle, mapping->va + MIB, handler_data, PART) ||
	    gdr_copy_from_mapping(mapping->handle, handler_seen, mapping->va + MIB, PART) ||
	    memcmp(handler_seen, handler_data, PART) != 0)
		handler_wrong++;
	handler_runs++;
	errno = saved;
}

static void copies_in_handlers(void)
{
	struct itimerval every = { { 0, 700 }, { 0, 700 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = copy_in_handler, .sa_flags = SA_RESTART };
	unsigned char *data = malloc(MIB), *seen = malloc(MIB);
	const double begin = milliseconds();

	REQUIRE(data && seen);
	handler_mapping = gpu_map_new(gpu_open(), 2 * MIB);
	REQUIRE_EQ(sigaction(SIGALRM, &action, NULL), 0);
	alarm(0);
	REQUIRE_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
	for (unsigned round = 0; milliseconds() - begin < 1500; round++) {
		const size_t size = round % 5 == 0 ? MIB : round % 3000 + 9;

		gpu_fill(data, size, round);
		CHECK_EQ(gdr_copy_to_mapping(handler_mapping.handle, handler_mapping.va, data,
					     size), 0);
		CHECK_EQ(gdr_copy_from_mapping(handler_mapping.handle, seen, handler_mapping.va,
					       size), 0);
		CHECK(memcmp(seen, data, size) == 0);
	}
	REQUIRE_EQ(setitimer(ITIMER_REAL, &none, NULL), 0);
	CHECK(handler_runs > 10);
	CHECK_EQ(handler_wrong, 0);
	end(handler_mapping);
	free(data);
	free(seen);
}

static const struct api_case cases[] = {
	{ "every_byte", every_byte, NULL },
	{ "every_byte_by_engine", every_byte, "GDRCOPY_DMA=min=0" },
	{ "every_byte_of_small_rings", every_byte, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=small" },
	{ "every_byte_without_channels", every_byte, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=0" },
	{ "every_byte_of_a_busy_device", every_byte, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=busy" },
	{ "every_byte_of_one_channel", every_byte, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=busy:1" },
	{ "every_byte_disabled", every_byte, "GDRCOPY_DMA=0" },
	{ "every_byte_of_a_dying_channel", every_byte, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=die:40" },
	{ "dies_at_once", fails_over, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=die:1" },
	{ "dies_within_a_copy", fails_over, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=die:7" },
	{ "dies_by_default", fails_over, "GDRCOPY_EMU=dma=die:9" },
	{ "hangs_within_a_copy", fails_over, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=hang:5" },
	{ "unconfirmed_write", unconfirmed_write,
	  "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=hang:6,dma=unconfirmed" },
	{ "unconfirmed_read", unconfirmed_read,
	  "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=hang:6,dma=unconfirmed" },
	{ "words_are_the_cpus", words_are_the_cpus, "GDRCOPY_DMA=min=0 " SLOW_ENGINE },
	{ "small_copies_are_the_cpus", small_copies_are_the_cpus,
	  "GDRCOPY_CALIBRATION=0 " SLOW_ENGINE },
	{ "mappings_as_host_memory", mappings_as_host_memory, "GDRCOPY_DMA=min=0 " SLOW_ENGINE },
	{ "disabled_opens_nothing", disabled_opens_nothing, SLOW_ENGINE ",fail=dma-space:1:12" },
	{ "ends_wait", ends_wait, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=delay:2000" },
	{ "copies_in_handlers", copies_in_handlers, "GDRCOPY_DMA=min=0" },
	{ "copies_in_handlers_by_default", copies_in_handlers, NULL },
};

API_MAIN(cases)
