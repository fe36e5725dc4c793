/* SPDX-License-Identifier: MIT */
/* A session's DMA engine, and how pinned ranges come to it. */
#include "core/dma.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "copy/dma/dma.h"
#include "copy/dma/port_emu.h"
#include "copy/dma/port_rm.h"
#include "core/context.h"
#include "core/intervals.h"
#include "core/region.h"
#include "os/cancel.h"
#include "os/cuda.h"
#include "rm/range.h"

#include "../../emu/gdrcopy_emu.h"

static const struct gdri_dma_road no_road = {
	.to_min = SIZE_MAX,
	.from_min = SIZE_MAX,
	.to_min_registered = SIZE_MAX,
	.from_min_registered = SIZE_MAX,
};

/* Below this the conditions of a copy by DMA cost more than it brings. */
#define LEAST_SIZE ((size_t)4096)

/* 1, 2, 4 and 8 bytes are one access of the CPU, whatever GDRCOPY_DMA says. */
#define LEAST_FORCED ((size_t)9)

/*
 * Made when the first region asks for it, and kept, also when the machine turns
 * out to have no road, so that it is asked once.
 */
struct gdri_core_dma {
	struct gdri_dma *dma;	/* NULL: refused */
	union {
		struct gdri_dma_port_emu emu;
		struct gdri_dma_port_rm rm;
	} port;
	/* For back ends that do not use the resource manager themselves. */
	struct gdri_rm_client *client;
	struct gdri_cuda cuda;
	struct gdri_core_dma *next_lost;
};

/* Those that outlive their sessions; kept here, so that no leak checker takes them for leaks. */
static _Atomic(struct gdri_core_dma *) lost_engines;

static int acquire_client(struct gdri_core_dma *made, const struct gdri_log *log)
{
	struct gdri_rm_failure failure;
	char text[128];
	int rc;

	rc = gdri_os_cuda_load(&made->cuda);
	if (rc)
		return rc;
	rc = gdri_rm_client_acquire(&made->client, &failure);
	if (rc == 0)
		return 0;
	gdri_debug(log, "copy engines: %s", gdri_rm_failure_text(&failure, text, sizeof(text)));
	gdri_os_cuda_unload(&made->cuda);
	return rc;
}

static void release_client(struct gdri_core_dma *made)
{
	if (!made->client)
		return;
	gdri_rm_client_release(made->client);
	gdri_os_cuda_unload(&made->cuda);
	made->client = NULL;
}

static struct gdri_dma_port *init_port(struct gdri_core_dma *made,
				       const struct gdri_context *context,
				       const struct gdri_backend_memory *memory)
{
	const struct gdri_log *log = &context->config.log;
	struct gdri_rm_client *client = memory->client ? memory->client : made->client;

	if (memory->emulator) {
		gdri_dma_port_emu_init(&made->port.emu, memory->emulator, log);
		return &made->port.emu.base;
	}
	gdri_dma_port_rm_init(&made->port.rm, client,
			      context->config.backend == GDRI_BACKEND_NVRM, log);
	return &made->port.rm.base;
}

static void create(struct gdri_core_dma *made, const struct gdri_context *context,
		   const struct gdri_backend_memory *memory)
{
	const struct gdri_dma_options options = {
		.engine = -1,
		.calibrate = context->config.calibrate && !context->config.dma_forced,
		.to_mapping = context->engine.to_mapping[GDR_MAPPING_TYPE_WC],
		.from_mapping = context->engine.from_mapping[GDR_MAPPING_TYPE_WC],
	};

	if (!memory->emulator && !memory->client &&
	    acquire_client(made, &context->config.log) != 0)
		return;
	if (gdri_dma_create(init_port(made, context, memory), &options, &made->dma) == 0)
		return;
	made->dma = NULL;
	release_client(made);
}

