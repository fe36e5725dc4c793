/* SPDX-License-Identifier: MIT */
/* Copies of 2.6, for a file that includes the header of version 3. */
#include <gdrapi.h>

#include "old.h"

int old_begin(struct old *old, uint64_t ptr, size_t size)
{
	gdr_t g = gdr_open();
	gdr_mh_t handle = { 0 };
	int rc = g ? gdr_pin_buffer(g, (unsigned long)ptr, size, 0, 0, &handle) : -1;

	if (rc == 0)
		rc = gdr_map(g, handle, &old->va, size);
	old->g = g;
	old->handle = handle.h;
	old->size = size;
	return rc;
}

int old_copy(const struct old *old, void *host, size_t size)
{
	const gdr_mh_t handle = { (unsigned long)old->handle };
	int rc = gdr_copy_to_mapping(handle, old->va, host, size);

	return rc ? rc : gdr_copy_from_mapping(handle, host, old->va, size);
}

int old_end(const struct old *old)
{
	const gdr_mh_t handle = { (unsigned long)old->handle };
	gdr_t g = old->g;
	int rc = gdr_unmap(g, handle, old->va, old->size);

	if (rc == 0)
		rc = gdr_unpin_buffer(g, handle);
	return rc ? rc : gdr_close(g);
}
