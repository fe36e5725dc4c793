/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Views: GPU pages in a process's address space, and their revocation.
 *
 * Persistent pins are mapped in mmap, in contiguous runs.  Pins that the driver
 * may take back are mapped in the fault handler instead: a callback that meets
 * a running mmap could not find the VMA, which the kernel enters into the
 * file's address space only after mmap has returned, and must not wait for it.
 * The fault handler serves both: it reports SIGBUS once the pages are gone.
 */
#include "internal.h"

#include <linux/io.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "compat.h"

/* Filled by one fault: what one page of page table entries holds on x86. */
#define FAULT_WINDOW (2ULL << 20)
/* Between two chances for other tasks. */
#define FILL_STEP (16ULL << 20)

/* region->lock is held and the region is pinned, in all functions that ask for pages. */
static u64 physical_at(const struct gdrdrv_region *region, u64 offset)
{
	return region->table->pages[offset >> GDRDRV_GPU_PAGE_SHIFT]->physical_address +
	       (offset & GDRDRV_GPU_PAGE_MASK);
}

/* Bytes from offset on that lie side by side, at most up to end. */
static u64 run_at(const struct gdrdrv_region *region, u64 offset, u64 end)
{
	u64 next = (offset | GDRDRV_GPU_PAGE_MASK) + 1;

	while (next < end && physical_at(region, next) ==
			     physical_at(region, next - GDRDRV_GPU_PAGE_SIZE) +
			     GDRDRV_GPU_PAGE_SIZE)
		next += GDRDRV_GPU_PAGE_SIZE;
	return min(next, end) - offset;
}

static unsigned long count_runs(const struct gdrdrv_region *region)
{
	unsigned long runs = 0;
	u64 at;

	for (at = 0; at < region->size; at += run_at(region, at, region->size))
		runs++;
	return runs;
}

static void free_runs(const struct gdrdrv_region *region, u64 end)
{
	u64 at, length;

	for (at = 0; at < end; at += length) {
		length = run_at(region, at, region->size);
		arch_io_free_memtype_wc(physical_at(region, at), length);
		cond_resched();
	}
}

static int reserve_runs(const struct gdrdrv_region *region)
{
	u64 at, length;
	int ret;

	for (at = 0; at < region->size; at += length) {
		length = run_at(region, at, region->size);
		ret = arch_io_reserve_memtype_wc(physical_at(region, at), length);
		if (ret) {
			free_runs(region, at);
			return ret;
		}
		cond_resched();
	}
	return 0;
}

/*
 * x86 looks up the memory type of each page that does not fill a VMA alone,
 * and makes it uncached unless a reservation says write-combined.  A VMA filled
 * by one remap_pfn_range() would have its own, which the kernel cannot give
 * back once the pages were taken out of the VMA.
 */
static int reserve_wc(struct gdrdrv_region *region)
{
	u64 charge;
	int ret;

	if (!IS_ENABLED(CONFIG_X86) || region->reservation)
		return 0;
	charge = (u64)count_runs(region) * GDRDRV_POOL_RUN_COST;
	ret = gdrdrv_pool_charge(region->session->account, charge);
	if (ret)
		return ret;
	ret = reserve_runs(region);
	if (!ret) {
		region->reservation = charge;
		return 0;
	}
	gdrdrv_pool_give_back(region->session->account, charge);
	if (ret == -ENOMEM)
		return ret;
	/* Somebody mapped these pages in another way.  A slow view is better than none. */
	pr_warn_ratelimited("no write-combining for 0x%llx, %llu bytes: memory type in use (%d)\n",
			    region->va, region->size, ret);
	return 0;
}

static void free_wc(struct gdrdrv_region *region)
{
	if (!region->reservation)
		return;
	free_runs(region, region->size);
	gdrdrv_pool_give_back(region->session->account, region->reservation);
	region->reservation = 0;
}

void gdrdrv_map_retire(struct gdrdrv_region *region)
{
	if (region->views)
		unmap_mapping_range(&region->session->mapping,
				    (loff_t)region->handle << PAGE_SHIFT, region->size, 1);
	free_wc(region);
}

/* Views of a session are in its owner's address space only, which is the caller's. */
void gdrdrv_map_settle(void)
{
	if (current->mm)
		gdrdrv_mm_wait_for_writers(current->mm);
}

/* The whole VMA at once only where no memory type is tracked for it: see reserve_wc(). */
static u64 step_at(const struct gdrdrv_region *region, u64 offset, u64 end)
{
	u64 step = min(run_at(region, offset, min(end, offset + FILL_STEP)), end - offset);

	return step == end ? PAGE_SIZE : step;
}

