/* SPDX-License-Identifier: MIT */
/*
 * Version 3's copies where they are awkward: every alignment of both sides, host memory
 * that is registered in part, overlaps at every class of distance, engines that fail.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/helper_thread.h"
#include "api3/helper_buffer.h"

#define SPACE (5 * MIB)
#define GUARD 64
#define POISON 0x6b

static gdr_t g;
static CUdeviceptr ptr[2];
static uint64_t handle[2];
static unsigned char *host, *seen;

static void begin(void)
{
	g = buffer_session();
	for (int device = 1; device >= 0; device--) {
		ptr[device] = buffer_alloc(device, SPACE);
		REQUIRE_OK(gdr_pin_buffer(g, ptr[device], SPACE, GDR_PIN_BUFFER_UNALIGNED, device,
					  &handle[device]));
	}
	host = aligned_alloc(4096, SPACE);
	seen = aligned_alloc(4096, SPACE);
	REQUIRE(host && seen);
	buffer_fill(host, SPACE, 5);
}

static void end(void)
{
	CHECK_OK(gdr_close(g));
	free(host);
	free(seen);
}

static bool is_poison(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != POISON)
			return false;
	return true;
}

/* From source to the device and from there to target, with guards on both sides of both. */
static void around(size_t offset, const unsigned char *source, unsigned char *target, size_t size)
{
	memset(target - GUARD, POISON, size + 2 * GUARD);
	buffer_set(ptr[0] + offset - GUARD, target - GUARD, size + 2 * GUARD);
	CHECK_OK(gdr_copy_from_host(g, handle[0], offset, source, size));
	buffer_get(target - GUARD, ptr[0] + offset - GUARD, size + 2 * GUARD);
	CHECK(memcmp(target, source, size) == 0);
	CHECK(is_poison(target - GUARD, GUARD) && is_poison(target + size, GUARD));

	memset(target - GUARD, POISON, size + 2 * GUARD);
	CHECK_OK(gdr_copy_to_host(g, handle[0], offset, target, size));
	CHECK(memcmp(target, source, size) == 0);
	CHECK(is_poison(target - GUARD, GUARD) && is_poison(target + size, GUARD));
}

static void alignments(void)
{
	static const size_t sizes[] = { 5, 64, 333, 4096, 5000 };

	/* Coprime to 64, so that the fewer of slow programs differ from side to side. */
	const size_t stride = api_rounds(20) == 20 ? 1 : 7;

	begin();
	for (size_t device = 0; device < 64; device += device < 16 ? stride : 5)
		for (size_t side = 0; side < 64; side += side < 16 ? stride : 7)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				around(4096 - GUARD + device, host + side, seen + GUARD + side,
				       sizes[i]);
	end();
}

/* A copy of which only the first, the last or the middle part is registered. */
static void partly_registered(void)
{
	static const size_t sizes[] = { 100, 8192, 20000, 300000, 3 * MIB };

	begin();
	REQUIRE_OK(gdr_host_register(g, host + MIB, 64 * KIB));
	REQUIRE_OK(gdr_host_register(g, seen + MIB, 64 * KIB));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t size = sizes[i];
		const size_t starts[] = {
			MIB, MIB + 1000, MIB - size / 2, MIB + 64 * KIB - size / 3,
			MIB + 64 * KIB, MIB - size, MIB - size - 1,
		};

		for (size_t j = 0; j < sizeof(starts) / sizeof(starts[0]); j++)
			if (starts[j] < SPACE - size - GUARD && starts[j] >= GUARD) {
				around(GUARD, host + starts[j], seen + starts[j], size);
				around(4097, host + GUARD, seen + starts[j], size);
				around(999, host + starts[j], seen + GUARD, size);
			}
	}
	/* Two neighbours that one copy covers. */
	REQUIRE_OK(gdr_host_register(g, host + MIB + 64 * KIB, 64 * KIB));
	around(GUARD, host + MIB + 100, seen + GUARD, 100 * KIB);
	around(GUARD, host + MIB - 100, seen + MIB - 100, 140 * KIB);
	end();
}

