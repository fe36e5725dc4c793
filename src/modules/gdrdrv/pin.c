/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * GPU pages: the module's only calls of the NVIDIA driver, and the driver's
 * only call of the module.
 *
 * A region is registered under a number that is never used again, and the free
 * callback is given this number, not an address.  So a callback that comes late
 * finds nothing instead of freed memory, and one that finds its region keeps it
 * alive until it is done.
 */
#include "internal.h"

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>

#include "compat.h"

#ifndef CONFIG_64BIT
#error "a pointer must hold a number that is never used again"
#endif

/*
 * Serves pins with callbacks alone; no get of ours runs while one of them is put.
 *
 * The driver knows a pin by the address of its page table.  A callback that comes
 * between our last look at the region and the driver's own lock frees that
 * table, and the next get may be given the same address: the put would then end
 * the new pin, behind the back of its region.
 */
static DECLARE_RWSEM(gets);

static DEFINE_HASHTABLE(registry, 10);
static DEFINE_SPINLOCK(registry_lock);
static unsigned long last_id;
static atomic_t pins = ATOMIC_INIT(0);
static atomic_t callbacks = ATOMIC_INIT(0);	/* that run right now */

unsigned int gdrdrv_pages_pins(void)
{
	return atomic_read(&pins);
}

bool gdrdrv_pages_can_persist(void)
{
#if defined(GDRDRV_NV_PERSISTENT_CALLS)
	return true;
#elif defined(GDRDRV_NV_PERSISTENT_VARIABLE)
	return nvidia_p2p_cap_persistent_pages != 0;
#else
	return false;
#endif
}

bool gdrdrv_pages_can_force_pcie(void)
{
#if defined(GDRDRV_NV_PERSISTENT_CALLS) && defined(GDRDRV_NV_FORCE_BAR1)
	return gdrdrv_persistent;
#else
	return false;
#endif
}

static void register_region(struct gdrdrv_region *region)
{
	spin_lock(&registry_lock);
	region->id = ++last_id;
	hash_add(registry, &region->registered, region->id);
	spin_unlock(&registry_lock);
}

static void unregister_region(struct gdrdrv_region *region)
{
	spin_lock(&registry_lock);
	hash_del(&region->registered);
	spin_unlock(&registry_lock);
}

static struct gdrdrv_region *find_registered(unsigned long id)
{
	struct gdrdrv_region *region;

	spin_lock(&registry_lock);
	hash_for_each_possible(registry, region, registered, id)
		if (region->id == id && gdrdrv_region_tryget(region))
			goto found;
	region = NULL;
found:
	spin_unlock(&registry_lock);
	return region;
}

static void revoke_region(struct gdrdrv_region *region)
{
	mutex_lock(&region->lock);
	region->state = GDRDRV_REVOKED;
	gdrdrv_map_retire(region);
	region->table = NULL;
	mutex_unlock(&region->lock);
	gdrdrv_info("driver took back 0x%llx, %llu bytes\n", region->va, region->size);
}

/*
 * The memory is being freed.  When this returns the pages may belong to
 * anybody, and the driver frees the page table: no view may reach a page and
 * nobody may read the table any more.
 */
static void take_pages_back(void *data)
{
	struct gdrdrv_region *region;

	atomic_inc(&callbacks);
	region = find_registered((unsigned long)data);
	if (region) {
		revoke_region(region);
		gdrdrv_region_put(region);
	}
	atomic_dec(&callbacks);
}

/* No put waits for a callback that has already taken the pages back; unloading must. */
void gdrdrv_pages_settle(void)
{
	while (atomic_read(&callbacks))
		msleep(1);
}

static int call_get_persistent(struct gdrdrv_region *region, struct nvidia_p2p_page_table **table)
{
#if defined(GDRDRV_NV_PERSISTENT_CALLS)
	u32 flags = 0;

#ifdef GDRDRV_NV_FORCE_BAR1
	if (region->pin_flags & GDRDRV_PIN_FLAG_FORCE_PCIE)
		flags = NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING;
#endif
	return nvidia_p2p_get_pages_persistent(region->va, region->size, table, flags);
#else
	return nvidia_p2p_get_pages(0, 0, region->va, region->size, table, NULL, NULL);
#endif
}

static int call_get(struct gdrdrv_region *region, struct nvidia_p2p_page_table **table)
{
	int ret;

	if (gdrdrv_persistent)
		return call_get_persistent(region, table);
	down_read(&gets);
	ret = nvidia_p2p_get_pages(region->p2p_token, region->va_space, region->va, region->size,
				   table, take_pages_back, (void *)region->id);
	up_read(&gets);
	return ret;
}

static int call_put_persistent(struct gdrdrv_region *region, struct nvidia_p2p_page_table *table)
{
#if defined(GDRDRV_NV_PERSISTENT_CALLS)
	return nvidia_p2p_put_pages_persistent(region->va, table, 0);
#else
	return nvidia_p2p_put_pages(region->p2p_token, region->va_space, region->va, table);
#endif
}

