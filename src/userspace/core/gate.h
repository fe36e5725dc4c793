/* SPDX-License-Identifier: MIT */
/* A gate: lets users through while it is open, and waits for them after it closed. */
#ifndef GDRI_CORE_GATE_H
#define GDRI_CORE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rseq.h"

#define GDRI_CACHE_LINE 64

/*
 * key is the generation in its upper half and a count in the lower one, which
 * opening and closing take one further: odd means open, and no two openings
 * share a key (a thread would have to stand still between two loads for two
 * billion of them).  Gates live in memory that is never given back while the
 * library is loaded (core/pool.h), so a late user of an old generation finds
 * a key that differs from its own, and nothing worse.
 *
 * There are three ways in.
 *
 * enter/leave count users with locked instructions.  API calls use it: it
 * nests, and its cost does not matter there.
 *
 * enter_quickly/leave_quickly are for copies.  A locked instruction waits for
 * every earlier store of the thread, write-combined ones to the device
 * included: two of them around a 4-byte store cost 180 ns on a Xeon with an
 * H200, where store and fence by themselves cost 3 (tests/device/copy_cost).  So a
 * copying thread writes what it is about to use into a slot of its own, with a
 * plain store, and then looks at the key.  The CPU may do these two in the
 * other order; it is the closing side that pays, with membarrier(2): it closes
 * the key, has every thread of the process pass a full barrier, and then reads
 * the slots.  A thread whose barrier came before its store finds the gate
 * closed; one whose barrier came after its look is found in its slot.
 *
 * Even that is too much for a row of single words: the slot's two stores wait in
 * the CPU's queue until the device has acknowledged what the fence before them
 * flushed.  Where the kernel and glibc have restartable sequences, a word is
 * stored in one and announced nowhere (core/rseq.h): gdri_gate_peek gives the key to
 * compare with, and what was read of the object after it holds as long as the
 * key does.
 */
struct gdri_gate {
	_Atomic uint64_t key;
	_Atomic long count;
};

#define GDRI_GATE_OPEN UINT64_C(1)

static inline bool gdri_gate_key_is_open(uint64_t key, uint32_t generation)
{
	return __builtin_expect(key >> 32 == generation && key & GDRI_GATE_OPEN, 1);
}

/*
 * Both ways look at the key before they announce a user.  Without that, many
 * threads that keep knocking at a closed gate are now and then seen inside, one
 * or another at any moment, and drain never ends.
 */
static inline bool gdri_gate_is_open(const struct gdri_gate *gate, uint32_t generation)
{
	return gdri_gate_key_is_open(atomic_load_explicit(&gate->key, memory_order_relaxed),
				     generation);
}

/* False: closed to that generation.  Else *key is that of this opening. */
static inline bool gdri_gate_peek(const struct gdri_gate *gate, uint32_t generation, uint64_t *key)
{
	*key = atomic_load_explicit(&gate->key, memory_order_acquire);
	return gdri_gate_key_is_open(*key, generation);
}

static inline bool gdri_gate_enter(struct gdri_gate *gate, uint32_t generation)
{
	if (!gdri_gate_is_open(gate, generation))
		return false;
	atomic_fetch_add(&gate->count, 1);
	if (gdri_gate_key_is_open(atomic_load(&gate->key), generation))
		return true;
	atomic_fetch_sub(&gate->count, 1);
	return false;
}

static inline void gdri_gate_leave(struct gdri_gate *gate)
{
	atomic_fetch_sub(&gate->count, 1);
}

/* Opens and closes are made by one thread at a time. */
static inline void gdri_gate_open(struct gdri_gate *gate, uint32_t generation)
{
	const uint32_t count = (uint32_t)atomic_load_explicit(&gate->key, memory_order_relaxed);

	atomic_store(&gate->key, (uint64_t)generation << 32 | (uint32_t)(count + 1));
}

/* False when it was closed, or open for another generation; of two callers one wins. */
static inline bool gdri_gate_close(struct gdri_gate *gate, uint32_t generation)
{
	uint64_t key = atomic_load_explicit(&gate->key, memory_order_relaxed);
	const uint64_t closed = (uint64_t)generation << 32 | (uint32_t)((uint32_t)key + 1);

	return gdri_gate_key_is_open(key, generation) &&
	       atomic_compare_exchange_strong(&gate->key, &key, closed);
}

/*
 * Where copying threads say which gate they are inside.  A thread owns the
 * slot that has its thread pointer; it takes a free one near a hash of that
 * pointer at its first copy.  Thread-local storage would be simpler, but that
 * of a library loaded with dlopen is allocated at first use, inside a copy.
 * A thread that ends leaves its slot to the next thread with its pointer;
 * threads that find no free slot are counted at the gate instead.
 */
#define GDRI_GATE_SLOTS 256
#define GDRI_GATE_PROBES 4

