/* SPDX-License-Identifier: MIT */
/* What the files of back end dmabuf share. */
#ifndef GDRI_BACKEND_DMABUF_SESSION_H
#define GDRI_BACKEND_DMABUF_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "os/cuda.h"

struct dmabuf_session {
	struct gdri_backend_session base;
	struct gdri_cuda cuda;
	uint32_t pins_made;	/* numbers the pins; atomic */
};

/* A dma-buf just exported by the CUDA driver, and what is known of it. */
struct dmabuf_export {
	int fd;
	size_t length;		/* from the pinned address rounded down, host pages */
	bool cached;		/* the CPU reaches it through a coherent link */
};

static inline struct dmabuf_session *dmabuf_session_of(struct gdri_backend_session *session)
{
	return (struct dmabuf_session *)session;
}

/* For the log. */
const char *gdri_dmabuf_cuda_result_name(const struct gdri_cuda *cuda, int result);

/*
 * Whether the CPU has coherent access to this GPU's memory.  False when CUDA
 * does not answer.
 */
bool gdri_dmabuf_device_is_coherent(const struct gdri_cuda *cuda, int device);

/*
 * Has the driver export the GPU pages of [addr, addr + size).  The caller
 * closes the descriptor.  The only CUDA calls of a pin's life are in here.
 */
int gdri_dmabuf_range_export(struct dmabuf_session *session, uint64_t addr, size_t size,
			     uint32_t flags, struct dmabuf_export *result);

int gdri_dmabuf_region_pin(struct gdri_backend_session *session, uint64_t addr, size_t size,
			   uint32_t flags, uint64_t p2p_token, uint32_t va_space,
			   struct gdri_pin *pin);
int gdri_dmabuf_region_unpin(struct gdri_backend_session *session, struct gdri_pin *pin);
int gdri_dmabuf_region_map(struct gdri_backend_session *session, struct gdri_pin *pin, size_t size,
			   int flags, struct gdri_mapping *mapping);
int gdri_dmabuf_region_unmap(struct gdri_backend_session *session, struct gdri_pin *pin,
			     struct gdri_mapping *mapping);

#endif
