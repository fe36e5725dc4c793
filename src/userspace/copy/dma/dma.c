/* SPDX-License-Identifier: MIT */
/* One session's DMA engine: its devices, targets and registered host memory. */
#include "copy/dma/dma.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copy/dma/stream.h"
#include "copy/dma/transfer.h"
#include "os/sys.h"

static void copy_plainly(void *dst, const void *src, size_t size)
{
	memcpy(dst, src, size);
}

/*
 * Sizes of pieces, where options do not say otherwise.  The engine needs 1.4 us for
 * 64 KiB over a link of 48 GB/s and about 1 us more for a release of its own;
 * a CPU that reads what an engine has written gets 20 GB/s, 3.3 us, so the
 * engine is always ahead with chunks of that size.  Edges from 8 to 32 KiB were
 * tried (tests/device/dma_tune).
 */
#define BOUNCE_BYTES ((size_t)1 << 20)
#define CHUNK_BYTES ((size_t)64 << 10)
#define EDGE_BYTES ((size_t)16 << 10)
#define DEPTH 4

/* From there on the CPU's copy out of bounce memory is slower than pinning (tests/device/dma_tune). */
#define PIN_FROM ((size_t)4 << 20)
#define PIN_WINDOW ((size_t)2 << 20)

static size_t or_default(size_t value, size_t standard)
{
	return value ? value : standard;
}

static void fill_options(struct gdri_dma_options *options)
{
	options->timeout_ns = options->timeout_ns ? options->timeout_ns : UINT64_C(2000000000);
	options->first_ticket = options->first_ticket ? options->first_ticket : 1;
	options->pin_from = or_default(options->pin_from, PIN_FROM);
	options->pin_window = or_default(options->pin_window, PIN_WINDOW);
	options->bounce_bytes = or_default(options->bounce_bytes, BOUNCE_BYTES);
	options->chunk_bytes = or_default(options->chunk_bytes, CHUNK_BYTES);
	options->read_edge = or_default(options->read_edge, EDGE_BYTES);
	options->write_edge = or_default(options->write_edge, EDGE_BYTES);
	options->depth = options->depth ? options->depth : DEPTH;
	if (options->depth > GDRI_DMA_DEPTH)
		options->depth = GDRI_DMA_DEPTH;
	options->launch_bytes = options->launch_bytes ? options->launch_bytes :
							GDRI_DMA_LAUNCH_MAX;
	options->fill = options->fill ? options->fill : copy_plainly;
	options->empty_large = options->empty_large ? options->empty_large :
			       options->empty ? options->empty : gdri_dma_stream_copy;
	options->empty = options->empty ? options->empty : copy_plainly;
}

static bool options_are_sound(const struct gdri_dma_options *options)
{
	const size_t page = gdri_os_page_size();

	return options->chunk_bytes % page == 0 && options->bounce_bytes % page == 0 &&
	       options->pin_window % page == 0 && options->pin_window <= GDRI_DMA_LAUNCH_MAX &&
	       options->bounce_bytes / options->chunk_bytes >= 1 &&
	       options->bounce_bytes / options->chunk_bytes <= GDRI_DMA_MAX_CHUNKS &&
	       options->launch_bytes <= GDRI_DMA_LAUNCH_MAX;
}

int gdri_dma_create(struct gdri_dma_port *port, const struct gdri_dma_options *options,
		    struct gdri_dma **dma)
{
	struct gdri_dma *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->port = port;
	made->options = *options;
	made->owner = getpid();
	fill_options(&made->options);
	if (!options_are_sound(&made->options)) {
		free(made);
		return -EINVAL;
	}
	pthread_mutex_init(&made->lock, NULL);
	*dma = made;
	return 0;
}

/* Registered ranges go with their devices' spaces; only their marks are left to undo. */
static void forget_ranges(struct gdri_dma *dma)
{
	struct gdri_dma_hostmem *set = &dma->hostmem;

	for (size_t i = 0; i < atomic_load(&set->count); i++) {
		if (set->range[i]->name && !set->range[i]->lost)
			gdri_dma_hostmem_allow_fork(set->range[i]);
		free(set->range[i]);
	}
	free(set->range);
}

int gdri_dma_destroy(struct gdri_dma *dma)
{
	bool lost = false;
	int rc = 0, one;

	if (getpid() != dma->owner)
		return -EACCES;
	while (dma->device_count > 0) {
		one = gdri_dma_device_close(dma->devices[--dma->device_count]);
		lost = lost || one == -EOWNERDEAD;
		rc = rc ? rc : one;
	}
	/* A lost device keeps all that it knows, and this with it. */
	if (lost)
		return rc;
	forget_ranges(dma);
	pthread_mutex_destroy(&dma->lock);
	free(dma);
	return rc;
}

/* The device as it was found at its first attach; the mutex is held. */
static int find_device(struct gdri_dma *dma, unsigned number, struct gdri_dma_device **device)
{
	int rc;

	for (unsigned i = 0; i < dma->device_count; i++)
		if (dma->devices[i]->number == number) {
			*device = dma->devices[i];
			return 0;
		}
	if (dma->device_count == GDRI_DMA_MAX_DEVICES)
		return -EOPNOTSUPP;
	rc = gdri_dma_device_open(dma, number, dma->device_count, device);
	if (rc == 0)
		dma->devices[dma->device_count++] = *device;
	return rc;
}

static int attach_target(struct gdri_dma *dma, struct gdri_dma_target *target)
{
	int rc;

	rc = find_device(dma, target->memory.device, &target->device);
	if (rc == 0)
		rc = atomic_load(&target->device->refused);
	if (rc != 0)
		return rc;
	return dma->port->ops->map_memory(target->device->space, &target->memory, &target->view);
}