static int fill_view(const struct gdrdrv_region *region, struct vm_area_struct *vma)
{
	u64 end = vma->vm_end - vma->vm_start, at, step;
	int ret;

	/* A single page is left to the fault handler. */
	if (end == PAGE_SIZE)
		return 0;
	for (at = 0; at < end; at += step) {
		step = step_at(region, at, end);
		ret = remap_pfn_range(vma, vma->vm_start + at, physical_at(region, at) >> PAGE_SHIFT,
				      step, vma->vm_page_prot);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/* Pages that are there already stay as they are. */
static vm_fault_t fill_window(const struct gdrdrv_region *region, const struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long window = vmf->address & ~(FAULT_WINDOW - 1);
	unsigned long at = max(window, vma->vm_start);
	unsigned long end = min_t(unsigned long, window + FAULT_WINDOW, vma->vm_end);
	u64 offset = (u64)(vma->vm_pgoff - region->handle) << PAGE_SHIFT;
	vm_fault_t ret = VM_FAULT_NOPAGE;

	for (; at < end && ret == VM_FAULT_NOPAGE; at += PAGE_SIZE)
		ret = vmf_insert_pfn(vma, at,
				     physical_at(region, offset + (at - vma->vm_start)) >> PAGE_SHIFT);
	return ret;
}

static vm_fault_t fault_view(struct vm_fault *vmf)
{
	struct gdrdrv_region *region = vmf->vma->vm_private_data;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	mutex_lock(&region->lock);
	if (region->state == GDRDRV_PINNED)
		ret = fill_window(region, vmf);
	mutex_unlock(&region->lock);
	return ret;
}

/* A VMA was split or moved; fork does not copy it. */
static void open_view(struct vm_area_struct *vma)
{
	struct gdrdrv_region *region = vma->vm_private_data;

	gdrdrv_region_get(region);
	mutex_lock(&region->lock);
	region->views++;
	mutex_unlock(&region->lock);
}

static void drop_view(struct gdrdrv_region *region)
{
	if (--region->views == 0)
		region->type = GDRDRV_MAPPING_TYPE_NONE;
}

static void close_view(struct vm_area_struct *vma)
{
	struct gdrdrv_region *region = vma->vm_private_data;

	mutex_lock(&region->lock);
	drop_view(region);
	mutex_unlock(&region->lock);
	gdrdrv_region_put(region);
}

static const struct vm_operations_struct view_ops = {
	.open = open_view,
	.close = close_view,
	.fault = fault_view,
};

static u32 default_type(const struct gdrdrv_region *region)
{
	if (region->cacheable)
		return GDRDRV_MAPPING_TYPE_CACHING;
	if (gdrdrv_pgprot_is_device())
		return GDRDRV_MAPPING_TYPE_DEVICE;
	return GDRDRV_MAPPING_TYPE_WC;
}

static bool can_have_type(const struct gdrdrv_region *region, u32 type)
{
	switch (type) {
	case GDRDRV_MAPPING_TYPE_CACHING:
		return region->cacheable;
	case GDRDRV_MAPPING_TYPE_DEVICE:
		return gdrdrv_pgprot_is_device();
	case GDRDRV_MAPPING_TYPE_WC:
		return !gdrdrv_pgprot_is_device();
	default:
		return true;
	}
}

int gdrdrv_map_request(struct gdrdrv_region *region, u32 type)
{
	int ret = 0;

	if (type > GDRDRV_MAPPING_TYPE_DEVICE)
		return -EINVAL;
	mutex_lock(&region->lock);
	if (region->views)
		ret = -EBUSY;
	else if (!can_have_type(region, type))
		ret = -EOPNOTSUPP;
	else
		region->requested_type = type;
	mutex_unlock(&region->lock);
	return ret;
}

static int check_view(const struct gdrdrv_region *region, const struct vm_area_struct *vma)
{
	if (region->state != GDRDRV_PINNED || region->views || !region->aligned)
		return -EINVAL;
	if (vma->vm_end - vma->vm_start > region->size)
		return -EINVAL;
	return vma->vm_flags & VM_SHARED ? 0 : -EINVAL;
}

/* region->lock is held.  On failure the kernel takes out what was filled. */
static int make_view(struct gdrdrv_region *region, struct vm_area_struct *vma)
{
	u32 type = region->requested_type ?: default_type(region);
	int ret = gdrdrv_pgprot_apply(vma, type);

	if (ret)
		return ret;
	/* A reservation that an earlier view left behind would make this one write-combined. */
	if (type != GDRDRV_MAPPING_TYPE_WC)
		free_wc(region);
	else if (reserve_wc(region))
		return -ENOMEM;
	gdrdrv_vma_add_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	if (gdrdrv_persistent && fill_view(region, vma))
		return -EAGAIN;
	vma->vm_private_data = region;
	vma->vm_ops = &view_ops;
	region->views = 1;
	region->type = type;
	region->requested_type = GDRDRV_MAPPING_TYPE_NONE;
	return 0;
}

int gdrdrv_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct gdrdrv_session *session = file->private_data;
	struct gdrdrv_region *region;
	int ret;

	if (!gdrdrv_session_is_owner(session))
		return -EACCES;
	region = gdrdrv_region_find(session, vma->vm_pgoff);
	if (!region)
		return -EINVAL;
	mutex_lock(&region->lock);
	ret = check_view(region, vma);
	if (!ret)
		ret = make_view(region, vma);
	mutex_unlock(&region->lock);
	/* The view keeps the reference. */
	if (ret)
		gdrdrv_region_put(region);
	gdrdrv_dbg("mmap of handle 0x%lx, %lu bytes: %d\n", vma->vm_pgoff,
		   vma->vm_end - vma->vm_start, ret);
	return ret;
}
