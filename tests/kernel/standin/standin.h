/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Inside the stand-in: objects, bindings, pins, and their locks.
 *
 * Locks, outermost first:
 *   p2p_calls  read: a get or put call runs; write: a callback runs.  The
 *              real driver makes put wait for a running callback too, so a
 *              client that holds one lock around put and inside the callback
 *              is reported by lockdep here.
 *   state      all lists and counts.  Taken inside a page fault, so nobody
 *              copies from or to user space under it.
 *
 * Only symbols that are not GPL-only may be used: the stand-in is also built
 * as a proprietary module.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/types.h>

#include "nv-p2p.h"
#include "nvidia_emu.h"

#define STANDIN_MAX_BARS 4
#define STANDIN_PAGE_SHIFT 16

struct standin_bar {
	struct pci_dev *pci;
	u64 base, size;
	u32 pages;
	u8 *used;		/* one byte for each page */
	u32 next;		/* where the search for a scattered page starts */
	int wc_reservation;	/* 1 while held */
	u8 uuid[16];
};

struct standin_object {
	struct list_head link;	/* of its file; empty once that freed it */
	struct standin_bar *bar;
	unsigned int refs;	/* the file's, and one for each pin */
	u64 offset;
	u32 count;
	u32 pages[];		/* numbers inside the BAR */
};

struct standin_binding {
	struct list_head link;
	struct standin_object *object;
	struct file *file;
	pid_t tgid;
	u64 va, size, offset;	/* offset: inside the object */
	unsigned int count;
};

struct standin_pin {
	struct list_head link;
	struct standin_object *object;
	struct nvidia_p2p_page_table table;
	struct nvidia_p2p_page *pages;
	struct file *file;	/* of the binding it was made through; only compared */
	pid_t tgid;
	u64 va, size;
	bool persistent;
	void (*callback)(void *data);
	void *data;
};

extern struct rw_semaphore standin_p2p_calls;
extern struct mutex standin_state;
extern struct nvidia_emu_settings standin_settings;
extern struct nvidia_emu_stats standin_stats;

/* bar.c */
extern struct standin_bar standin_bars[STANDIN_MAX_BARS];
extern unsigned int standin_bar_count;
int standin_bars_find(void);
void standin_bars_release(void);
int standin_bars_reserve_wc(bool hold);

/* object.c: state is held, except for create and the last two. */
struct standin_object *standin_object_create(struct standin_bar *bar, u64 size);
void standin_object_put(struct standin_object *object);
struct standin_binding *standin_binding_find(pid_t tgid, u64 va, u64 size);
int standin_bind(struct file *file, struct standin_object *object,
		 const struct nvidia_emu_bind *bind);
int standin_unbind(struct file *file, const struct nvidia_emu_bind *bind, bool *last);
void standin_unbind_object(struct standin_object *object);
u64 standin_object_physical(const struct standin_object *object, u64 offset);

/* p2p.c: neither lock is held. */
struct standin_match {
	struct standin_object *object;	/* NULL: any */
	struct file *file;		/* NULL: any */
	pid_t tgid;			/* 0: any */
	u64 va, size;			/* size 0: any */
};
unsigned int standin_revoke(const struct standin_match *match);
void standin_p2p_exit(void);

/* device.c */
int standin_device_init(void);
void standin_device_exit(void);

void standin_misuse(const char *what, u64 number);

#endif
