/* SPDX-License-Identifier: MIT */
/* The settings of one session, read from the environment once, at open. */
#ifndef GDRI_CORE_CONFIG_H
#define GDRI_CORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/log.h"

enum gdri_backend_id {
	GDRI_BACKEND_GDRDRV,
	GDRI_BACKEND_DMABUF,
	GDRI_BACKEND_NVRM,
	GDRI_BACKEND_EMU,
	GDRI_BACKEND_COUNT,
	GDRI_BACKEND_AUTO = GDRI_BACKEND_COUNT
};

/* How bytes go from one device to another. */
enum gdri_route { GDRI_ROUTE_AUTO, GDRI_ROUTE_PEER, GDRI_ROUTE_STAGED };

struct gdri_config {
	struct gdri_log log;
	enum gdri_backend_id backend;	/* AUTO: the first that opens */
	bool backend_unknown;		/* GDRCOPY_BACKEND names none: open fails */
	char backend_name[16];		/* as the user wrote it, for the log */
	char copy_routine[16];		/* GDRCOPY_COPY; empty: choose */
	bool dma;			/* false: GDRCOPY_DMA=0 */
	bool dma_forced;		/* GDRCOPY_DMA=min=SIZE: no calibration decides */
	size_t dma_min;			/* that size in bytes */
	bool calibrate;			/* false: GDRCOPY_CALIBRATION=0 */
	enum gdri_route route;		/* GDRCOPY_ROUTE */
	bool strict_p2p;		/* GDRCOPY_STRICT_P2P=1 */
};

/*
 * Reads GDRCOPY_ENABLE_LOGGING, GDRCOPY_LOG_LEVEL, GDRCOPY_BACKEND,
 * GDRCOPY_USE_DMABUF_MMAP, GDRCOPY_COPY, GDRCOPY_DMA and GDRCOPY_CALIBRATION
 * with secure_getenv and logs values that mean nothing.  docs/environment.md
 * lists them.
 */
void gdri_core_config_read(struct gdri_config *config);

/* Only the log's part, for errors that belong to no session. */
struct gdri_log gdri_core_config_log(void);

#endif
