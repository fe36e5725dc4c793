/* SPDX-License-Identifier: MIT */
/* Opens and closes a device: space, engines, queues, bounce memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy/cpu/fence.h"
#include "copy/dma/device.h"

/*
 * Which engine serves which way.  Between two places of one device the width
 * counts: on an H200 COPY4 has 12 physical engines and is three times faster
 * than the others.  Reads take the same one, which has their last byte home a little
 * earlier (64 KiB in 4.1 us instead of 4.25, 1 MiB in 21.8 instead of 22.2).
 * Writes are slower on it (1 MiB in 23.6 us instead of 23.2) and take another, so
 * that the two directions of the link do not wait for each other: the highest
 * number, since low ones are what a driver hands out first.  (Figures:
 * tests/device/dma_tune.)
 */
static bool is_better(const struct gdri_dma_engine *a, const struct gdri_dma_engine *b, bool wide)
{
	if (wide && a->width != b->width)
		return a->width > b->width;
	if (wide && a->shared != b->shared)
		return !a->shared;
	return a->number > b->number;
}

/* The best of those that are not in the mask, or of all when that leaves none. */
static unsigned pick_engine(const struct gdri_dma_engine *engines, unsigned count,
			    uint32_t taken, bool wide)
{
	unsigned best = count;

	for (unsigned i = 0; i < count; i++)
		if (!(taken >> i & 1) &&
		    (best == count || is_better(&engines[i], &engines[best], wide)))
			best = i;
	return best < count ? best : pick_engine(engines, count, 0, wide);
}

static int pick_engines(const struct gdri_dma *dma, const struct gdri_dma_engine *engines,
			unsigned count, unsigned pick[GDRI_DMA_WAYS])
{
	const int forced = dma->options.engine;

	for (unsigned i = 0; forced >= 0 && i < count; i++)
		if (engines[i].number == (unsigned)forced) {
			pick[GDRI_DMA_WAY_TO] = pick[GDRI_DMA_WAY_FROM] = i;
			pick[GDRI_DMA_WAY_BETWEEN] = i;
			return 0;
		}
	if (forced >= 0 || count == 0)
		return -EOPNOTSUPP;
	pick[GDRI_DMA_WAY_BETWEEN] = pick_engine(engines, count, 0, true);
	pick[GDRI_DMA_WAY_FROM] = pick[GDRI_DMA_WAY_BETWEEN];
	pick[GDRI_DMA_WAY_TO] = pick_engine(engines, count,
					    UINT32_C(1) << pick[GDRI_DMA_WAY_BETWEEN], false);
	return 0;
}

static struct gdri_dma_channel *find_channel(struct gdri_dma_device *device, unsigned number)
{
	for (unsigned i = 0; i < device->channel_count; i++)
		if (device->channels[i].queue.engine.number == number)
			return &device->channels[i];
	return NULL;
}

static int open_way(struct gdri_dma_device *device, const struct gdri_dma_engine *engine,
		    struct gdri_dma_channel **way)
{
	struct gdri_dma_channel *channel = find_channel(device, engine->number);
	int rc;

	if (!channel) {
		channel = &device->channels[device->channel_count];
		rc = gdri_dma_channel_open(device->space, engine, &device->dma->options,
					   device->scratch, channel);
		if (rc != 0)
			return rc;
		device->channel_count++;
	}
	*way = channel;
	return 0;
}

/*
 * A way whose engine has no free channel goes with another way's.  A channel that
 * opened but does not work is a reason to leave the device alone.
 */
