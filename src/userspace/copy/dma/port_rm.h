/* SPDX-License-Identifier: MIT */
/* The DMA engine's port to NVIDIA's resource manager. */
#ifndef GDRI_COPY_DMA_PORT_RM_H
#define GDRI_COPY_DMA_PORT_RM_H

#include "copy/dma/port.h"
#include "rm/range.h"

/*
 * Devices are numbered by their place in the client's list.  The object of a
 * gdri_dma_memory is a struct gdri_rm_range, which outlives its views.
 *
 * The client is the caller's; it must outlive the port.  forced: also where the
 * road was not tried (MIG, vGPU, confidential computing), as GDRCOPY_BACKEND=nvrm
 * asks for.  There is nothing to undo.
 */
struct gdri_dma_port_rm {
	struct gdri_dma_port base;
	struct gdri_rm_client *client;
	bool forced;
};

void gdri_dma_port_rm_init(struct gdri_dma_port_rm *port, struct gdri_rm_client *client,
			   bool forced, const struct gdri_log *log);

/* Bytes of a range, as attach wants them; offset counts in the range's object. */
struct gdri_dma_memory gdri_dma_port_rm_memory(const struct gdri_rm_range *range,
					       uint64_t offset, uint64_t length);

#endif
