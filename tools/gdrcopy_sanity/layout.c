/* SPDX-License-Identifier: MIT */
/* Reads and changes the parts behind gdr_t and gdr_mh_t whose place is known. */
#include "layout.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int layout_fd(gdr_t g)
{
	int fd;

	memcpy(&fd, (const unsigned char *)g + LAYOUT_SESSION_FD, sizeof(fd));
	return fd;
}

void layout_set_fd(gdr_t g, int fd)
{
	memcpy((unsigned char *)g + LAYOUT_SESSION_FD, &fd, sizeof(fd));
}

bool layout_fd_is_gdrdrv(int fd)
{
	static const char node[] = "/dev/gdrdrv";
	char link[64], target[256];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target));
	return length == sizeof(node) - 1 && memcmp(target, node, sizeof(node) - 1) == 0;
}

uint32_t layout_driver_handle(gdr_mh_t mh)
{
	uint32_t handle;

	/* The handle is an address by design of the interface. */
	memcpy(&handle, (const unsigned char *)mh.h + LAYOUT_REGION_DRIVER_HANDLE,
	       sizeof(handle));
	return handle;
}

void layout_copy_session(gdr_t g, struct layout_session *copy)
{
	memcpy(copy->bytes, g, sizeof(copy->bytes));
}

void layout_copy_region(gdr_mh_t mh, struct layout_region *copy)
{
	memcpy(copy->bytes, (const void *)mh.h, sizeof(copy->bytes));
}

gdr_t layout_as_session(struct layout_session *copy)
{
	return (gdr_t)(void *)copy->bytes;
}

gdr_mh_t layout_as_region(struct layout_region *copy)
{
	gdr_mh_t mh = { .h = (unsigned long)(uintptr_t)copy->bytes };

	return mh;
}
