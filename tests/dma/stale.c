/* SPDX-License-Identifier: MIT */
/*
 * When a copy returns, every byte of it has arrived.  The destination is poisoned
 * before each copy and compared byte for byte after it.  The two ways of completion
 * that hold this never show an old byte; the unsafe one, and a channel whose
 * semaphores do not wait, must show some, or this test could not see them.
 */
#include <string.h>

#include "dma/helper_dma.h"

#define LARGEST ((size_t)1 << 20)

struct probe {
	struct dma_rig rig;
	struct dma_memory memory, other;
	uint8_t *host;		/* registered */
	uint8_t *pageable;
	uint8_t *pattern;
	unsigned stale;		/* copies after which an old byte was seen */
};

/* What the next copy must bring differs from what is there in every byte. */
static void poison(uint8_t *to, const uint8_t *pattern, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (uint8_t)~pattern[i];
}

/*
 * Old bytes race with the look by intention; the thread sanitizer shall not
 * report what the test itself reports.
 */
__attribute__((no_sanitize("thread")))
static bool differs(const volatile uint8_t *a, const uint8_t *b, size_t size)
{
	/* What comes last is at one of the ends or in pieces; look before it arrives. */
	for (size_t i = 0; i < size; i++)
		if (a[size - 1 - i] != b[size - 1 - i])
			return true;
	return false;
}

static void read_once(struct probe *probe, uint8_t *host, size_t size)
{
	memcpy(probe->memory.cpu, probe->pattern, size);
	poison(host, probe->pattern, size);
	CHECK_EQ(gdri_dma_from_device(probe->memory.target, 0, host, size), 0);
	probe->stale += differs(host, probe->pattern, size);
}

static void write_once(struct probe *probe, uint8_t *host, size_t size)
{
	memcpy(host, probe->pattern, size);
	poison(probe->memory.cpu, probe->pattern, size);
	CHECK_EQ(gdri_dma_to_device(probe->memory.target, 0, host, size), 0);
	probe->stale += differs(probe->memory.cpu, probe->pattern, size);
}

static void move_once(struct probe *probe, size_t size)
{
	enum gdri_dma_route route;

	memcpy(probe->memory.cpu, probe->pattern, size);
	poison(probe->other.cpu, probe->pattern, size);
	CHECK_EQ(gdri_dma_between(probe->other.target, 0, probe->memory.target, 0, size,
				  GDRI_DMA_ROUTE_AUTO, &route), 0);
	probe->stale += differs(probe->other.cpu, probe->pattern, size);
}

static void open_probe(struct probe *probe, const struct gdri_dma_options *options)
{
	memset(probe, 0, sizeof(*probe));
	dma_open(&probe->rig, options);
	dma_attach(&probe->rig, 0, LARGEST, &probe->memory);
	dma_attach(&probe->rig, 0, LARGEST, &probe->other);
	probe->host = dma_pages(LARGEST);
	probe->pageable = dma_pages(LARGEST);
	probe->pattern = dma_pages(LARGEST);
	REQUIRE_EQ(gdri_dma_register(probe->rig.dma, probe->host, LARGEST), 0);
}

static void close_probe(struct probe *probe)
{
	CHECK_EQ(gdri_dma_unregister(probe->rig.dma, probe->host), 0);
	dma_free(&probe->rig, &probe->memory);
	dma_free(&probe->rig, &probe->other);
	dma_close(&probe->rig);
}

static unsigned count_stale(enum gdri_dma_completion completion)
{
	static const struct {
		size_t size;
		unsigned turns;
	} classes[] = { { 64, 400 }, { 4096, 400 }, { 65536, 100 }, { LARGEST, 20 } };
	struct gdri_dma_options options = dma_options();
	struct probe probe;

	options.completion = completion;
	open_probe(&probe, &options);
	for (unsigned c = 0; c < sizeof(classes) / sizeof(classes[0]); c++)
		for (unsigned turn = 0; turn < dma_turns(classes[c].turns); turn++) {
			dma_fill(probe.pattern, classes[c].size, turn * 31 + c);
			read_once(&probe, probe.host, classes[c].size);
			read_once(&probe, probe.pageable, classes[c].size);
			write_once(&probe, probe.host, classes[c].size);
			write_once(&probe, probe.pageable, classes[c].size);
			move_once(&probe, classes[c].size);
		}
	close_probe(&probe);
	return probe.stale;
}

static void by_host_body(void)
{
	CHECK_EQ(count_stale(GDRI_DMA_BY_HOST), 0);
}

static void by_engine_flushed_body(void)
{
	CHECK_EQ(count_stale(GDRI_DMA_BY_ENGINE_FLUSHED), 0);
}

static void by_engine_unsafe_body(void)
{
	CHECK(count_stale(GDRI_DMA_BY_ENGINE_UNSAFE) > 0);
}

static void early_channel_body(void)
{
	CHECK(count_stale(GDRI_DMA_BY_HOST) > 0);
}

static void by_host(void)
{
	dma_run_with("", by_host_body);
}

static void by_engine_flushed(void)
{
	dma_run_with("", by_engine_flushed_body);
}

static void unsafe_way_is_seen(void)
{
	dma_run_with("", by_engine_unsafe_body);
}

static void early_channel_is_seen(void)
{
	dma_run_with("dma=early", early_channel_body);
}

static const struct harness_case cases[] = {
	{ "by_host", by_host },
	{ "by_engine_flushed", by_engine_flushed },
	{ "unsafe_way_is_seen", unsafe_way_is_seen },
	{ "early_channel_is_seen", early_channel_is_seen },
};

HARNESS_MAIN(cases)
