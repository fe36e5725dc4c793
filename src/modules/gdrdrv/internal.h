/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Types that the module's files share, and the order of its locks.
 *
 * Locks, outermost first.  Each line may be taken under those above it:
 *
 *   gets (pin.c)		around gets and puts of pins with callbacks
 *   the NVIDIA driver's own	held by it around the free callback
 *   mm->mmap_lock		held by the kernel around mmap, fault, munmap
 *   region->lock		state and mapping of one region
 *   mapping->i_mmap_rwsem	taken inside unmap_mapping_range()
 *   session->lock, registry, pool	leaves: nothing is taken under them
 *
 * No lock that the callback takes is held around a call of the NVIDIA driver:
 * put waits for a running callback, and the callback takes region->lock.
 * Nothing is copied from or to user space under a lock, since a fault takes
 * mmap_lock.
 *
 * Only symbols that are not GPL-only may be used outside GDRDRV_OPEN_DRIVER:
 * a module that touches one cannot load beside the proprietary driver.
 */
#ifndef GDRDRV_INTERNAL_H
#define GDRDRV_INTERNAL_H

#define pr_fmt(fmt) "gdrdrv: " fmt

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/rbtree.h>
#include <linux/stringify.h>
#include <linux/types.h>

#include "gdrdrv.h"
#include "probes.h"
#include "nv-p2p.h"

#define GDRDRV_MAJOR 2
#define GDRDRV_MINOR 6
#define GDRDRV_VERSION_STRING __stringify(GDRDRV_MAJOR) "." __stringify(GDRDRV_MINOR)
static_assert(GDRDRV_VERSION == (GDRDRV_MAJOR << 16 | GDRDRV_MINOR));

/* The only page size that the NVIDIA driver hands out. */
#define GDRDRV_GPU_PAGE_SHIFT 16
#define GDRDRV_GPU_PAGE_SIZE (1ULL << GDRDRV_GPU_PAGE_SHIFT)
#define GDRDRV_GPU_PAGE_MASK (GDRDRV_GPU_PAGE_SIZE - 1)
static_assert(PAGE_SHIFT <= GDRDRV_GPU_PAGE_SHIFT);

#ifdef GDRDRV_OPEN_DRIVER
#define GDRDRV_FLAVOUR "opensource"
#else
#define GDRDRV_FLAVOUR "proprietary"
#endif

/* One open file. */
struct gdrdrv_session {
	struct kref refs;		/* the file's, and one for each region */
	struct address_space mapping;	/* of this file alone, so that revoking finds its views */
	pid_t owner;			/* thread group that opened it ... */
	u64 owner_start;		/* ... and when that began: numbers are used again */
	struct gdrdrv_account *account;
	struct mutex lock;		/* regions, next_handle */
	struct rb_root regions;		/* by handle */
	u64 next_handle;
};

enum gdrdrv_state {
	GDRDRV_PINNING,			/* the driver's get call has not returned */
	GDRDRV_PINNED,			/* the only state in which the page table may be read */
	GDRDRV_REVOKED,			/* the driver took the pages back */
	GDRDRV_RELEASED			/* the user gave them back */
};

/* One pinned range of one session.  Unmarked members do not change after the pin. */
struct gdrdrv_region {
	struct kref refs;	/* the tree's, one for each view, one for each running call */
	struct gdrdrv_session *session;
	struct rb_node node;		/* session->lock */
	struct hlist_node registered;	/* registry lock */
	unsigned long id;		/* what the driver's callback is given */
	u64 handle;
	u64 va, size;			/* rounded out to GPU pages */
	u64 charge;			/* of the pool */
	u64 cycles;			/* that the driver's get call took */
	u64 p2p_token;
	u32 va_space;
	u32 pin_flags;
	bool aligned;			/* the pinned address begins a GPU page */
	bool cacheable;

	struct mutex lock;		/* all below */
	enum gdrdrv_state state;
	struct nvidia_p2p_page_table *table;
	u32 requested_type;		/* for the next mmap; NONE: ours to choose */
	u32 type;			/* NONE without views */
	unsigned int views;		/* VMAs */
	u64 reservation;		/* charge of the write-combining reservation, 0 without */
};

