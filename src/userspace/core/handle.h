/* SPDX-License-Identifier: MIT */
/* The process-wide table behind gdr_t and gdr_mh_t: what a handle is and how it is checked. */
#ifndef GDRI_CORE_HANDLE_H
#define GDRI_CORE_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gate.h"
#include "core/intervals.h"

/*
 * A handle of the 2.6 API is the address of a record in an arena: one
 * reservation of address space that is made at the first gdr_open.  What has
 * been used of it stays readable while the library is loaded.  So any 64 bits
 * can be checked with two comparisons, and no load from a foreign address is
 * ever made.
 *
 * Records are handed out at rising addresses and not reused before the arena
 * is through (8 million handles later), so the address itself tells an old
 * handle from a new one; a page whose records are all dead goes back to the
 * kernel and then reads as zeros, which is a dead record.  Each record also
 * carries the generation of the object it stands for, and only the pair of
 * both is believed.
 *
 * The first bytes have the layout of GDRCopy's own objects, which its sanity
 * program reads and writes (interface facts 2.1): the descriptor at offset 0
 * of 48 bytes behind gdr_t, the driver's handle at offset 24 of 104 bytes
 * behind gdr_mh_t.h.
 */
struct gdri_record {
	union {
		struct {
			int32_t fd;
			void *list;
			uint64_t page_size;
			uint64_t page_mask;
			uint8_t page_shift;
			uint32_t driver_version;
			uint32_t backend;
		} session;
		struct {
			void *links[2];
			uint32_t mapping_type;
			_Alignas(8) uint32_t driver_handle;
		} region;
		unsigned char layout_2_6[104];
	};
	_Atomic(void *) object;		/* NULL: nothing to be found here */
	uint32_t generation;		/* of the object when the record was made */
	_Atomic uint32_t kind;		/* enum gdri_record_kind */
} __attribute__((aligned(128)));

enum gdri_record_kind {
	GDRI_RECORD_FREE,
	GDRI_RECORD_RESERVED,	/* allocated, not published yet */
	GDRI_RECORD_SESSION,
	GDRI_RECORD_REGION,
	/* The same objects for version 3 of the interface: one does not take the other's. */
	GDRI_RECORD_SESSION_V3,
	GDRI_RECORD_REGION_V3
};

/* Creates the table of this process if it has none yet; -ENOMEM. */
int gdri_core_table_create(void);

/*
 * The table's lock: allocation of objects and records.  A forked child finds
 * it unlocked, since it lies in the page that fork wipes.
 */
void gdri_core_table_lock(void);
void gdri_core_table_unlock(void);

/*
 * A fresh record, or NULL when the arena is full of live ones.  The lock is
 * held.  publish() makes it findable; until then lookups refuse it.
 */
struct gdri_record *gdri_core_record_alloc(void);
void gdri_core_record_publish(struct gdri_record *record, enum gdri_record_kind kind,
			      void *object, uint32_t generation);
void gdri_core_record_free(struct gdri_record *record);

/* The slots that copying threads of this process announce themselves in. */
struct gdri_gate_slots *gdri_core_table_slots(void);

/*
 * Where device memory is mapped in this process, by sessions of any kind; add
 * and remove with the lock held.
 */
struct gdri_intervals *gdri_core_table_mapped(void);

/* Objects behind records.  The lock is held.  Zeroed when fresh. */
void *gdri_core_session_alloc(size_t size);
void *gdri_core_region_alloc(size_t size);
void gdri_core_session_free(void *object);
void gdri_core_region_free(void *object);

/*
 * What value stands for, or the error that its owner is to get.
 *
 * 0: *record is a record of this process's arena, *object is what it stood for
 * at this moment; the caller enters the object's gate or takes its lock
 * and compares generations before it believes anything else.  -EINVAL: not a
 * live handle of that kind.  -EACCES: a handle of the parent of this process.
 * No lock, no system call.
 */
int gdri_core_handle_lookup(uint64_t value, enum gdri_record_kind kind,
			    struct gdri_record **record, void **object);

/*
 * What the hot path reads of the process's table, so that it needs no call.
 * Made by gdri_core_table_create; the parent's in a forked child, where alive is 0.
 */
struct gdri_table_view {
	unsigned char *base;
	_Atomic size_t opened;
	const _Atomic uint32_t *alive;	/* 0 in a child; NULL where fork cannot tell that way */
	struct gdri_gate_slots *slots;
};
extern _Atomic(const struct gdri_table_view *) gdri_core_view;

/*
 * The record of a live handle, or NULL: gdri_core_handle_lookup() then tells why,
 * if it is a reason.
 */
static inline struct gdri_record *gdri_core_handle_glance(const struct gdri_table_view *view,
							  uint64_t value,
							  enum gdri_record_kind kind)
{
	const uint64_t offset = value - (uint64_t)(uintptr_t)view->base;
	struct gdri_record *record = (struct gdri_record *)(uintptr_t)value;

	if (!view->alive || !atomic_load_explicit(view->alive, memory_order_relaxed) ||
	    offset >= atomic_load_explicit(&view->opened, memory_order_acquire) ||
	    offset % sizeof(struct gdri_record) != 0 ||
	    atomic_load_explicit(&record->kind, memory_order_relaxed) != (uint32_t)kind)
		return NULL;
	return record;
}

#endif