static int open_ways(struct gdri_dma_device *device)
{
	struct gdri_dma_engine engines[GDRI_DMA_MAX_ENGINES];
	unsigned pick[GDRI_DMA_WAYS];
	int count, rc, failure = 0;

	count = device->space->port->ops->list_engines(device->space, engines);
	if (count < 0)
		return count;
	rc = pick_engines(device->dma, engines, (unsigned)count, pick);
	if (rc != 0)
		return rc;
	for (unsigned way = 0; way < GDRI_DMA_WAYS; way++) {
		rc = open_way(device, &engines[pick[way]], &device->way[way]);
		if (rc == -EIO || rc == -ETIMEDOUT || rc == -EOWNERDEAD)
			return rc;
		failure = rc ? rc : failure;
	}
	if (device->channel_count == 0)
		return failure;
	for (unsigned way = 0; way < GDRI_DMA_WAYS; way++)
		if (!device->way[way])
			device->way[way] = &device->channels[0];
	return 0;
}

/* Every channel; 0, or -EOWNERDEAD when any of them may still run. */
static int close_ways(struct gdri_dma_device *device)
{
	int rc = 0;

	for (unsigned i = 0; i < device->channel_count; i++)
		if (gdri_dma_channel_close(&device->channels[i]) != 0)
			rc = -EOWNERDEAD;
	device->channel_count = 0;
	return rc;
}

/* What is registered already becomes visible here, where that works. */
static void map_known_ranges(struct gdri_dma_device *device)
{
	struct gdri_dma_hostmem *set = &device->dma->hostmem;

	for (size_t i = 0; i < atomic_load(&set->count); i++)
		if (!set->range[i]->lost)
			gdri_dma_hostmem_map(set, set->range[i], device->index, device->space);
}

static int unmap_known_ranges(struct gdri_dma_device *device)
{
	struct gdri_dma_hostmem *set = &device->dma->hostmem;
	int rc = 0, one;

	for (size_t i = 0; i < atomic_load(&set->count); i++) {
		one = gdri_dma_hostmem_unmap(set, set->range[i], device->index, device->space);
		rc = rc ? rc : one;
	}
	return rc;
}

/* Our own device must see the bounce memory; the others may, for staged copies. */
static int show_bounce(struct gdri_dma_device *device, struct gdri_dma_range *range)
{
	struct gdri_dma *dma = device->dma;
	int rc;

	rc = gdri_dma_hostmem_map(&dma->hostmem, range, device->index, device->space);
	for (unsigned i = 0; rc == 0 && i < dma->device_count; i++)
		if (atomic_load(&dma->devices[i]->refused) == 0)
			gdri_dma_hostmem_map(&dma->hostmem, range, i, dma->devices[i]->space);
	return rc;
}

/* What this leaves behind when it fails, close_memory clears away. */
static int open_bounce(struct gdri_dma_device *device)
{
	struct gdri_dma *dma = device->dma;
	struct gdri_dma_range *range;
	int rc;

	rc = gdri_dma_bounce_create(&device->bounce, dma->options.bounce_bytes,
				    dma->options.chunk_bytes);
	if (rc != 0)
		return rc;
	rc = gdri_dma_hostmem_new(device->bounce.base, dma->options.bounce_bytes, &range);
	if (rc != 0)
		return rc;
	rc = gdri_dma_hostmem_add(&dma->hostmem, range);
	if (rc != 0) {
		free(range);
		return rc;
	}
	device->bounce_range = range;
	rc = show_bounce(device, range);
	if (rc != 0)
		return rc;
	device->bounce_address = range->view[device->index].address;
	gdri_dma_hostmem_open(&dma->hostmem, range);
	return 0;
}

static int open_memory(struct gdri_dma_device *device)
{
	int rc;

	rc = device->space->port->ops->scratch(device->space, GDRI_DMA_SCRATCH_BYTES,
					       &device->scratch, &device->scratch_address);
	if (rc != 0)
		return rc;
	map_known_ranges(device);
	return open_bounce(device);
}

