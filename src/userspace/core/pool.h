/* SPDX-License-Identifier: MIT */
/* Objects of one size in memory that stays what it is: freed ones are only reused as the same type. */
#ifndef GDRI_CORE_POOL_H
#define GDRI_CORE_POOL_H

#include <stddef.h>

/*
 * Sessions and regions live in pools, because a copy may look at one while
 * another thread frees it: the object it finds is then dead or a younger one,
 * told apart by its generation, but always an object of that type.
 *
 * A pool does not lock; its owner does.  Objects are aligned to a cache line,
 * zeroed when fresh, and keep their bytes across free and reuse, but for the
 * first pointer of the object, which links free ones.
 */
struct gdri_pool {
	size_t object_size;	/* a multiple of the cache line */
	void *free_list;
};

/* NULL when memory is exhausted. */
void *gdri_core_pool_get(struct gdri_pool *pool);
void gdri_core_pool_put(struct gdri_pool *pool, void *object);

#endif
