/* SPDX-License-Identifier: MIT */
/* Address spaces of copy engines: what lies at a device address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"

/*
 * Queues lie low, since ring entries hold 40 bits of an address; the rest lies
 * above 4 TiB, so that the upper words of offsets matter.  Between two views
 * nothing is mapped, and no address comes again.
 */
#define LOW_START ((uint64_t)1 << 32)
#define LOW_END ((uint64_t)1 << 40)
#define HIGH_START ((uint64_t)1 << 42)
#define HIGH_END ((uint64_t)1 << 48)

int emu_dma_injected(const char *step)
{
	int result;

	return emu_config_injected(step, ENOMEM, &result) ? -result : 0;
}

/* The first view that starts after address. */
static size_t find_after(const struct gdrcopy_emu_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->views[middle].address > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void *emu_view_translate(const struct gdrcopy_emu_space *space, uint64_t address, uint64_t length)
{
	size_t after = find_after(space, address);
	const struct emu_view *view;

	if (after == 0)
		return NULL;
	view = &space->views[after - 1];
	if (address - view->address >= view->length ||
	    length > view->length - (address - view->address))
		return NULL;
	return view->cpu + (address - view->address);
}

/* Addresses are not used twice, so that a stale one faults. */
static bool take_address(struct gdrcopy_emu_space *space, enum emu_view_place place, uint64_t skew,
			 uint64_t length, uint64_t *address)
{
	uint64_t *next = place == EMU_VIEW_LOW ? &space->next_low : &space->next_high;
	uint64_t end = place == EMU_VIEW_LOW ? LOW_END : HIGH_END;

	if (length > end - *next || end - *next - length < 2 * EMU_BLOCK_SIZE)
		return false;
	*address = *next + skew % EMU_GPU_PAGE;
	*next = emu_round_up(*address + length + 1, EMU_BLOCK_SIZE);
	return true;
}

static bool make_room(struct gdrcopy_emu_space *space)
{
	size_t larger = space->capacity * 2 + 16;
	struct emu_view *views;

	if (space->count < space->capacity)
		return true;
	views = realloc(space->views, larger * sizeof(*views));
	if (!views)
		return false;
	space->views = views;
	space->capacity = larger;
	return true;
}

static void put_block(struct emu_block *block)
{
	if (!block)
		return;
	emu_lock();
	block->pins--;
	emu_block_put(block);
	emu_unlock();
}

int emu_view_add(struct gdrcopy_emu_space *space, const struct emu_view *view,
		 enum emu_view_place place, uint64_t skew, uint64_t *address)
{
	uint64_t start = 0;
	bool added;
	size_t at;

	pthread_rwlock_wrlock(&space->lock);
	added = make_room(space) && take_address(space, place, skew, view->length, &start);
	if (added) {
		at = find_after(space, start);
		memmove(&space->views[at + 1], &space->views[at],
			(space->count - at) * sizeof(*space->views));
		space->views[at] = *view;
		space->views[at].address = start;
		space->count++;
	}
	pthread_rwlock_unlock(&space->lock);
	if (!added) {
		put_block(view->block);
		return -ENOMEM;
	}
	*address = start;
	return 0;
}

/* The write lock waits for engines that are moving bytes. */
bool emu_view_remove(struct gdrcopy_emu_space *space, uint64_t address, bool own)
{
	struct emu_block *block = NULL;
	size_t after;
	bool found;

	pthread_rwlock_wrlock(&space->lock);
	after = find_after(space, address);
	found = after > 0 && space->views[after - 1].address == address &&
		space->views[after - 1].own == own;
	if (found) {
		block = space->views[after - 1].block;
		memmove(&space->views[after - 1], &space->views[after],
			(space->count - after) * sizeof(*space->views));
		space->count--;
	}
	pthread_rwlock_unlock(&space->lock);
	put_block(block);
	return found;
}

/* Waiting unmaps come before engines, which otherwise never leave a gap. */
static int init_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;
	int ret = -pthread_rwlockattr_init(&attr);

	if (ret != 0)
		return ret;
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	ret = -pthread_rwlock_init(lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	return ret;
}

int emu_dma_space_open(int device, struct gdrcopy_emu_space **space)
{
	struct gdrcopy_emu_space *opened;
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	if (!emu_device_valid(device))
		return -ENODEV;
	if (emu_config_get()->dma.absent)
		return -EOPNOTSUPP;
	ret = emu_dma_injected("dma-space");
	if (ret != 0)
		return ret;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	ret = init_lock(&opened->lock);
	if (ret != 0) {
		free(opened);
		return ret;
	}
	opened->device = device;
	opened->next_low = LOW_START;
	opened->next_high = HIGH_START;
	*space = opened;
	return 0;
}

static bool in_use(struct gdrcopy_emu_space *space)
{
	bool used;

	emu_lock();
	used = space->queues > 0;
	emu_unlock();
	pthread_rwlock_rdlock(&space->lock);
	for (size_t i = 0; i < space->count; i++)
		used |= !space->views[i].own;
	pthread_rwlock_unlock(&space->lock);
	return used;
}

/* Scratch memory is all that may be left. */
int emu_dma_space_close(struct gdrcopy_emu_space *space)
{
	if (!emu_ready())
		return -ENOTCONN;
	if (in_use(space))
		return -EBUSY;
	while (space->count > 0)
		emu_view_remove(space, space->views[space->count - 1].address, true);
	pthread_rwlock_destroy(&space->lock);
	free(space->views);
	free(space);
	return 0;
}

/* As on an H200: four small ones, of which two and two are the same, and a wide one. */
int emu_dma_engines(struct gdrcopy_emu_space *space, struct gdrcopy_emu_engine *engines,
		    unsigned max)
{
	unsigned count = max < EMU_CHANNEL_ENGINES ? max : EMU_CHANNEL_ENGINES;
	int ret = emu_dma_injected("dma-engines");

	(void)space;
	if (ret != 0)
		return ret;
	for (unsigned n = 0; n < count; n++)
		engines[n] = (struct gdrcopy_emu_engine){
			.number = n, .width = n < 4 ? 2 : 12, .shared = n < 4
		};
	return (int)count;
}

int emu_dma_map_memory(struct gdrcopy_emu_space *space, const struct gdrcopy_emu_range *range,
		       uint64_t offset, uint64_t length, uint64_t *address)
{
	struct emu_block *block = range->memory;
	struct emu_view view = { .length = length, .block = block };
	uint64_t start;
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	if (!block || length == 0 || offset > range->object_size ||
	    length > range->object_size - offset)
		return -EINVAL;
	if (range->device != space->device && !emu_config_get()->peer)
		return -EOPNOTSUPP;
	ret = emu_dma_injected("dma-map");
	if (ret != 0)
		return ret;
	start = range->file_offset - block->extent.offset + offset;
	view.cpu = block->cpu + start;
	emu_lock();
	emu_block_get(block);
	block->pins++;
	emu_unlock();
	return emu_view_add(space, &view, EMU_VIEW_HIGH, start, address);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Pages of a device must be there and writable: the kernel looks (Linux 5.14).
 * Older ones know no such advice; there a wrong address ends in a signal when
 * the channel comes to it.
 */
static int populate(void *base, uint64_t length)
{
	char known = 0;
	uintptr_t page = (uintptr_t)&known & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	if (madvise(base, length, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno == EINVAL && madvise((void *)page, 1, MADV_POPULATE_WRITE) != 0)
		return 0;
	return -EFAULT;
}

int emu_dma_map_host(struct gdrcopy_emu_space *space, void *base, uint64_t length,
		     uint64_t *address)
{
	struct emu_view view = { .length = length, .cpu = base };
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	if (length == 0 || (((uintptr_t)base | length) & mask) != 0)
		return -EINVAL;
	ret = emu_dma_injected("dma-host");
	if (ret == 0)
		ret = populate(base, length);
	if (ret != 0)
		return ret;
	return emu_view_add(space, &view, EMU_VIEW_HIGH, 0, address);
}

int emu_dma_unmap(struct gdrcopy_emu_space *space, uint64_t address)
{
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	ret = emu_dma_injected("dma-unmap");
	if (ret != 0)
		return ret;
	return emu_view_remove(space, address, false) ? 0 : -EINVAL;
}

int emu_dma_scratch(struct gdrcopy_emu_space *space, uint64_t length, void **base,
		    uint64_t *address)
{
	struct emu_view view = { .length = emu_round_up(length, EMU_BLOCK_SIZE), .own = true };
	CUresult result;
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	if (view.length < length || length == 0)
		return -EINVAL;
	ret = emu_dma_injected("dma-scratch");
	if (ret != 0)
		return ret;
	emu_lock();
	result = emu_block_create(space->device, view.length, false, &view.block);
	if (result == CUDA_SUCCESS)
		view.block->pins++;
	emu_unlock();
	if (result != CUDA_SUCCESS)
		return -ENOMEM;
	view.cpu = view.block->cpu;
	ret = emu_view_add(space, &view, EMU_VIEW_HIGH, 0, address);
	if (ret == 0)
		*base = view.cpu;
	return ret;
}
