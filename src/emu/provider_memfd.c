/* SPDX-License-Identifier: MIT */
/* Emulated GPU memory in memfds: one sparse file for each device. */
#include "provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "ranges.h"
#include "share.h"

/*
 * One file for all memory of a device keeps the number of descriptors small
 * however many buffers there are.  Its offsets are handed out sparsely, so
 * that memory never becomes too fragmented for a large buffer: a real GPU has
 * page tables for that.
 */
#define FILE_SPACE ((uint64_t)1 << 44)

static struct device_file {
	bool open;
	int fd;
	uint64_t size;
	struct emu_ranges offsets;
	struct claimed *claimed;	/* released here, but exported to others */
} files[EMU_MAX_DEVICES];

struct claimed {
	struct claimed *next;
	uint64_t offset, size;
};

static int create_file(const char *kind, int device)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "gdrcopy-emu-%s-gpu%d", kind, device);
	fd = memfd_create(name, MFD_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static int open_device(struct device_file *file, int device)
{
	int fd = create_file("memory", device);

	if (fd < 0)
		return fd;
	if (!emu_ranges_give(&file->offsets, 0, FILE_SPACE)) {
		close(fd);
		return -ENOMEM;
	}
	file->fd = fd;
	file->open = true;
	return 0;
}

static int allocate_own_file(int device, uint64_t size, struct emu_extent *extent)
{
	int fd = create_file("share", device);

	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)size) != 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	*extent = (struct emu_extent){
		.fd = fd, .device = device, .size = size, .own_file = true
	};
	return 0;
}

/* The hole gives the pages back to the host and reads as zero later. */
static void give_back(struct device_file *file, uint64_t offset, uint64_t size)
{
	if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)size) == 0)
		emu_ranges_give(&file->offsets, offset, size);
}

static void give_back_unclaimed(struct device_file *file)
{
	struct claimed **link = &file->claimed;

	while (*link) {
		struct claimed *part = *link;

		if (emu_share_is_claimed(file->fd, part->offset, part->size)) {
			link = &part->next;
			continue;
		}
		*link = part->next;
		give_back(file, part->offset, part->size);
		free(part);
	}
}

static int allocate(int device, uint64_t size, bool shareable, struct emu_extent *extent)
{
	struct device_file *file = &files[device];
	uint64_t offset;
	int ret;

	if (shareable)
		return allocate_own_file(device, size, extent);
	ret = file->open ? 0 : open_device(file, device);
	if (ret != 0)
		return ret;
	give_back_unclaimed(file);
	if (!emu_ranges_take(&file->offsets, size, EMU_BLOCK_SIZE, &offset))
		return -ENOMEM;
	if (offset + size > file->size) {
		if (ftruncate(file->fd, (off_t)(offset + size)) != 0) {
			ret = -errno;
			emu_ranges_give(&file->offsets, offset, size);
			return ret;
		}
		file->size = offset + size;
	}
	*extent = (struct emu_extent){
		.fd = file->fd, .device = device, .offset = offset, .size = size
	};
	return 0;
}

static void release(struct emu_extent *extent)
{
	struct device_file *file;
	struct claimed *part;

	if (extent->own_file) {
		close(extent->fd);
		return;
	}
	file = &files[extent->device];
	if (!emu_share_is_claimed(extent->fd, extent->offset, extent->size)) {
		give_back(file, extent->offset, extent->size);
		return;
	}
	/* Without memory to remember it, the bytes stay for ever. */
	part = malloc(sizeof(*part));
	if (!part)
		return;
	*part = (struct claimed){ file->claimed, extent->offset, extent->size };
	file->claimed = part;
}

const struct emu_provider emu_provider_memfd = {
	.name = "memfd",
	.allocate = allocate,
	.release = release,
};
