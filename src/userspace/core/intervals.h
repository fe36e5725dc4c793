/* SPDX-License-Identifier: MIT */
/* A set of disjoint address ranges that copies may search without a lock. */
#ifndef GDRI_CORE_INTERVALS_H
#define GDRI_CORE_INTERVALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_interval {
	_Atomic uintptr_t base;
	_Atomic uintptr_t end;
};

/*
 * Sorted by falling addresses, the order in which mmap hands them out, so that
 * a new one usually goes to the end.  Writers hold a lock of the owner; a
 * reader that meets a writer looks again (a sequence lock).  The memory is a
 * reservation of address space that is never given back or moved, so a reader
 * that is late finds wrong entries, and then the changed sequence.
 */
struct gdri_intervals {
	_Atomic uint32_t sequence;	/* odd: being changed */
	_Atomic size_t count;
	struct gdri_interval *entry;
	size_t capacity;
};

/* -ENOMEM.  Asks the kernel for addresses, not for memory. */
int gdri_core_intervals_init(struct gdri_intervals *set);
void gdri_core_intervals_destroy(struct gdri_intervals *set);

/* base is not in the set yet; -ENOMEM when it is full.  The owner's lock is held. */
int gdri_core_intervals_add(struct gdri_intervals *set, const void *base, size_t length);
void gdri_core_intervals_remove(struct gdri_intervals *set, const void *base);

/* Whether [address, address + size) touches one of them.  No lock, no system call. */
bool gdri_core_intervals_meet(const struct gdri_intervals *set, const void *address, size_t size);

#endif
