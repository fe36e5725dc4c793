/* SPDX-License-Identifier: MIT */
/* Drives the emulated driver's model of a copy-engine channel. */
#include "copy/dma/port_emu.h"

#include <errno.h>
#include <stdlib.h>

#include "../../../emu/gdrcopy_emu.h"

struct emu_space {
	struct gdri_dma_space base;
	struct gdrcopy_emu_space *space;
};

static struct gdri_dma_port_emu *port_of(struct gdri_dma_port *port)
{
	return (struct gdri_dma_port_emu *)port;
}

static struct gdrcopy_emu_space *space_of(struct gdri_dma_space *space)
{
	return ((struct emu_space *)space)->space;
}

static const struct gdrcopy_emu_entry *entry_of(const struct gdri_dma_space *space)
{
	return port_of(space->port)->entry;
}

/* Whoever asks has another road, so a refusal is a line for debugging. */
static int report(const struct gdri_dma_port *port, const char *step, int ret)
{
	if (ret < 0)
		gdri_debug(port->log, "emulated copy engine: %s failed (%d)", step, -ret);
	return ret;
}

static int open_space(struct gdri_dma_port *port, unsigned device, struct gdri_dma_space **space)
{
	struct emu_space *opened = calloc(1, sizeof(*opened));
	int ret;

	if (!opened)
		return report(port, "opening a space", -ENOMEM);
	ret = port_of(port)->entry->dma_space((int)device, &opened->space);
	if (ret != 0) {
		free(opened);
		return report(port, "opening a space", ret);
	}
	opened->base.port = port;
	*space = &opened->base;
	return 0;
}

static int close_space(struct gdri_dma_space *space)
{
	struct gdri_dma_port *port = space->port;
	int ret = entry_of(space)->dma_space_close(space_of(space));

	if (ret == 0)
		free(space);
	return report(port, "closing a space", ret);
}

static int list_engines(struct gdri_dma_space *space, struct gdri_dma_engine *engines)
{
	struct gdrcopy_emu_engine found[GDRI_DMA_MAX_ENGINES];
	int count = entry_of(space)->dma_engines(space_of(space), found, GDRI_DMA_MAX_ENGINES);

	for (int i = 0; i < count; i++)
		engines[i] = (struct gdri_dma_engine){
			.number = found[i].number,
			.width = found[i].width,
			.shared = found[i].shared,
		};
	return report(space->port, "listing engines", count);
}

static void knock(struct gdri_dma_queue *queue)
{
	entry_of(queue->space)->dma_knock(queue->priv);
}

static int open_queue(struct gdri_dma_space *space, const struct gdri_dma_engine *engine,
		      struct gdri_dma_queue *queue)
{
	struct gdrcopy_emu_queue *opened;
	int ret = entry_of(space)->dma_queue(space_of(space), engine->number, &opened);

	if (ret != 0)
		return report(space->port, "opening a queue", ret);
	*queue = (struct gdri_dma_queue){
		.space = space,
		.ring = opened->ring,
		.ring_entries = opened->ring_entries,
		.push = opened->push,
		.push_address = opened->push_address,
		.push_words = opened->push_words,
		.put = opened->put,
		.get = opened->get,
		.knock = knock,
		.copy_class = opened->copy_class,
		.semaphore = opened->semaphore,
		.semaphore_address = opened->semaphore_address,
		.notifier = opened->notifier,
		.engine = *engine,
		.priv = opened,
	};
	return 0;
}

static int close_queue(struct gdri_dma_queue *queue)
{
	return report(queue->space->port, "closing a queue",
		      entry_of(queue->space)->dma_close(queue->priv));
}

static int map_memory(struct gdri_dma_space *space, const struct gdri_dma_memory *memory,
		      struct gdri_dma_view *view)
{
	const struct gdrcopy_emu_range *range = memory->object;
	uint64_t address;
	int ret = -EINVAL;

	if (range->device >= 0 && (unsigned)range->device == memory->device)
		ret = entry_of(space)->dma_map(space_of(space), range, memory->offset,
					       memory->length, &address);
	if (ret != 0)
		return report(space->port, "mapping device memory", ret);
	*view = (struct gdri_dma_view){ .address = address, .length = memory->length };
	return 0;
}

static int map_host(struct gdri_dma_space *space, void *base, size_t length,
		    struct gdri_dma_view *view)
{
	uint64_t address;
	int ret = entry_of(space)->dma_host(space_of(space), base, length, &address);

	if (ret != 0)
		return report(space->port, "mapping host memory", ret);
	*view = (struct gdri_dma_view){ .address = address, .length = length };
	return 0;
}

static int unmap(struct gdri_dma_space *space, struct gdri_dma_view *view)
{
	return report(space->port, "unmapping",
		      entry_of(space)->dma_unmap(space_of(space), view->address));
}

static int scratch(struct gdri_dma_space *space, size_t length, void **base, uint64_t *address)
{
	return report(space->port, "taking scratch memory",
		      entry_of(space)->dma_scratch(space_of(space), length, base, address));
}

static const struct gdri_dma_port_ops ops = {
	.name = "emu",
	.open_space = open_space,
	.close_space = close_space,
	.list_engines = list_engines,
	.open_queue = open_queue,
	.close_queue = close_queue,
	.map_memory = map_memory,
	.map_host = map_host,
	.unmap = unmap,
	.scratch = scratch,
};

void gdri_dma_port_emu_init(struct gdri_dma_port_emu *port, const struct gdrcopy_emu_entry *entry,
			    const struct gdri_log *log)
{
	*port = (struct gdri_dma_port_emu){
		.base = { .ops = &ops, .log = log }, .entry = entry
	};
}
