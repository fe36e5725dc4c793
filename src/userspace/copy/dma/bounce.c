/* SPDX-License-Identifier: MIT */
/* Makes bounce memory. */
#include "copy/dma/bounce.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"

/*
 * In one huge page where the system gives one: the CPU's loops meet a single TLB
 * entry, and the IOMMU's tables are short.
 */
#define HUGE ((size_t)2 << 20)

static int map_aligned(size_t length, uint8_t **out)
{
	void *raw;
	uint8_t *start, *base;
	int rc;

	rc = gdri_os_mmap(length + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0, &raw);
	if (rc != 0)
		return rc;
	start = raw;
	base = (uint8_t *)(((uintptr_t)start + HUGE - 1) & -(uintptr_t)HUGE);
	if (base != start)
		gdri_os_munmap(start, (size_t)(base - start));
	gdri_os_munmap(base + length, HUGE - (size_t)(base - start));
	*out = base;
	return 0;
}

int gdri_dma_bounce_create(struct gdri_dma_bounce *bounce, size_t bytes, size_t chunk)
{
	const size_t length = (bytes + HUGE - 1) & -HUGE;
	const size_t count = bytes / chunk;
	uint8_t *base;
	int rc;

	if (count < 1 || count > GDRI_DMA_MAX_CHUNKS)
		return -EINVAL;
	rc = map_aligned(length, &base);
	if (rc != 0)
		return rc;
	rc = gdri_os_dontfork(base, length);
	if (rc != 0) {
		gdri_os_munmap(base, length);
		return rc;
	}
	madvise(base, length, MADV_HUGEPAGE);
	memset(base, 0, bytes);
	bounce->base = base;
	bounce->length = length;
	bounce->chunk = chunk;
	atomic_store(&bounce->free, count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1);
	return 0;
}

void gdri_dma_bounce_destroy(struct gdri_dma_bounce *bounce)
{
	gdri_os_munmap(bounce->base, bounce->length);
	bounce->base = NULL;
}
