/* SPDX-License-Identifier: MIT */
/*
 * A library with one fault, for planted.sh: preloaded before libgdrapi, it
 * passes every call on, except for the fault that PLANT names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gdrapi.h"

#undef gdr_get_info

static int planted(const char *fault)
{
	const char *plant = getenv("PLANT");

	return plant && strcmp(plant, fault) == 0;
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define NEXT(name) ((__typeof__(&name))next(#name))

int gdr_close(gdr_t g)
{
	if (planted("close-keeps"))
		return g ? 0 : EINVAL;
	return NEXT(gdr_close)(g);
}

int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token,
		   uint32_t va_space, gdr_mh_t *handle)
{
	unsigned long kept = handle ? handle->h : 0;
	int error = NEXT(gdr_pin_buffer)(g, addr, size, p2p_token, va_space, handle);

	if (planted("handle-kept") && error && handle)
		handle->h = kept;
	if (planted("pin-error") && error == EINVAL)
		return EIO;
	if (planted("chatter") && error)
		return write(STDERR_FILENO, "pin failed\n", 11) < 0 ? EIO : error;
	return error;
}

int gdr_pin_buffer_v2(gdr_t g, unsigned long addr, size_t size, uint32_t flags, gdr_mh_t *handle)
{
	if (planted("flags-ignored"))
		flags = 0;
	return NEXT(gdr_pin_buffer_v2)(g, addr, size, flags, handle);
}

int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle)
{
	int error;

	if (planted("crash"))
		abort();
	while (planted("hang"))
		pause();
	error = NEXT(gdr_unpin_buffer)(g, handle);
	if (planted("unpin-accepts"))
		return error == EINVAL ? 0 : error;
	return error;
}

static size_t usable_size(size_t size)
{
	return planted("map-any-size") && size > 65536 ? 65536 : size;
}

int gdr_map_v2(gdr_t g, gdr_mh_t handle, void **va, size_t size, int flags)
{
	return NEXT(gdr_map_v2)(g, handle, va, usable_size(size), flags);
}

int gdr_map(gdr_t g, gdr_mh_t handle, void **va, size_t size)
{
	int error = NEXT(gdr_map)(g, handle, va, usable_size(size));

	if (planted("fork-inherits") && error == 0)
		madvise(*va, (size + 4095) & ~(size_t)4095, MADV_DOFORK);
	if (planted("leak-fd") && error == 0)
		return open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 ? EMFILE : 0;
	if (planted("exec-fd") && error == 0)
		return open("/dev/null", O_RDONLY) < 0 ? EMFILE : 0;
	return error;
}

int gdr_unmap(gdr_t g, gdr_mh_t handle, void *va, size_t size)
{
	int error = NEXT(gdr_unmap)(g, handle, va, size);

	if (planted("unmap-accepts"))
		return error == EINVAL ? 0 : error;
	return error;
}

int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size)
{
	if (planted("copy-short") && size > 5000)
		size--;
	if (planted("copy-torn") && size == 8) {
		NEXT(gdr_copy_to_mapping)(handle, map_d_ptr, h_ptr, 4);
		sched_yield();
		return NEXT(gdr_copy_to_mapping)(handle, (char *)map_d_ptr + 4,
						 (const char *)h_ptr + 4, 4);
	}
	if (planted("copy-beyond") && size > 300 && (uintptr_t)map_d_ptr % 64 == 17)
		size++;
	return NEXT(gdr_copy_to_mapping)(handle, map_d_ptr, h_ptr, size);
}

int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr, size_t size)
{
	int error;

	if (planted("copy-nothing") && size == 0)
		return EINVAL;
	error = NEXT(gdr_copy_from_mapping)(handle, h_ptr, map_d_ptr, size);
	if (planted("copy-unchecked") && error == EINVAL)
		return 0;
	if (planted("fork-accepts") && error == EACCES)
		return 0;
	return error;
}

int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info)
{
	int error = NEXT(gdr_get_info)(g, handle, info);

	if (planted("info-long") && error == 0)
		memset((char *)info + sizeof(*info), 0, 8);
	return error;
}

int gdr_driver_get_version(gdr_t g, int *major, int *minor)
{
	if (planted("no-version"))
		return EBADF;
	return NEXT(gdr_driver_get_version)(g, major, minor);
}
