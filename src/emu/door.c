/* SPDX-License-Identifier: MIT */
/* Lets the library's back end emu pin and map emulated GPU memory. */
#include "gdrcopy_emu.h"

#include <errno.h>

#include "channel.h"
#include "memory.h"
#include "share.h"

static uint64_t bar1_used[EMU_MAX_DEVICES];

static const char *problem(void)
{
	const struct emu_config *config = emu_config_get();

	if (config->error[0] != '\0')
		return config->error;
	return config->devices > 0 ? NULL : "GDRCOPY_EMU asks for no device";
}

static int coherent(void)
{
	return emu_config_get()->coherent;
}

static int write_combining(void)
{
	return emu_config_get()->write_combining;
}

static enum gdrcopy_emu_kind door_kind(enum emu_kind kind)
{
	switch (kind) {
	case EMU_MALLOC:
		return GDRCOPY_EMU_MALLOC;
	case EMU_VMM:
		return GDRCOPY_EMU_VMM;
	case EMU_MANAGED:
		return GDRCOPY_EMU_MANAGED;
	case EMU_POOL:
		return GDRCOPY_EMU_POOL;
	case EMU_IPC:
		return GDRCOPY_EMU_IPC;
	default:
		return GDRCOPY_EMU_HOST;
	}
}

static void fill_range(const struct emu_alloc *alloc, struct gdrcopy_emu_range *range)
{
	struct emu_object object = emu_alloc_object(alloc);

	*range = (struct gdrcopy_emu_range){
		.alloc_va = alloc->va,
		.alloc_size = alloc->size,
		.object_va = object.va,
		.object_size = object.size,
		.fd = -1,
		.device = alloc->device,
		.kind = door_kind(alloc->kind),
		.rdma_capable = emu_alloc_rdma_capable(alloc),
	};
	if (alloc->block) {
		range->fd = alloc->block->extent.fd;
		range->file_offset = alloc->block->extent.offset + object.block_offset;
	}
}

/* With the lock held. */
static int hold_alloc(const struct emu_alloc *alloc, uint64_t first, uint64_t end,
		      struct gdrcopy_emu_range *range)
{
	struct gdrcopy_emu_range found;

	fill_range(alloc, &found);
	if (alloc->block) {
		if (first < found.object_va || end > found.object_va + found.object_size)
			return -ERANGE;
		if (alloc->block->dmabufs)
			return -EBUSY;
		found.memory = emu_block_get(alloc->block);
		alloc->block->pins++;
	}
	*range = found;
	return 0;
}

static int hold(uint64_t addr, uint64_t size, struct gdrcopy_emu_range *range)
{
	uint64_t first = addr & ~(EMU_GPU_PAGE - 1);
	uint64_t end = emu_round_up(addr + size, EMU_GPU_PAGE);
	struct emu_alloc *alloc;
	int ret = -EINVAL;

	if (!emu_ready())
		return -ENOTCONN;
	if (size == 0 || end <= first)
		return -EINVAL;
	emu_lock();
	alloc = emu_alloc_find(addr);
	if (!alloc)
		alloc = emu_alloc_meeting(first, end);
	if (alloc)
		ret = hold_alloc(alloc, first, end, range);
	emu_unlock();
	return ret;
}

static void release(void *memory)
{
	struct emu_block *block = memory;

	if (!block)
		return;
	emu_lock();
	block->pins--;
	emu_block_put(block);
	emu_unlock();
}

static int injected(const char *step)
{
	int result;

	return emu_config_injected(step, ENOMEM, &result) ? result : 0;
}

static int bar1_reserve(int device, uint64_t bytes)
{
	int ret = 0;

	emu_lock();
	if (bytes > emu_config_get()->bar1 - bar1_used[device])
		ret = -ENOMEM;
	else
		bar1_used[device] += bytes;
	emu_unlock();
	return ret;
}

static void bar1_release(int device, uint64_t bytes)
{
	emu_lock();
	bar1_used[device] -= bytes;
	emu_unlock();
}

static void usage(int device, uint64_t *memory, uint64_t *bar1)
{
	emu_lock();
	*memory = emu_block_used(device);
	*bar1 = bar1_used[device];
	emu_unlock();
}

/* Only looked up by name, hence no declaration in a header. */
const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void);

EMU_API const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void)
{
	static const struct gdrcopy_emu_entry entry = {
		.abi = GDRCOPY_EMU_ABI,
		.size = sizeof(entry),
		.problem = problem,
		.coherent = coherent,
		.write_combining = write_combining,
		.hold = hold,
		.release = release,
		.export_object = emu_share_export,
		.import_object = emu_share_import,
		.injected = injected,
		.bar1_reserve = bar1_reserve,
		.bar1_release = bar1_release,
		.usage = usage,
		.dma_space = emu_dma_space_open,
		.dma_space_close = emu_dma_space_close,
		.dma_engines = emu_dma_engines,
		.dma_queue = emu_dma_queue_open,
		.dma_close = emu_dma_queue_close,
		.dma_knock = emu_dma_knock,
		.dma_map = emu_dma_map_memory,
		.dma_host = emu_dma_map_host,
		.dma_unmap = emu_dma_unmap,
		.dma_scratch = emu_dma_scratch,
	};

	return &entry;
}
