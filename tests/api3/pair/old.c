/* SPDX-License-Identifier: MIT */
/* The file of a program that uses the interface of 2.6. */
#include <gdrapi.h>

#include <errno.h>
#include <stdlib.h>

#include "pair/pair.h"

static gdr_mh_t handle_of(uint64_t value)
{
	gdr_mh_t handle;

	handle.h = (unsigned long)value;
	return handle;
}

int old_begin(struct old_side *side, uint64_t ptr, size_t size)
{
	gdr_t g = gdr_open();
	gdr_mh_t handle = handle_of(0);
	int rc = g ? gdr_pin_buffer(g, (unsigned long)ptr, size, 0, 0, &handle) : ENODEV;

	if (rc == 0)
		rc = gdr_map(g, handle, &side->va, size);
	side->session = g;
	side->handle = handle.h;
	return rc;
}

int old_write(const struct old_side *side, const void *host, size_t size)
{
	return gdr_copy_to_mapping(handle_of(side->handle), side->va, host, size);
}

int old_end(const struct old_side *side)
{
	return gdr_close((gdr_t)side->session);
}

int old_accepts(void *session, uint64_t handle, const void *host)
{
	gdr_t g = (gdr_t)session;
	int major, minor, accepted = 0;
	gdr_info_t info;
	void *va;

	accepted += gdr_driver_get_version(g, &major, &minor) != EINVAL;
	accepted += gdr_map(g, handle_of(handle), &va, 4096) != EINVAL;
	accepted += gdr_get_info(g, handle_of(handle), &info) != EINVAL;
	accepted += gdr_unpin_buffer(g, handle_of(handle)) != EINVAL;
	accepted += gdr_copy_to_mapping(handle_of(handle), (void *)(uintptr_t)handle, host, 8) !=
		    EINVAL;
	accepted += gdr_close(g) != EINVAL;
	/* A session of its own does not make the handle one of its interface. */
	g = gdr_open();
	accepted += gdr_map(g, handle_of(handle), &va, 4096) != EINVAL;
	accepted += gdr_unpin_buffer(g, handle_of(handle)) != EINVAL;
	accepted += gdr_close(g) != 0;
	return accepted;
}
