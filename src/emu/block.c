/* SPDX-License-Identifier: MIT */
/* Physical memory of the emulated devices, counted by reference. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

static uint64_t used[EMU_MAX_DEVICES];

/*
 * The driver's own mapping is not for forked children: they must not reach
 * their parent's GPU memory.
 */
static int map_extent(const struct emu_extent *extent, uint8_t **cpu)
{
	void *base = mmap(NULL, extent->size, PROT_READ | PROT_WRITE, MAP_SHARED, extent->fd,
			  (off_t)extent->offset);

	if (base == MAP_FAILED)
		return -errno;
	if (madvise(base, extent->size, MADV_DONTFORK) != 0) {
		int error = -errno;

		munmap(base, extent->size);
		return error;
	}
	*cpu = base;
	return 0;
}

CUresult emu_block_create(CUdevice device, uint64_t size, bool shareable,
			  struct emu_block **block)
{
	const struct emu_provider *provider =
		emu_config_get()->bar_memory ? &emu_provider_bar : &emu_provider_memfd;
	struct emu_block *created;
	int ret;

	if (size > emu_config_get()->memory - used[device])
		return CUDA_ERROR_OUT_OF_MEMORY;
	created = calloc(1, sizeof(*created));
	if (!created)
		return CUDA_ERROR_OUT_OF_MEMORY;
	created->provider = provider;
	created->refs = 1;
	ret = provider->allocate(device, size, shareable, &created->extent);
	if (ret != 0)
		goto err_free;
	ret = map_extent(&created->extent, &created->cpu);
	if (ret != 0)
		goto err_release;
	used[device] += size;
	*block = created;
	return CUDA_SUCCESS;

err_release:
	provider->release(&created->extent);
err_free:
	free(created);
	return emu_result(ret);
}

CUresult emu_block_import(int fd, CUdevice device, uint64_t offset, uint64_t size,
			  struct emu_block **block)
{
	struct emu_block *imported = calloc(1, sizeof(*imported));
	int ret = -ENOMEM;

	if (!imported)
		goto err_close;
	imported->extent = (struct emu_extent){
		.fd = fd, .device = device, .offset = offset, .size = size, .own_file = true
	};
	imported->refs = 1;
	imported->shared = true;
	ret = map_extent(&imported->extent, &imported->cpu);
	if (ret != 0)
		goto err_free;
	*block = imported;
	return CUDA_SUCCESS;

err_free:
	free(imported);
err_close:
	close(fd);
	return emu_result(ret);
}

struct emu_block *emu_block_get(struct emu_block *block)
{
	block->refs++;
	return block;
}

void emu_block_put(struct emu_block *block)
{
	if (--block->refs > 0)
		return;
	munmap(block->cpu, block->extent.size);
	emu_dmabuf_close_all(block);
	if (block->provider) {
		used[block->extent.device] -= block->extent.size;
		block->provider->release(&block->extent);
	} else {
		close(block->extent.fd);
	}
	free(block);
}

uint64_t emu_block_used(CUdevice device)
{
	return used[device];
}