static bool is_taken_back(struct gdrdrv_region *region)
{
	bool taken;

	mutex_lock(&region->lock);
	taken = region->state == GDRDRV_REVOKED;
	mutex_unlock(&region->lock);
	return taken;
}

/* The table is only a key here: a callback may end it at any moment. */
static int call_put_revocable(struct gdrdrv_region *region, struct nvidia_p2p_page_table *table)
{
	int ret = 0;

	down_write(&gets);
	if (!is_taken_back(region))
		ret = nvidia_p2p_put_pages(region->p2p_token, region->va_space, region->va, table);
	up_write(&gets);
	return ret;
}

static void call_put(struct gdrdrv_region *region, struct nvidia_p2p_page_table *table)
{
	int ret = gdrdrv_persistent ? call_put_persistent(region, table) :
				      call_put_revocable(region, table);

	if (ret)
		pr_err_ratelimited("the NVIDIA driver did not take back 0x%llx, %llu bytes: error %d\n",
				   region->va, region->size, ret);
}

static bool is_cacheable(const struct gdrdrv_region *region)
{
	if (region->pin_flags & GDRDRV_PIN_FLAG_FORCE_PCIE)
		return false;
#ifdef GDRDRV_NV_TABLE_FLAGS
	if (region->table->version >> 16 >= 2 &&
	    region->table->flags & NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE)
		return true;
#endif
	return gdrdrv_pgprot_is_ram(region->table->pages[0]->physical_address);
}

/* The struct is versioned at run time: equal major, and at least the minor built for. */
static bool knows_version(u32 version)
{
	return version >> 16 == NVIDIA_P2P_PAGE_TABLE_VERSION >> 16 &&
	       (version & 0xffff) >= (NVIDIA_P2P_PAGE_TABLE_VERSION & 0xffff);
}

static int check_table(const struct gdrdrv_region *region)
{
	const struct nvidia_p2p_page_table *table = region->table;

	if (!knows_version(table->version)) {
		pr_err_ratelimited("page table version 0x%08x, built for 0x%08x: rebuild gdrdrv for this NVIDIA driver\n",
				   table->version, NVIDIA_P2P_PAGE_TABLE_VERSION);
		return -EFAULT;
	}
	if (table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB) {
		pr_err_ratelimited("page size type %u of the NVIDIA driver is not 64 KiB\n",
				   table->page_size);
		return -EINVAL;
	}
	if (table->entries != region->size >> GDRDRV_GPU_PAGE_SHIFT) {
		pr_err_ratelimited("page table has %u entries for %llu bytes\n", table->entries,
				   region->size);
		return -EINVAL;
	}
	return 0;
}

/*
 * The callback may have come before the get call returned.  Then the table is
 * gone and the address means something else.
 */
static int adopt_table(struct gdrdrv_region *region, struct nvidia_p2p_page_table *table)
{
	int ret = -EINVAL;

	mutex_lock(&region->lock);
	if (region->state == GDRDRV_PINNING) {
		region->state = GDRDRV_PINNED;
		region->table = table;
		ret = check_table(region);
		if (!ret)
			region->cacheable = is_cacheable(region);
	}
	mutex_unlock(&region->lock);
	return ret;
}

int gdrdrv_pages_get(struct gdrdrv_region *region)
{
	struct nvidia_p2p_page_table *table = NULL;
	u64 start;
	int ret;

	register_region(region);
	start = gdrdrv_cycles();
	ret = call_get(region, &table);
	region->cycles = gdrdrv_cycles() - start;
	if (ret) {
		unregister_region(region);
		gdrdrv_dbg("pin of 0x%llx, %llu bytes: error %d\n", region->va, region->size, ret);
		return ret;
	}
	atomic_inc(&pins);
	ret = adopt_table(region, table);
	if (ret)
		gdrdrv_pages_release(region);
	return ret;
}

/*
 * Of this and the callback the first one ends the views.  Both do it under the
 * lock and before the driver frees the table, so that the other finds it done.
 */
void gdrdrv_pages_release(struct gdrdrv_region *region)
{
	struct nvidia_p2p_page_table *table = NULL;

	mutex_lock(&region->lock);
	if (region->state == GDRDRV_PINNED) {
		region->state = GDRDRV_RELEASED;
		table = region->table;
	}
	mutex_unlock(&region->lock);

	/*
	 * Pages that an mmap enters right now cannot be found before it is over,
	 * also where it fails: then the kernel takes them out later than our lock.
	 */
	gdrdrv_map_settle();
	mutex_lock(&region->lock);
	gdrdrv_map_retire(region);
	region->table = NULL;
	mutex_unlock(&region->lock);

	if (table)
		call_put(region, table);
	unregister_region(region);
	atomic_dec(&pins);
}