int gdri_dma_attach(struct gdri_dma *dma, const struct gdri_dma_memory *memory,
		    struct gdri_dma_target **target)
{
	struct gdri_dma_target *made;
	int rc;

	if (getpid() != dma->owner)
		return -EACCES;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->memory = *memory;
	pthread_mutex_lock(&dma->lock);
	rc = attach_target(dma, made);
	pthread_mutex_unlock(&dma->lock);
	if (rc != 0) {
		free(made);
		return rc;
	}
	*target = made;
	return 0;
}

/* A lost channel may still use the view: it stays, and so does the memory behind it. */
static void unmap_target(struct gdri_dma_target *target, struct gdri_dma_device *device,
			 struct gdri_dma_view *view)
{
	const struct gdri_dma_port_ops *ops = target->device->dma->port->ops;

	if (!atomic_load(&device->lost) && ops->unmap(device->space, view) != 0)
		gdri_warn(target->device->dma->port->log,
			  "DMA: device %u keeps a view of memory that was unpinned",
			  device->number);
}

void gdri_dma_detach(struct gdri_dma_target *target)
{
	struct gdri_dma *dma = target->device->dma;

	if (getpid() != dma->owner)
		return;
	pthread_mutex_lock(&dma->lock);
	for (unsigned i = 0; i < dma->device_count; i++)
		if (atomic_load(&target->peer[i].state) == GDRI_DMA_PEER_MAPPED)
			unmap_target(target, dma->devices[i], &target->peer[i].view);
	unmap_target(target, target->device, &target->view);
	pthread_mutex_unlock(&dma->lock);
	free(target);
}

/* For every device that is ready, or for none. */
static int show_range(struct gdri_dma *dma, struct gdri_dma_range *range)
{
	unsigned i;
	int rc = 0;

	for (i = 0; rc == 0 && i < dma->device_count; i++)
		if (atomic_load(&dma->devices[i]->refused) == 0)
			rc = gdri_dma_hostmem_map(&dma->hostmem, range, i,
						  dma->devices[i]->space);
	while (rc != 0 && i-- > 0)
		gdri_dma_hostmem_unmap(&dma->hostmem, range, i, dma->devices[i]->space);
	return rc;
}

/* Closed to copies until every device sees it. */
static int add_range(struct gdri_dma *dma, struct gdri_dma_range *range)
{
	int rc;

	rc = gdri_dma_hostmem_add(&dma->hostmem, range);
	if (rc != 0)
		return rc;
	rc = show_range(dma, range);
	if (rc != 0) {
		gdri_dma_hostmem_remove(&dma->hostmem, range);
		return rc;
	}
	gdri_dma_hostmem_forbid_fork(range, dma->port->log);
	gdri_dma_hostmem_open(&dma->hostmem, range);
	return 0;
}

int gdri_dma_register(struct gdri_dma *dma, void *base, size_t length)
{
	struct gdri_dma_range *range;
	int rc;

	if (getpid() != dma->owner)
		return -EACCES;
	rc = gdri_dma_hostmem_new(base, length, &range);
	if (rc != 0)
		return rc;
	range->name = base;
	pthread_mutex_lock(&dma->lock);
	rc = add_range(dma, range);
	pthread_mutex_unlock(&dma->lock);
	if (rc != 0)
		free(range);
	return rc;
}

/* No copy uses it, and none will. */
static int drop_range(struct gdri_dma *dma, struct gdri_dma_range *range)
{
	int rc = 0, one;

	if (range->lost)
		return -EOWNERDEAD;
	for (unsigned i = 0; i < dma->device_count; i++) {
		one = gdri_dma_hostmem_unmap(&dma->hostmem, range, i, dma->devices[i]->space);
		rc = rc ? rc : one;
	}
	gdri_dma_hostmem_remove(&dma->hostmem, range);
	gdri_dma_hostmem_allow_fork(range);
	free(range);
	return rc;
}

int gdri_dma_unregister(struct gdri_dma *dma, void *base)
{
	struct gdri_dma_range *range;
	int rc;

	if (getpid() != dma->owner)
		return -EACCES;
	pthread_mutex_lock(&dma->lock);
	range = gdri_dma_hostmem_close(&dma->hostmem, base);
	pthread_mutex_unlock(&dma->lock);
	if (!range)
		return -ENOENT;
	while (atomic_load(&range->users) != 0)
		sched_yield();
	pthread_mutex_lock(&dma->lock);
	rc = drop_range(dma, range);
	pthread_mutex_unlock(&dma->lock);
	return rc;
}

bool gdri_dma_is_registered(struct gdri_dma *dma, const void *host, size_t size)
{
	return gdri_dma_hostmem_covers(&dma->hostmem, host, size);
}

void gdri_dma_get_calibration(const struct gdri_dma_target *target,
			      struct gdri_dma_calibration *calibration)
{
	*calibration = target->device->calibration;
}

void gdri_dma_describe(const struct gdri_dma_target *target, char *text, size_t size)
{
	const struct gdri_dma_device *device = target->device;

	if (atomic_load(&device->refused) != 0) {
		snprintf(text, size, "no channel any more");
		return;
	}
	snprintf(text, size, "COPY%u to the device, COPY%u from it, COPY%u inside; "
		 "%zu KiB of bounce memory",
		 device->way[GDRI_DMA_WAY_TO]->queue.engine.number,
		 device->way[GDRI_DMA_WAY_FROM]->queue.engine.number,
		 device->way[GDRI_DMA_WAY_BETWEEN]->queue.engine.number,
		 device->dma->options.bounce_bytes >> 10);
}