/* Of our bounce memory, which staged copies show to other devices. */
static int close_bounce(struct gdri_dma_device *device)
{
	struct gdri_dma *dma = device->dma;
	struct gdri_dma_range *range = device->bounce_range;
	int rc = 0, one;

	for (unsigned i = 0; i < dma->device_count; i++) {
		if (!dma->devices[i]->space || atomic_load(&dma->devices[i]->lost))
			continue;
		one = gdri_dma_hostmem_unmap(&dma->hostmem, range, i, dma->devices[i]->space);
		rc = rc ? rc : one;
	}
	/* A lost device still sees it. */
	if (range->mapped)
		return rc;
	gdri_dma_hostmem_remove(&dma->hostmem, range);
	free(range);
	gdri_dma_bounce_destroy(&device->bounce);
	return rc;
}

/* No queue of the device is open. */
static int close_memory(struct gdri_dma_device *device)
{
	int rc = unmap_known_ranges(device), one = 0;

	if (device->bounce_range)
		one = close_bounce(device);
	else if (device->bounce.base)
		gdri_dma_bounce_destroy(&device->bounce);
	return rc ? rc : one;
}

/* 0, an error, or -EOWNERDEAD: a channel may still run, and everything stays as it is. */
static int close_parts(struct gdri_dma_device *device)
{
	int rc = 0, one;

	if (close_ways(device) != 0 || atomic_load(&device->lost))
		return -EOWNERDEAD;
	if (device->space) {
		rc = close_memory(device);
		one = device->space->port->ops->close_space(device->space);
		rc = rc ? rc : one;
	}
	free(device->channels);
	device->channels = NULL;
	device->space = NULL;
	device->bounce_range = NULL;
	return rc;
}

static int open_parts(struct gdri_dma_device *device)
{
	struct gdri_dma_port *port = device->dma->port;
	int rc;

	device->channels = aligned_alloc(_Alignof(struct gdri_dma_channel),
					 GDRI_DMA_WAYS * sizeof(*device->channels));
	if (!device->channels)
		return -ENOMEM;
	rc = port->ops->open_space(port, device->number, &device->space);
	if (rc != 0)
		return rc;
	rc = open_memory(device);
	if (rc != 0)
		return rc;
	rc = open_ways(device);
	return rc ? rc : gdri_dma_device_calibrate(device);
}

int gdri_dma_device_open(struct gdri_dma *dma, unsigned number, unsigned index,
			 struct gdri_dma_device **device)
{
	struct gdri_dma_device *made;
	int rc;

	made = aligned_alloc(_Alignof(struct gdri_dma_device), sizeof(*made));
	if (!made)
		return -ENOMEM;
	*made = (struct gdri_dma_device){ .dma = dma, .number = number, .index = index };
	rc = open_parts(made);
	if (rc != 0) {
		gdri_info(dma->port->log, "DMA: device %u has no DMA road: %s", number,
			  strerror(-rc));
		atomic_store(&made->lost, rc == -EOWNERDEAD);
		if (close_parts(made) == -EOWNERDEAD)
			atomic_store(&made->lost, true);
		atomic_store(&made->refused, rc);
	}
	*device = made;
	return 0;
}

int gdri_dma_device_close(struct gdri_dma_device *device)
{
	const int rc = close_parts(device);

	if (rc != -EOWNERDEAD)
		free(device);
	return rc;
}

int gdri_dma_device_died(struct gdri_dma_device *device, struct gdri_dma_target *written, int rc)
{
	int ready = 0;

	if (rc == -EOWNERDEAD) {
		if (written)
			atomic_store(&written->lost, true);
		atomic_store(&device->lost, true);
		gdri_dma_hostmem_lose(&device->dma->hostmem, device->index);
	}
	if (atomic_compare_exchange_strong(&device->refused, &ready, -ENODEV))
		gdri_warn(device->dma->port->log,
			  "DMA: device %u has no DMA road any more; copies take the CPU's",
			  device->number);
	return rc;
}

void gdri_dma_device_settle(const struct gdri_dma_device *device)
{
	gdri_fence_stores_posted();
	(void)*(volatile const uint32_t *)device->scratch;
	gdri_fence_loads_done();
}
