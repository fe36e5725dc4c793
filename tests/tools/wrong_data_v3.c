/* SPDX-License-Identifier: MIT */
/*
 * A library whose version 3 copies are wrong, for gdr_bench.sh: preloaded
 * before libgdrapi.  PLANT=FAULT:CALL names what goes wrong in which call:
 * short leaves the last byte out, nothing copies nothing, and late does so
 * after the copies that come before the timed ones.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdrcopy/gdrapi.h"

/* A sweep checks up to seven roads before it takes times. */
#define LATE 8

/* How many of size bytes this call copies. */
static size_t spoil_size(const char *call, size_t size)
{
	const char *plant = getenv("PLANT"), *colon = plant ? strchr(plant, ':') : NULL;
	static unsigned copies;

	/* The tool reads single bytes to flush; those are no copies of its own. */
	if (!colon || strcmp(colon + 1, call) != 0 || size < 2)
		return size;
	copies++;
	if (strncmp(plant, "short:", 6) == 0)
		return size - 1;
	if (strncmp(plant, "nothing:", 8) == 0)
		return 0;
	return copies <= LATE ? size : 0;
}

gdr_result_t gdr_copy_to_device(gdr_t g, uint64_t src, uint64_t dst, uint64_t src_offset,
				uint64_t dst_offset, size_t size)
{
	__typeof__(&gdr_copy_to_device) copy =
		(__typeof__(copy))dlsym(RTLD_NEXT, "gdr_copy_to_device_v3");

	size = spoil_size("device", size);
	return size ? copy(g, src, dst, src_offset, dst_offset, size) : GDR_SUCCESS;
}

gdr_result_t gdr_copy_from_host(gdr_t g, uint64_t handle, uint64_t offset, const void *host,
				size_t size)
{
	__typeof__(&gdr_copy_from_host) copy =
		(__typeof__(copy))dlsym(RTLD_NEXT, "gdr_copy_from_host_v3");

	size = spoil_size("from_host", size);
	return size ? copy(g, handle, offset, host, size) : GDR_SUCCESS;
}

gdr_result_t gdr_copy_to_host(gdr_t g, uint64_t handle, uint64_t offset, void *host, size_t size)
{
	__typeof__(&gdr_copy_to_host) copy =
		(__typeof__(copy))dlsym(RTLD_NEXT, "gdr_copy_to_host_v3");

	size = spoil_size("to_host", size);
	return size ? copy(g, handle, offset, host, size) : GDR_SUCCESS;
}
