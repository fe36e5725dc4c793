/* SPDX-License-Identifier: MIT */
/* The DMA engine's port to the emulated driver's model of a channel. */
#ifndef GDRI_COPY_DMA_PORT_EMU_H
#define GDRI_COPY_DMA_PORT_EMU_H

#include "copy/dma/port.h"

struct gdrcopy_emu_entry;

/*
 * Devices are numbered as in CUDA.  The object of a gdri_dma_memory is the
 * struct gdrcopy_emu_range that the entry's hold() filled; the caller holds it
 * while the memory is being mapped, the view keeps the memory by itself.
 *
 * Core makes one for a session of back end emu, from the entry that the
 * session found in the driver, and keeps the driver loaded as long:
 *
 *	struct gdri_dma_port_emu port;
 *
 *	gdri_dma_port_emu_init(&port, entry, &config->log);
 *	ret = gdri_dma_create(&port.base, &options, &dma);
 *
 * There is nothing to undo.
 */
struct gdri_dma_port_emu {
	struct gdri_dma_port base;
	const struct gdrcopy_emu_entry *entry;
};

void gdri_dma_port_emu_init(struct gdri_dma_port_emu *port, const struct gdrcopy_emu_entry *entry,
			    const struct gdri_log *log);

#endif