/* Registered with odd ends: the rest of the pages is the engine's, too, but nobody writes there. */
static void registered_oddly(void)
{
	begin();
	REQUIRE_OK(gdr_host_register(g, host + 10001, 70001));
	REQUIRE_OK(gdr_host_register(g, seen + 20003, 70001));
	for (size_t size = 1; size <= 70001; size = size * 5 + 1) {
		around(GUARD + size, host + 10001, seen + 20003, size);
		around(GUARD, host + 10001 + 70001 - size, seen + 20003 + 70001 - size, size);
	}
	end();
}

/* Read-only memory can be sent, and is not harmed. */
static void read_only_source(void)
{
	unsigned char *pages = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);

	REQUIRE(pages != MAP_FAILED);
	buffer_fill(pages, MIB, 8);
	REQUIRE_EQ(mprotect(pages, MIB, PROT_READ), 0);
	begin();
	for (size_t size = 1; size <= MIB; size *= 4) {
		CHECK_OK(gdr_copy_from_host(g, handle[0], 3, pages, size));
		buffer_get(seen, ptr[0] + 3, size);
		CHECK(memcmp(seen, pages, size) == 0);
	}
	end();
	munmap(pages, MIB);
}

/*
 * A move that an engine left half done cannot begin again where its ranges overlap.
 * Otherwise, and once the engine is known to be dead, the CPU does it.
 */
static bool may_die;

/* Within one memory, by one handle and by two whose ranges overlap. */
static void move(uint64_t from, uint64_t to, size_t base_from, size_t base_to, size_t src,
		 size_t dst, size_t size)
{
	const size_t distance = src > dst ? src - dst : dst - src;
	unsigned char *model = malloc(SPACE);
	gdr_result_t result;

	REQUIRE(model != NULL);
	memcpy(model, host, SPACE);
	buffer_set(ptr[0], host, SPACE);
	memmove(model + dst, model + src, size);
	result = gdr_copy_to_device(g, from, to, src - base_from, dst - base_to, size);
	if (result == GDR_ERR_IO && may_die && distance < size) {
		may_die = false;
	} else {
		CHECK_OK(result);
		buffer_get(seen, ptr[0], SPACE);
		CHECK(memcmp(seen, model, SPACE) == 0);
	}
	free(model);
}

static void overlaps(void)
{
	static const size_t sizes[] = { 2, 100, 4096, 40001, 1048577, 3 * MIB };
	static const size_t distances[] = { 0, 1, 3, 64, 100, 4095, 4096, 16384, 40000, 40001,
					    65536, 1048576 };
	uint64_t later;

	begin();
	REQUIRE_OK(gdr_pin_buffer(g, ptr[0] + 777, SPACE - 777, GDR_PIN_BUFFER_UNALIGNED, 0,
				  &later));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(distances) / sizeof(distances[0]); j++) {
			const size_t distance = distances[j];

			if (distance > sizes[i] || (api_rounds(20) != 20 && (i + j) % 3 != 0))
				continue;
			move(handle[0], handle[0], 0, 0, 1000, 1000 + distance, sizes[i]);
			move(handle[0], handle[0], 0, 0, 1000 + distance, 1000, sizes[i]);
			if (i % 2)
				continue;
			move(handle[0], later, 0, 777, 1000, 1000 + distance, sizes[i]);
			move(later, handle[0], 777, 0, 1000 + distance, 1000, sizes[i]);
		}
	end();
}

static void overlaps_dying(void)
{
	may_die = true;
	overlaps();
}

/* Copies that failed over are whole, and nothing of the dead engine comes later. */
static void failing_engine(void)
{
	static unsigned char *targets[12];

	begin();
	for (unsigned i = 0; i < 12; i++) {
		targets[i] = malloc(MIB);
		REQUIRE(targets[i] != NULL);
		buffer_fill(host, MIB, i);
		CHECK_OK(gdr_copy_from_host(g, handle[0], 7, host, MIB));
		CHECK_OK(gdr_copy_to_device(g, handle[0], handle[1], 7, 9, MIB));
		CHECK_OK(gdr_copy_to_host(g, handle[1], 9, targets[i], MIB));
		CHECK(memcmp(targets[i], host, MIB) == 0);
		memset(targets[i], POISON, MIB);
	}
	memset(seen, POISON, SPACE);
	buffer_set(ptr[0], seen, SPACE);
	buffer_set(ptr[1], seen, SPACE);
	thread_nap(100000);
	for (unsigned i = 0; i < 12; i++)
		CHECK(is_poison(targets[i], MIB));
	for (int device = 0; device < 2; device++) {
		buffer_get(seen, ptr[device], SPACE);
		CHECK(is_poison(seen, SPACE));
	}
	for (unsigned i = 0; i < 12; i++)
		free(targets[i]);
	end();
}

