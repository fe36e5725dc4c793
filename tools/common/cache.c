/* SPDX-License-Identifier: MIT */
/* Cache-line eviction by the instruction that each CPU offers. */
#include "cache.h"

#include <stdint.h>

/* The smallest line among the CPUs at hand; finer steps only repeat work. */
#if defined(__powerpc64__)
#define LINE_SIZE ((uintptr_t)128)
#else
#define LINE_SIZE ((uintptr_t)64)
#endif

bool cache_can_evict(void)
{
#if defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__)
	return true;
#else
	return false;
#endif
}

static inline void evict_line(uintptr_t line)
{
#if defined(__x86_64__)
	__asm__ volatile("clflush (%0)" : : "r"(line) : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
#elif defined(__powerpc64__)
	__asm__ volatile("dcbf 0, %0" : : "r"(line) : "memory");
#else
	(void)line;
#endif
}

static inline void wait_for_evictions(void)
{
#if defined(__x86_64__)
	__asm__ volatile("mfence" : : : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb sy" : : : "memory");
#elif defined(__powerpc64__)
	__asm__ volatile("sync" : : : "memory");
#endif
}

void cache_evict(const void *start, size_t size)
{
	uintptr_t line = (uintptr_t)start & ~(LINE_SIZE - 1);

	for (; line < (uintptr_t)start + size; line += LINE_SIZE)
		evict_line(line);
	wait_for_evictions();
}
