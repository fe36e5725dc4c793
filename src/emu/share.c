/* SPDX-License-Identifier: MIT */
/* Memory objects as descriptors for other processes: a part of a memfd, claimed by a lock. */
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

/* A file description of its own for the file behind fd. */
static int open_again(int fd)
{
	char path[64];
	int opened;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, O_RDWR | O_CLOEXEC);
	return opened >= 0 ? opened : -errno;
}

static int claim(int fd, uint64_t offset, uint64_t size)
{
	struct flock lock = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET,
		.l_start = (off_t)offset, .l_len = (off_t)size,
	};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

/* A lock on some byte of the range that is not fd's own; l_type F_UNLCK: none. */
static struct flock find_claim(int fd, uint64_t offset, uint64_t size)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET,
		.l_start = (off_t)offset, .l_len = (off_t)size,
	};

	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		lock.l_type = F_UNLCK;
	return lock;
}

bool emu_share_is_claimed(int fd, uint64_t offset, uint64_t size)
{
	return find_claim(fd, offset, size).l_type != F_UNLCK;
}

int emu_share_export(const struct gdrcopy_emu_range *range, int *fd)
{
	struct emu_block *block = range->memory;
	int ret, opened;

	if (!emu_ready())
		return -ENOTCONN;
	if (block->provider && block->provider != &emu_provider_memfd)
		return -EOPNOTSUPP;
	opened = open_again(range->fd);
	if (opened < 0)
		return opened;
	ret = claim(opened, range->file_offset, range->object_size);
	if (ret == 0 && lseek(opened, (off_t)range->file_offset, SEEK_SET) < 0)
		ret = -errno;
	if (ret != 0) {
		close(opened);
		return ret;
	}
	emu_lock();
	block->shared = true;
	emu_unlock();
	*fd = opened;
	return 0;
}

/* The GPU whose memory the file has, by the name that provider_memfd.c gave it; -EINVAL. */
static int device_of_file(int fd)
{
	char path[64], name[64], expected[64];
	static const char *const kinds[] = { "memory", "share" };
	ssize_t length;
	int device;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, name, sizeof(name) - 1);
	if (length < 0)
		return -EINVAL;
	name[length] = '\0';
	for (unsigned kind = 0; kind < 2; kind++)
		for (device = 0; device < EMU_MAX_DEVICES; device++) {
			snprintf(expected, sizeof(expected),
				 "/memfd:gdrcopy-emu-%s-gpu%d (deleted)", kinds[kind], device);
			if (strcmp(name, expected) == 0)
				return device;
		}
	return -EINVAL;
}

/* Opens what fd names and claims it: a descriptor that is the caller's. */
static int open_object(int fd, int device, uint64_t size, uint64_t *offset)
{
	const int owner = device_of_file(fd);
	const off_t start = lseek(fd, 0, SEEK_CUR);
	struct flock found;
	int opened, ret;

	if (owner < 0 || start < 0)
		return -EINVAL;
	if (owner != device)
		return -ENXIO;
	opened = open_again(fd);
	if (opened < 0)
		return opened;
	found = find_claim(opened, (uint64_t)start, 1);
	ret = found.l_type == F_RDLCK && found.l_start == start &&
	      (uint64_t)found.l_len == size ? claim(opened, (uint64_t)start, size) : -EINVAL;
	if (ret != 0) {
		close(opened);
		return ret;
	}
	*offset = (uint64_t)start;
	return opened;
}

int emu_share_import(int fd, int device, uint64_t size, struct gdrcopy_emu_range *range)
{
	struct emu_block *block = NULL;
	uint64_t offset = 0;
	CUresult result;
	int opened;

	if (!emu_ready())
		return -ENOTCONN;
	opened = open_object(fd, device, size, &offset);
	if (opened < 0)
		return opened;
	emu_lock();
	result = emu_block_import(opened, device, offset, size, &block);
	if (result == CUDA_SUCCESS)
		block->pins++;
	emu_unlock();
	if (result != CUDA_SUCCESS)
		return -ENOMEM;
	*range = (struct gdrcopy_emu_range){
		.object_size = size,
		.file_offset = offset,
		.fd = opened,
		.device = device,
		.kind = GDRCOPY_EMU_MALLOC,
		.rdma_capable = 1,
		.memory = block,
	};
	return 0;
}
