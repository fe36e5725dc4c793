/* SPDX-License-Identifier: MIT */
/* The slow side of a gate: finding a slot, and waiting for the last user. */
#include "core/gate.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* linux/membarrier.h, which old distributions lack. */
enum {
	MEMBARRIER_QUERY = 0,
	MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3,
	MEMBARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4
};

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0);
}

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
	const long commands = membarrier(MEMBARRIER_QUERY);

	atomic_store(&slots->fence_copies,
		     commands < 0 || !(commands & MEMBARRIER_PRIVATE_EXPEDITED));
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
static void fence_all_threads(struct gdri_gate_slots *slots)
{
	if (atomic_load(&slots->fence_copies)) {
		atomic_thread_fence(memory_order_seq_cst);
		return;
	}
	if (!atomic_load(&slots->registered) &&
	    membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) == 0)
		atomic_store(&slots->registered, true);
	if (membarrier(MEMBARRIER_PRIVATE_EXPEDITED) == 0)
		return;
	atomic_store(&slots->fence_copies, true);
	pause_for(10 * 1000 * 1000);
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

	if (slots)
		fence_all_threads(slots);
	for (int poll = 0; !is_empty(gate, slots); poll++) {
		if (poll < 64)
			continue;
		pause_for(nanoseconds);
		if (nanoseconds < 1000000)
			nanoseconds *= 2;
	}
}
