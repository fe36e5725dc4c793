/* SPDX-License-Identifier: MIT */
/* Fences by purpose; the only place where a fence instruction is written. */
#ifndef GDRI_COPY_FENCE_H
#define GDRI_COPY_FENCE_H

/*
 * gdri_fence_stores_posted: after stores to a write-combined or device mapping.
 *
 * When it returns, every earlier store of this thread has left the CPU's
 * combining buffers and is on its way to the device, and no later store, to
 * whatever memory, reaches the bus before them.  Stores to a bus are posted:
 * the device may still be about to take them, and only a read from it tells.
 *
 * gdri_fence_loads_begin: before loads from a write-combined or device mapping.
 *
 * No later load is executed before an earlier one has its value: who polls a
 * flag anywhere and then reads a mapping gets bytes that are at least as new
 * as the flag.  Nor is a later load answered from a piece of the mapping that
 * the CPU fetched before.
 *
 * gdri_fence_loads_done: after such loads.
 *
 * When it returns, every earlier load of this thread has its value, and
 * nothing that follows has begun: a read from the device is an ordering point.
 *
 * gdri_fence_full: around cached memory that a device shares coherently.
 *
 * Loads and stores on one side of it are seen, by the other CPUs and by
 * devices, before those on the other side, of whatever kind of memory.
 *
 * Each of them also stops the compiler from moving memory accesses across.
 */

#if defined(__x86_64__)

/* The instruction by itself, for code that is assembly as a whole. */
#define GDRI_FENCE_STORES_POSTED "sfence"

static inline void gdri_fence_stores_posted(void)
{
	__asm__ volatile(GDRI_FENCE_STORES_POSTED ::: "memory");
}

/*
 * Loads from write-combined memory are weakly ordered, and a streaming load
 * (MOVNTDQA) fetches its whole line into a buffer that other agents' stores do
 * not update.  Intel's manual (volume 1, "Streaming Load Hint Instruction")
 * asks for MFENCE between the synchronisation and the loads.
 */
static inline void gdri_fence_loads_begin(void)
{
	__asm__ volatile("mfence" ::: "memory");
}

static inline void gdri_fence_loads_done(void)
{
	__asm__ volatile("lfence" ::: "memory");
}

static inline void gdri_fence_full(void)
{
	__asm__ volatile("mfence" ::: "memory");
}

#elif defined(__aarch64__)

/*
 * DSB rather than DMB: DMB orders stores among themselves, but lets a gathered
 * store wait in a buffer for as long as it likes.
 */
static inline void gdri_fence_stores_posted(void)
{
	__asm__ volatile("dsb st" ::: "memory");
}

static inline void gdri_fence_loads_begin(void)
{
	__asm__ volatile("dmb ld" ::: "memory");
}

static inline void gdri_fence_loads_done(void)
{
	__asm__ volatile("dsb ld" ::: "memory");
}

static inline void gdri_fence_full(void)
{
	__asm__ volatile("dmb sy" ::: "memory");
}

#elif defined(__powerpc64__)

/*
 * The heavyweight sync is the one fence of the architecture that orders
 * cacheable and cache-inhibited storage against each other.
 */
static inline void gdri_fence_full(void)
{
	__asm__ volatile("sync" ::: "memory");
}

static inline void gdri_fence_stores_posted(void)
{
	gdri_fence_full();
}

static inline void gdri_fence_loads_begin(void)
{
	gdri_fence_full();
}

static inline void gdri_fence_loads_done(void)
{
	gdri_fence_full();
}

#else
#error "state the fences of this architecture here"
#endif

#endif