struct gdrdrv_pin_request {
	u64 addr, size, p2p_token;
	u32 va_space, flags;
};

/* Set while loading. */
extern int gdrdrv_dbg_enabled, gdrdrv_info_enabled;
extern bool gdrdrv_persistent;	/* pins outlive the memory's owner and have no callback */

#define gdrdrv_dbg(fmt, ...) \
	do { \
		if (gdrdrv_dbg_enabled) \
			pr_debug_always(fmt, ##__VA_ARGS__); \
	} while (0)
#define gdrdrv_info(fmt, ...) \
	do { \
		if (gdrdrv_info_enabled) \
			pr_info(fmt, ##__VA_ARGS__); \
	} while (0)
#define pr_debug_always(fmt, ...) printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__)

/* driver.c: whether the NVIDIA driver that runs is the one built for; -ENOEXEC if it is not. */
int gdrdrv_driver_check(bool strict);

/* session.c */
extern const struct file_operations gdrdrv_fops;
bool gdrdrv_session_is_owner(const struct gdrdrv_session *session);
void gdrdrv_session_get(struct gdrdrv_session *session);
void gdrdrv_session_put(struct gdrdrv_session *session);

/* ioctl.c */
long gdrdrv_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* region.c */
int gdrdrv_region_pin(struct gdrdrv_session *session, const struct gdrdrv_pin_request *request,
		      u64 *handle);
int gdrdrv_region_unpin(struct gdrdrv_session *session, u64 handle);
void gdrdrv_region_unpin_all(struct gdrdrv_session *session);
/* With a reference, or NULL. */
struct gdrdrv_region *gdrdrv_region_find(struct gdrdrv_session *session, u64 handle);
void gdrdrv_region_get(struct gdrdrv_region *region);
bool gdrdrv_region_tryget(struct gdrdrv_region *region);
void gdrdrv_region_put(struct gdrdrv_region *region);

/* pin.c: the only caller of the NVIDIA driver. */
bool gdrdrv_pages_can_persist(void);
bool gdrdrv_pages_can_force_pcie(void);
unsigned int gdrdrv_pages_pins(void);
int gdrdrv_pages_get(struct gdrdrv_region *region);
void gdrdrv_pages_release(struct gdrdrv_region *region);
/* Returns when the driver calls no code of ours; nothing is pinned any more. */
void gdrdrv_pages_settle(void);

/* map.c */
int gdrdrv_mmap(struct file *file, struct vm_area_struct *vma);
int gdrdrv_map_request(struct gdrdrv_region *region, u32 type);
/* Ends all CPU access.  region->lock is held, the state is no longer PINNED; may come twice. */
void gdrdrv_map_retire(struct gdrdrv_region *region);
/* Returns when every mmap of this process that has begun is over; no lock is held. */
void gdrdrv_map_settle(void);

/* pgprot.c */
void gdrdrv_pgprot_init(void);
bool gdrdrv_pgprot_is_device(void);
bool gdrdrv_pgprot_is_ram(u64 physical);
int gdrdrv_pgprot_apply(struct vm_area_struct *vma, u32 type);

/* pool.c */
#define GDRDRV_POOL_PAGE_COST 40	/* what the driver's table takes for one GPU page */
#define GDRDRV_POOL_RUN_COST 64		/* what a reservation of one contiguous run takes */
struct gdrdrv_account *gdrdrv_account_get(kuid_t uid);
void gdrdrv_account_put(struct gdrdrv_account *account);
int gdrdrv_pool_charge(struct gdrdrv_account *account, u64 bytes);
void gdrdrv_pool_give_back(struct gdrdrv_account *account, u64 bytes);
struct gdrdrv_pool_use {
	u64 used, limit, user_limit, exempt;
};
struct gdrdrv_pool_use gdrdrv_pool_read(void);

/* procfs.c */
int gdrdrv_procfs_init(void);
void gdrdrv_procfs_exit(void);

#endif