static struct gdri_core_dma *engine_of(struct gdri_context *context,
				       const struct gdri_backend_memory *memory)
{
	struct gdri_core_dma *made;

	pthread_mutex_lock(&context->lock);
	made = context->dma;
	if (!made) {
		made = calloc(1, sizeof(*made));
		if (made)
			create(made, context, memory);
		context->dma = made;
	}
	pthread_mutex_unlock(&context->lock);
	return made && made->dma ? made : NULL;
}

/* What the back end knows of the memory; nothing for memory that it may lose. */
static bool ask_backend(const struct gdri_context *context, const struct gdri_pin *pin,
			struct gdri_backend_memory *memory)
{
	const struct gdri_backend_ops *ops = context->backend->ops;
	int persistent = 0;

	*memory = (struct gdri_backend_memory){ .range = NULL };
	if (ops->get_memory) {
		ops->get_memory(context->backend, pin, memory);
		return true;
	}
	return ops->get_attribute(context->backend, GDR_ATTR_USE_PERSISTENT_MAPPING,
				  &persistent) == 0 && persistent;
}

/* A duplicate of our own, for a back end that has none. */
static struct gdri_rm_range *acquire_range(const struct gdri_core_dma *made,
					   const struct gdri_context *context,
					   const struct gdri_pin *pin)
{
	struct gdri_rm_range *range = calloc(1, sizeof(*range));

	if (range && gdri_rm_range_acquire(made->client, &made->cuda, pin->addr, pin->length,
					   &context->config.log, range)) {
		free(range);
		range = NULL;
	}
	return range;
}

static void release_range(struct gdri_rm_range *range)
{
	if (range)
		gdri_rm_range_release(range);
	free(range);
}

/* The bytes of the memory object from pin.va on, as far as the object goes. */
static struct gdri_dma_memory describe(const struct gdri_pin *pin,
				       const struct gdri_backend_memory *memory)
{
	const struct gdrcopy_emu_range *emulated = memory->emulated;
	const struct gdri_rm_range *range = memory->range;
	uint64_t offset, rest;

	if (emulated) {
		offset = pin->va - emulated->object_va;
		rest = emulated->object_size - offset;
		return (struct gdri_dma_memory){
			.device = (unsigned)emulated->device,
			.object = emulated,
			.offset = offset,
			.length = pin->size < rest ? pin->size : rest,
		};
	}
	offset = range->offset - (pin->addr - pin->va);
	rest = range->object_size - offset;
	return gdri_dma_port_rm_memory(range, offset, pin->size < rest ? pin->size : rest);
}

static size_t least_size(const struct gdri_config *config, size_t crossover)
{
	const size_t size = config->dma_forced ? config->dma_min : crossover;
	const size_t least = config->dma_forced ? LEAST_FORCED : LEAST_SIZE;

	return size < least ? least : size;
}

void gdri_core_dma_attach(struct gdri_context *context, struct gdri_region *region)
{
	const struct gdri_config *config = &context->config;
	struct gdri_dma_road *road = &region->road;
	struct gdri_dma_calibration calibration;
	struct gdri_backend_memory memory;
	struct gdri_dma_memory described;
	struct gdri_core_dma *made;

	*road = no_road;
	if (!config->dma || !ask_backend(context, &region->pin, &memory))
		return;
	made = engine_of(context, &memory);
	if (!made)
		return;
	if (!memory.emulator && !memory.range) {
		road->own_range = acquire_range(made, context, &region->pin);
		memory.range = road->own_range;
		if (!memory.range)
			return;
	}
	described = describe(&region->pin, &memory);
	described.va = region->pin.va;
	if (gdri_dma_attach(made->dma, &described, &road->target)) {
		release_range(road->own_range);
		*road = no_road;
		return;
	}
	gdri_dma_get_calibration(road->target, &calibration);
	road->length = described.length;
	road->to_min = least_size(config, calibration.crossover[0][0]);
	road->from_min = least_size(config, calibration.crossover[1][0]);
	road->to_min_registered = least_size(config, calibration.crossover[0][1]);
	road->from_min_registered = least_size(config, calibration.crossover[1][1]);
}