struct gdri_gate_slot {
	_Alignas(GDRI_CACHE_LINE) _Atomic uintptr_t owner;
	_Atomic(struct gdri_gate *) inside;
};

struct gdri_gate_slots {
	/* Set where membarrier is missing: copies then pay for a full fence. */
	_Atomic bool fence_copies;
	_Atomic bool registered;	/* for membarrier */
	struct gdri_rseq rseq;
	struct gdri_gate_slot slot[GDRI_GATE_SLOTS];
};

static inline uintptr_t gdri_gate_thread(void)
{
#if defined(__x86_64__)
	uintptr_t thread;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	return thread;
#elif defined(__aarch64__)
	uintptr_t thread;

	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
	return thread;
#elif defined(__powerpc64__)
	register uintptr_t thread __asm__("r13");

	__asm__("" : "=r"(thread));
	return thread;
#else
#error "name the thread pointer of this architecture here"
#endif
}

/* Fibonacci hashing, since thread stacks lie at regular distances. */
static inline size_t gdri_gate_hash(uintptr_t thread)
{
	return (size_t)(((uint64_t)thread * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

/* The slow part of finding a slot; NULL: none is free nearby. */
struct gdri_gate_slot *gdri_core_gate_claim(struct gdri_gate_slots *slots, uintptr_t thread);

/*
 * On success *slot is to be handed to leave_quickly (it may be NULL: the user
 * was counted).
 */
static inline bool gdri_gate_enter_quickly(struct gdri_gate_slots *slots, struct gdri_gate *gate,
					   uint32_t generation, struct gdri_gate_slot **slot)
{
	const uintptr_t thread = gdri_gate_thread();
	struct gdri_gate_slot *own = &slots->slot[gdri_gate_hash(thread)];

	if (!gdri_gate_is_open(gate, generation))
		return false;
	if (__builtin_expect(atomic_load_explicit(&own->owner, memory_order_relaxed) != thread, 0))
		own = gdri_core_gate_claim(slots, thread);
	/* Inside already: a signal handler that copies, or a copy left by longjmp. */
	if (__builtin_expect(!own || atomic_load_explicit(&own->inside, memory_order_relaxed), 0)) {
		*slot = NULL;
		return gdri_gate_enter(gate, generation);
	}
	atomic_store_explicit(&own->inside, gate, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(&slots->fence_copies, memory_order_relaxed), 0))
		atomic_thread_fence(memory_order_seq_cst);
	atomic_signal_fence(memory_order_seq_cst);
	*slot = own;
	if (gdri_gate_key_is_open(atomic_load_explicit(&gate->key, memory_order_acquire),
				  generation))
		return true;
	atomic_store_explicit(&own->inside, NULL, memory_order_release);
	return false;
}

/*
 * As enter_quickly, through the opening that gdri_gate_peek saw, for a thread that
 * has its slot and is in no other copy; NULL otherwise, and where copies have to
 * fence.  No call, nothing but the slot is stored.
 */
static inline struct gdri_gate_slot *gdri_gate_enter_own_slot(struct gdri_gate_slots *slots,
							      struct gdri_gate *gate, uint64_t key)
{
	const uintptr_t thread = gdri_gate_thread();
	struct gdri_gate_slot *own = &slots->slot[gdri_gate_hash(thread)];

	if (__builtin_expect(atomic_load_explicit(&own->owner, memory_order_relaxed) != thread ||
			     atomic_load_explicit(&own->inside, memory_order_relaxed) ||
			     atomic_load_explicit(&slots->fence_copies, memory_order_relaxed), 0))
		return NULL;
	atomic_store_explicit(&own->inside, gate, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&gate->key, memory_order_acquire) == key, 1))
		return own;
	atomic_store_explicit(&own->inside, NULL, memory_order_release);
	return NULL;
}

static inline void gdri_gate_leave_own_slot(struct gdri_gate_slot *slot)
{
	atomic_store_explicit(&slot->inside, NULL, memory_order_release);
}

static inline void gdri_gate_leave_quickly(struct gdri_gate *gate, struct gdri_gate_slot *slot)
{
	if (__builtin_expect(slot != NULL, 1))
		atomic_store_explicit(&slot->inside, NULL, memory_order_release);
	else
		gdri_gate_leave(gate);
}

/* Finds out whether membarrier and restartable sequences can be had. */
void gdri_core_gate_slots_init(struct gdri_gate_slots *slots);

/*
 * Waits until everybody who was let in has left.  Call after close; slots is
 * NULL for a gate that nobody enters quickly.  The caller's own slot does not
 * count: who unmaps is not copying any more, even if it left a copy by longjmp.
 */
void gdri_core_gate_drain(struct gdri_gate *gate, struct gdri_gate_slots *slots);

#endif
