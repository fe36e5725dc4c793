/* SPDX-License-Identifier: MIT */
/*
 * A library that copies wrongly, for wrong_data.sh: preloaded before
 * libgdrapi, it spoils one byte of every copy that PLANT names, or one byte
 * beside it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gdrapi.h"

static int planted(const char *fault)
{
	const char *plant = getenv("PLANT");

	return plant && strcmp(plant, fault) == 0;
}

int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size)
{
	int (*copy)(gdr_mh_t, void *, const void *, size_t) =
		(__typeof__(copy))dlsym(RTLD_NEXT, "gdr_copy_to_mapping");
	int error;

	if (planted("write-nothing"))
		return 0;
	error = copy(handle, map_d_ptr, h_ptr, size);
	if (planted("write-byte"))
		((char *)map_d_ptr)[size - 1] ^= 1;
	if (planted("write-beyond"))
		((char *)map_d_ptr)[size] = 1;
	return error;
}

int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr, size_t size)
{
	int (*copy)(gdr_mh_t, void *, const void *, size_t) =
		(__typeof__(copy))dlsym(RTLD_NEXT, "gdr_copy_from_mapping");
	int error;

	if (planted("read-nothing"))
		return 0;
	error = copy(handle, h_ptr, map_d_ptr, size);
	if (planted("read-byte"))
		((char *)h_ptr)[size - 1] ^= 1;
	return error;
}
