/* SPDX-License-Identifier: MIT */
/* Throws a range out of the CPU's caches. */
#ifndef TOOLS_CACHE_H
#define TOOLS_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* false where this CPU has no such instruction for user space. */
bool cache_can_evict(void);

/* On return no line of the range is in a cache. */
void cache_evict(const void *start, size_t size);

#endif
