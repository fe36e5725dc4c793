/* SPDX-License-Identifier: MIT */
/* The parts behind gdr_t and gdr_mh_t that some tests look at. */
#ifndef SANITY_LAYOUT_H
#define SANITY_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrapi.h"

/*
 * Sizes and offsets of GDRCopy 2.6's own objects, which its sanity program
 * copies and changes; libraries that take its place keep them.
 */
enum {
	LAYOUT_SESSION_SIZE = 48,
	LAYOUT_SESSION_FD = 0,
	LAYOUT_REGION_SIZE = 104,
	LAYOUT_REGION_DRIVER_HANDLE = 24
};

/* A byte-for-byte copy of what stands behind a session. */
struct layout_session {
	_Alignas(16) unsigned char bytes[LAYOUT_SESSION_SIZE];
};

/* The same for a pinned buffer. */
struct layout_region {
	_Alignas(16) unsigned char bytes[LAYOUT_REGION_SIZE];
};

int layout_fd(gdr_t g);
void layout_set_fd(gdr_t g, int fd);
bool layout_fd_is_gdrdrv(int fd);

/* gdrdrv's handle: the page number at which the buffer's mapping starts. */
uint32_t layout_driver_handle(gdr_mh_t mh);

void layout_copy_session(gdr_t g, struct layout_session *copy);
void layout_copy_region(gdr_mh_t mh, struct layout_region *copy);
gdr_t layout_as_session(struct layout_session *copy);
gdr_mh_t layout_as_region(struct layout_region *copy);

#endif