/* Leak checkers find here what a lost channel may still write to. */
static unsigned char *volatile lost_for_ever[2];

/* One call meets the engine that cannot be confirmed dead, and says so. */
static void unconfirmed(gdr_result_t (*copy)(void))
{
	gdr_result_t result = GDR_SUCCESS;

	begin();
	lost_for_ever[0] = host;
	lost_for_ever[1] = seen;
	for (int i = 0; i < 40 && result == GDR_SUCCESS; i++)
		result = copy();
	CHECK_EQ(result, GDR_ERR_IO);
	gdr_unpin(g, handle[0]);
	gdr_close(g);
}

static gdr_result_t copy_from(void)
{
	return gdr_copy_from_host(g, handle[0], 0, host, MIB);
}

static gdr_result_t copy_to(void)
{
	return gdr_copy_to_host(g, handle[0], 0, seen, MIB);
}

static gdr_result_t copy_across(void)
{
	return gdr_copy_to_device(g, handle[0], handle[1], 0, 0, MIB);
}

static gdr_result_t copy_inside(void)
{
	return gdr_copy_to_device(g, handle[0], handle[0], 0, 2 * MIB, MIB);
}

static void unconfirmed_from(void)
{
	unconfirmed(copy_from);
}

static void unconfirmed_to(void)
{
	unconfirmed(copy_to);
}

static void unconfirmed_across(void)
{
	unconfirmed(copy_across);
}

static void unconfirmed_inside(void)
{
	unconfirmed(copy_inside);
}

#define TWO "GDRCOPY_EMU=devices=2"
#define ENGINE " GDRCOPY_DMA=min=0"
#define ROADS(name, run)                                                                     \
	{ name, run, TWO },                                                                  \
	{ name "_cpu", run, TWO " GDRCOPY_DMA=0" },                                          \
	{ name "_engine", run, TWO ENGINE },                                                 \
	{ name "_busy", run, TWO ",dma=busy" ENGINE },                                       \
	{ name "_one_channel", run, TWO ",dma=busy:1" ENGINE },                              \
	{ name "_dying", run, TWO ",dma=die:60" ENGINE },                                    \
	{ name "_small_rings", run, TWO ",dma=small" ENGINE }
#define LOST ",dma=hang:4,dma=unconfirmed" ENGINE

static const struct api_case cases[] = {
	ROADS("alignments", alignments),
	ROADS("partly_registered", partly_registered),
	ROADS("registered_oddly", registered_oddly),
	ROADS("read_only_source", read_only_source),
	{ "overlaps", overlaps, TWO },
	{ "overlaps_cpu", overlaps, TWO " GDRCOPY_DMA=0" },
	{ "overlaps_engine", overlaps, TWO ENGINE },
	{ "overlaps_one_channel", overlaps, TWO ",dma=busy:1" ENGINE },
	{ "overlaps_small_rings", overlaps, TWO ",dma=small" ENGINE },
	{ "overlaps_dying", overlaps_dying, TWO ",dma=die:60" ENGINE },
	{ "dies_at_once", failing_engine, TWO ",dma=die:1" ENGINE },
	{ "dies_within_a_copy", failing_engine, TWO ",dma=die:5" ENGINE },
	{ "hangs_at_once", failing_engine, TWO ",dma=hang:1" ENGINE },
	{ "hangs_within_a_copy", failing_engine, TWO ",dma=hang:5" ENGINE },
	{ "dies_staging", failing_engine, TWO ",no-peer,dma=die:9" ENGINE },
	{ "unconfirmed_from_host", unconfirmed_from, TWO LOST },
	{ "unconfirmed_to_host", unconfirmed_to, TWO LOST },
	{ "unconfirmed_across", unconfirmed_across, TWO LOST },
	{ "unconfirmed_inside", unconfirmed_inside, TWO LOST },
	{ "unconfirmed_staged", unconfirmed_across, TWO ",no-peer" LOST },
};

API_MAIN(cases)