void gdri_core_dma_detach(struct gdri_region *region)
{
	if (region->road.target)
		gdri_dma_detach(region->road.target);
	release_range(region->road.own_range);
	region->road = no_road;
}

static void keep_lost(struct gdri_core_dma *made)
{
	made->next_lost = atomic_load(&lost_engines);
	while (!atomic_compare_exchange_weak(&lost_engines, &made->next_lost, made))
		continue;
}

void gdri_core_dma_close(struct gdri_context *context)
{
	struct gdri_core_dma *made = context->dma;

	context->dma = NULL;
	if (!made)
		return;
	/* After a lost channel the engine stays, and what it stands on with it. */
	if (made->dma && gdri_dma_destroy(made->dma) == -EOWNERDEAD) {
		keep_lost(made);
		return;
	}
	release_client(made);
	free(made);
}

bool gdri_core_dma_takes(const struct gdri_dma_road *road, uint64_t offset, const void *host,
			 size_t size)
{
	return road->target && offset <= road->length && size <= road->length - offset &&
	       !gdri_core_intervals_meet(gdri_core_table_mapped(), host, size);
}

/* What the caller is to know of a copy by DMA: see the header. */
static int outcome(int rc)
{
	if (rc == 0)
		return 0;
	return rc == -EOWNERDEAD ? -EIO : 1;
}

int gdri_core_dma_write(const struct gdri_dma_road *road, uint64_t offset, const void *host,
			size_t size)
{
	GDRI_OS_NO_CANCEL;

	return outcome(gdri_dma_to_device(road->target, offset, host, size));
}

int gdri_core_dma_read(const struct gdri_dma_road *road, uint64_t offset, void *host, size_t size)
{
	GDRI_OS_NO_CANCEL;

	return outcome(gdri_dma_from_device(road->target, offset, host, size));
}

int gdri_core_dma_between(const struct gdri_dma_road *dst, uint64_t dst_offset,
			  const struct gdri_dma_road *src, uint64_t src_offset, size_t size,
			  enum gdri_route route)
{
	GDRI_OS_NO_CANCEL;
	static const enum gdri_dma_route_wish wishes[] = {
		[GDRI_ROUTE_AUTO] = GDRI_DMA_ROUTE_AUTO,
		[GDRI_ROUTE_PEER] = GDRI_DMA_ROUTE_PEER,
		[GDRI_ROUTE_STAGED] = GDRI_DMA_ROUTE_STAGED,
	};
	enum gdri_dma_route taken;
	int rc;

	if (!dst->target || !src->target || dst_offset > dst->length ||
	    size > dst->length - dst_offset || src_offset > src->length ||
	    size > src->length - src_offset)
		return 1;
	rc = gdri_dma_between(dst->target, dst_offset, src->target, src_offset, size,
			      wishes[route], &taken);
	return rc == -EOPNOTSUPP ? rc : outcome(rc);
}

int gdri_core_dma_register(struct gdri_context *context, void *base, size_t length)
{
	struct gdri_backend_memory memory;
	struct gdri_core_dma *made;

	if (!context->config.dma || !ask_backend(context, NULL, &memory))
		return -EOPNOTSUPP;
	made = engine_of(context, &memory);
	return made ? gdri_dma_register(made->dma, base, length) : -EOPNOTSUPP;
}

int gdri_core_dma_unregister(struct gdri_context *context, void *base)
{
	struct gdri_core_dma *made = context->dma;

	return made && made->dma ? gdri_dma_unregister(made->dma, base) : -ENOENT;
}

bool gdri_core_dma_is_registered(const struct gdri_context *context, const void *host, size_t size)
{
	const struct gdri_core_dma *made = context->dma;

	return made && made->dma && gdri_dma_is_registered(made->dma, host, size);
}
