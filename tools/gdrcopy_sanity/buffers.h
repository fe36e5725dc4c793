/* SPDX-License-Identifier: MIT */
/* GPU memory of the two kinds that the tests are made for, and how it is pinned and mapped. */
#ifndef SANITY_BUFFERS_H
#define SANITY_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#include "common/gpu_buffer.h"
#include "gdrapi.h"

enum memory {
	MEMORY_CUMEMALLOC = GPU_ALLOC_MALLOC,
	MEMORY_VMMALLOC = GPU_ALLOC_VMM
};

struct buffer {
	uint64_t addr;		/* a multiple of 64 KiB */
	size_t size;		/* as asked for */
	struct gpu_buffer gpu;
};

void buffer_alloc(enum memory memory, size_t size, struct buffer *buffer);
void buffer_free(struct buffer *buffer);

/* A buffer, pinned through a session and mapped. */
struct mapped {
	gdr_t g;
	gdr_mh_t mh;
	struct buffer buffer;
	uint32_t *va;
};

gdr_t open_session(void);
gdr_mh_t buffer_pin(gdr_t g, const struct buffer *buffer);

void mapped_open(gdr_t g, enum memory memory, size_t size, struct mapped *m);
void mapped_unmap(struct mapped *m);

/* Unmap, unpin, free. */
void mapped_close(struct mapped *m);

#endif
