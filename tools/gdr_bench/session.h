/* SPDX-License-Identifier: MIT */
/* Sessions of the version 3 API that differ in their environment, with two pinned buffers. */
#ifndef GDR_BENCH_SESSION_H
#define GDR_BENCH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/device.h"
#include "gdrcopy/gdrapi.h"

/* GPU memory from cuMemAlloc, in the context of its GPU. */
struct device_buffer {
	const struct gpu *gpu;
	CUdeviceptr ptr;
	size_t size;
};

struct session {
	gdr_t g;
	uint64_t src, dst;		/* handles of the two buffers */
	void *src_ptr, *dst_ptr;	/* their mappings, after session_map */
};

/* The end of the program when a call of the library fails. */
void result_check(gdr_result_t result, const char *call);
#define GDR3(call, ...) result_check(call(__VA_ARGS__), #call)

/* End the program when there is no memory. */
void device_buffer_alloc(const struct gpu *gpu, size_t size, struct device_buffer *buffer);
void device_buffer_free(struct device_buffer *buffer);

/* gdr_open, with this variable set unless that is NULL; or the end of the program. */
void session_open(const char *variable, const char *value, struct session *session);

/* Pins both buffers; size_name is what the user makes smaller when there is no room. */
void session_pin(struct session *session, const struct device_buffer *src,
		 const struct device_buffer *dst, uint32_t flags, const char *size_name);
void session_map(struct session *session, size_t size);

/* Whether copy engines reach both buffers. */
bool session_has_engine(const struct session *session);

/* Unmaps what is mapped, unpins and closes. */
void session_close(struct session *session, size_t size);

#endif
