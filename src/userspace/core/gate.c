/* SPDX-License-Identifier: MIT */
/* The slow side of a gate: finding a slot, and waiting for the last user. */
#include "core/gate.h"

#include <time.h>

#include "os/membarrier.h"

struct gdri_gate_slot *gdri_core_gate_claim(struct gdri_gate_slots *slots, uintptr_t thread)
{
	const size_t home = gdri_gate_hash(thread);

	for (size_t i = 0; i < GDRI_GATE_PROBES; i++) {
		struct gdri_gate_slot *slot = &slots->slot[(home + i) % GDRI_GATE_SLOTS];
		uintptr_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);

		if (owner == thread)
			return slot;
		if (owner == 0 && atomic_compare_exchange_strong(&slot->owner, &owner, thread))
			return slot;
	}
	return NULL;
}

void gdri_core_gate_slots_init(struct gdri_gate_slots *slots)
{
	const long offered = gdri_os_membarrier(GDRI_OS_MEMBARRIER_QUERY);

	atomic_store(&slots->fence_copies, offered < 0 || !(offered & GDRI_OS_MEMBARRIER_FENCE));
	gdri_core_rseq_init(&slots->rseq, offered);
}

static void pause_for(long nanoseconds)
{
	const struct timespec pause = { .tv_nsec = nanoseconds };

	nanosleep(&pause, NULL);
}

/*
 * Registering is left to the first drain: in a process with threads it takes
 * the kernel milliseconds, which gdr_open does not have.  Should the kernel
 * refuse although it offered the call (a seccomp filter set up meanwhile),
 * copies fence from now on, and those that began before are given 10 ms; a
 * store leaves a CPU's store buffer within microseconds.
 */
#define GRACE_NS (10 * 1000 * 1000)

static void fence_all_threads(struct gdri_gate_slots *slots)
{
	if (atomic_load(&slots->fence_copies)) {
		atomic_thread_fence(memory_order_seq_cst);
		return;
	}
	if (!atomic_load(&slots->registered) &&
	    gdri_os_membarrier(GDRI_OS_MEMBARRIER_FENCE_REGISTER) == 0)
		atomic_store(&slots->registered, true);
	if (gdri_os_membarrier(GDRI_OS_MEMBARRIER_FENCE) == 0)
		return;
	atomic_store(&slots->fence_copies, true);
	pause_for(GRACE_NS);
}

/*
 * A sequence that the kernel does not abort for us is over within nanoseconds,
 * or aborted because its thread loses the CPU.
 */
static void abort_sequences(struct gdri_gate_slots *slots)
{
	if (!gdri_core_rseq_abort_all(&slots->rseq))
		pause_for(GRACE_NS);
}

static bool is_empty(struct gdri_gate *gate, struct gdri_gate_slots *slots)
{
	const uintptr_t thread = gdri_gate_thread();

	if (atomic_load(&gate->count) != 0)
		return false;
	for (size_t i = 0; slots && i < GDRI_GATE_SLOTS; i++)
		if (atomic_load_explicit(&slots->slot[i].inside, memory_order_acquire) == gate &&
		    atomic_load_explicit(&slots->slot[i].owner, memory_order_relaxed) != thread)
			return false;
	return true;
}

/*
 * A leaving copy wakes nobody, since that would cost it a system call.  Small
 * copies are over within the first polls; behind a long one the waiter sleeps,
 * at most 1 ms at a time.
 */
void gdri_core_gate_drain(struct gdri_gate *gate, struct gdri_gate_slots *slots)
{
	long nanoseconds = 1000;

	if (slots) {
		fence_all_threads(slots);
		abort_sequences(slots);
	}
	for (int poll = 0; !is_empty(gate, slots); poll++) {
		if (poll < 64)
			continue;
		pause_for(nanoseconds);
		if (nanoseconds < 1000000)
			nanoseconds *= 2;
	}
}
