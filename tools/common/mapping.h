/* SPDX-License-Identifier: MIT */
/* A GPU buffer that is pinned and mapped, with every failure explained. */
#ifndef TOOLS_MAPPING_H
#define TOOLS_MAPPING_H

#include "device.h"
#include "gdrapi.h"
#include "gpu_buffer.h"

struct mapping {
	gdr_t g;
	gdr_mh_t handle;
	gdr_info_t info;	/* as after the map */
	void *base;		/* CPU address of info.va */
	size_t size;		/* mapped bytes */
	char *ptr;		/* CPU address of the buffer's first byte */
};

/* gdr_open, or the end of the program. */
gdr_t session_open(void);

/* Explains a failed pin and ends the program, with TOOL_UNSUPPORTED on a GPU that cannot. */
_Noreturn void pin_failed(const struct gpu *gpu, size_t size, int error);

/* Opens a session, pins and maps the whole buffer.  Ends the program on failure. */
void mapping_open(const struct gpu *gpu, const struct gpu_buffer *buffer, int map_flags,
		  struct mapping *mapping);

/* Unmaps, unpins and closes; the same steps by themselves for tools that announce them. */
void mapping_close(struct mapping *mapping);
void mapping_unmap(struct mapping *mapping);
void mapping_unpin(struct mapping *mapping);
void session_close(struct mapping *mapping);

/*
 * The back end that made a mapping, told by what the kernel says stands behind
 * its address: no call of the API tells.
 */
const char *mapping_backend(const struct mapping *mapping);

/* The line and the JSON members about the mapping: back end, type, forced routine. */
void mapping_report(const struct mapping *mapping);

/* The program's end when a gdr call fails in the middle of the work. */
void gdr_check(int error, const char *call);
#define GDR(call, ...) gdr_check(call(__VA_ARGS__), #call)

#endif
