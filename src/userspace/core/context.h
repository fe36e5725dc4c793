/* SPDX-License-Identifier: MIT */
/* A session: its settings, its back end, its regions; and who may be inside it. */
#ifndef GDRI_CORE_CONTEXT_H
#define GDRI_CORE_CONTEXT_H

#include <pthread.h>

#include "backend/backend.h"
#include "copy/engine.h"
#include "core/config.h"
#include "core/gate.h"
#include "core/handle.h"

struct gdri_region;
struct gdri_core_dma;
struct gdri_buffer_session;

/*
 * States: open (gate open) -> closing (gate closed, calls draining) -> free.
 * Every API call passes the gate; gdr_close closes it, waits, and then has the
 * session for itself.  One closer wins, the others get -EINVAL.
 *
 * Lock order: region lock -> context lock -> table lock.  Back ends are called
 * with the region lock of the one region held and no other.
 */
struct gdri_context {
	void *pool_link;	/* owned by the pool while free */
	struct gdri_gate gate;
	uint32_t generation;
	struct gdri_record *record;
	struct gdri_config config;
	struct gdri_copy_engine engine;
	struct gdri_backend_session *backend;
	enum gdri_record_kind region_kind;	/* of its regions: which interface it serves */
	pthread_mutex_t lock;	/* regions and their links */
	struct gdri_region *regions;
	struct gdri_core_dma *dma;	/* NULL until a region asked for it; lock */
	struct gdri_buffer_session *buffers;	/* version 3's part: core/buffer.h; lock */
};

/*
 * The value behind gdr_t in *handle; -ENODEV: no back end; -ENOMEM.  kind, here
 * and below: GDRI_RECORD_SESSION or GDRI_RECORD_SESSION_V3.
 */
int gdri_core_context_open(enum gdri_record_kind kind, uint64_t *handle);

/*
 * Waits for calls and copies, and releases everything; the first error of that
 * goes to *release_rc.  -EINVAL, -EACCES: there was no such session to close.
 */
int gdri_core_context_close(enum gdri_record_kind kind, uint64_t handle, int *release_rc);

/* Between enter (0) and leave the session stays. */
int gdri_core_context_enter(enum gdri_record_kind kind, uint64_t handle,
			    struct gdri_context **context);
void gdri_core_context_leave(struct gdri_context *context);

#endif
