/* SPDX-License-Identifier: MIT */
/* A session's DMA engine, and how pinned ranges come to it. */
#ifndef GDRI_CORE_DMA_H
#define GDRI_CORE_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/config.h"

struct gdri_context;
struct gdri_region;
struct gdri_core_dma;
struct gdri_rm_range;

/* What a copy reads of a region's DMA road. */
struct gdri_dma_road {
	struct gdri_dma_target *target;	/* begins at pin.va; NULL: no road */
	uint64_t length;		/* bytes that the target reaches */
	size_t to_min;			/* a copy of fewer bytes goes by the CPU; SIZE_MAX: all */
	size_t from_min;
	size_t to_min_registered;	/* the same for registered host memory */
	size_t from_min_registered;
	struct gdri_rm_range *own_range;	/* NULL: the back end's */
};

/*
 * Makes the region's memory reachable by the copy engines, where that is
 * possible and wanted; the road stays empty otherwise, and the log says why at
 * debug level.  The region's lock is held.  The first call for a device opens its
 * channels, which takes milliseconds.
 */
void gdri_core_dma_attach(struct gdri_context *context, struct gdri_region *region);

/* No copy uses the road any more. */
void gdri_core_dma_detach(struct gdri_region *region);

/* With the session's last region gone. */
void gdri_core_dma_close(struct gdri_context *context);

/*
 * Whether a copy of at least to_min or from_min bytes takes the road.  Not one
 * whose host side is a mapping of device memory: engines and bounce memory do
 * not keep to the one access a byte that it needs.
 */
bool gdri_core_dma_takes(const struct gdri_dma_road *road, uint64_t offset, const void *host,
			 size_t size);

/*
 * 0; 1: the road is gone and nothing of it touches the memory any more, take
 * another one for the whole range; -EIO: the state of the range is unknown.
 */
int gdri_core_dma_write(const struct gdri_dma_road *road, uint64_t offset, const void *host,
			size_t size);
int gdri_core_dma_read(const struct gdri_dma_road *road, uint64_t offset, void *host, size_t size);

/*
 * Between two regions.  0; 1: take another road; -EOPNOTSUPP: the devices do not
 * reach each other and staging is not wanted; -EIO.
 */
int gdri_core_dma_between(const struct gdri_dma_road *dst, uint64_t dst_offset,
			  const struct gdri_dma_road *src, uint64_t src_offset, size_t size,
			  enum gdri_route route);

/*
 * Host memory for the engines.  Opens nothing on any device.  -EOPNOTSUPP: the
 * session has no engines; -EEXIST, -ENOMEM, -ENOENT, -EINVAL as copy/dma/dma.h says.
 */
int gdri_core_dma_register(struct gdri_context *context, void *base, size_t length);
int gdri_core_dma_unregister(struct gdri_context *context, void *base);
bool gdri_core_dma_is_registered(const struct gdri_context *context, const void *host,
				 size_t size);

#endif
