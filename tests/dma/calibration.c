/* SPDX-License-Identifier: MIT */
/* The calibration: it measures what it says, and draws the right conclusion. */
#include "dma/helper_dma.h"

#include <string.h>
#include <time.h>

#include "copy/dma/device.h"

#define CALLS 256

/* What the CPU's routines were asked to do, and how long they pretend to take. */
static struct {
	const uint8_t *dst[CALLS], *src[CALLS];
	size_t size[CALLS];
	unsigned count;
	uint64_t ns_per_kib;
} to, from;

static void note(struct timespec *pause, void *dst, const void *src, size_t size)
{
	memcpy(dst, src, size);
	if (pause->tv_nsec)
		nanosleep(pause, NULL);
}

static void store(void *dst, const void *src, size_t size)
{
	struct timespec pause = { 0, (long)(to.ns_per_kib * (size >> 10)) };

	if (to.count < CALLS) {
		to.dst[to.count] = dst;
		to.src[to.count] = src;
		to.size[to.count++] = size;
	}
	note(&pause, dst, src, size);
}

static void load(void *dst, const void *src, size_t size)
{
	struct timespec pause = { 0, (long)(from.ns_per_kib * (size >> 10)) };

	if (from.count < CALLS) {
		from.dst[from.count] = dst;
		from.src[from.count] = src;
		from.size[from.count++] = size;
	}
	note(&pause, dst, src, size);
}

static bool lies_in_scratch(const struct gdri_dma_device *device, const uint8_t *at, size_t size)
{
	const uint8_t *scratch = device->scratch;

	return at >= scratch && size <= GDRI_DMA_SCRATCH_BYTES &&
	       (size_t)(at - scratch) <= GDRI_DMA_SCRATCH_BYTES - size;
}

static struct gdri_dma_calibration calibrate(uint64_t to_ns, uint64_t from_ns)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma_calibration result;
	const struct gdri_dma_device *device;
	struct dma_memory memory;
	struct dma_rig rig;

	memset(&to, 0, sizeof(to));
	memset(&from, 0, sizeof(from));
	to.ns_per_kib = to_ns;
	from.ns_per_kib = from_ns;
	options.calibrate = true;
	options.to_mapping = store;
	options.from_mapping = load;
	dma_open(&rig, &options);
	dma_attach(&rig, 0, 65536, &memory);
	device = memory.target->device;
	CHECK(to.count > 3 && from.count > 3);
	for (unsigned i = 0; i < to.count; i++)
		CHECK(lies_in_scratch(device, to.dst[i], to.size[i]) &&
		      !lies_in_scratch(device, to.src[i], to.size[i]));
	for (unsigned i = 0; i < from.count; i++)
		CHECK(lies_in_scratch(device, from.src[i], from.size[i]) &&
		      !lies_in_scratch(device, from.dst[i], from.size[i]));
	gdri_dma_get_calibration(memory.target, &result);
	dma_free(&rig, &memory);
	dma_close(&rig);
	return result;
}

/* A CPU that takes 100 us for each KiB loses everywhere; one that takes none wins. */
static void conclusions_body(void)
{
	struct gdri_dma_calibration found = calibrate(100000, 0);

	CHECK(found.crossover[0][0] <= 65536 && found.crossover[0][1] <= 65536);
	found = calibrate(0, 100000);
	CHECK(found.crossover[1][0] <= 65536 && found.crossover[1][1] <= 65536);
}

static void conclusions(void)
{
	dma_run_with("", conclusions_body);
}

static const struct harness_case cases[] = {
	{ "calibration.conclusions", conclusions },
};
HARNESS_MAIN(cases)
