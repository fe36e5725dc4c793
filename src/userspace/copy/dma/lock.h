/* SPDX-License-Identifier: MIT */
/* A lock for a few hundred nanoseconds, and what polling threads do between looks. */
#ifndef GDRI_COPY_DMA_LOCK_H
#define GDRI_COPY_DMA_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/*
 * Held for a submission or a search, never across a wait.  A holder may lose its
 * processor all the same, so who spins for long gives his away.
 */
struct gdri_dma_lock {
	atomic_flag taken;
};

static inline void gdri_dma_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static inline void gdri_dma_lock_take(struct gdri_dma_lock *lock)
{
	unsigned turn = 0;

	while (atomic_flag_test_and_set_explicit(&lock->taken, memory_order_acquire)) {
		gdri_dma_relax();
		if (++turn % 256 == 0)
			sched_yield();
	}
}

static inline void gdri_dma_lock_drop(struct gdri_dma_lock *lock)
{
	atomic_flag_clear_explicit(&lock->taken, memory_order_release);
}

static inline uint64_t gdri_dma_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
