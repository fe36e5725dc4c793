/* SPDX-License-Identifier: MIT */
/* Type-stable allocation in chunks that are never given back. */
#include "core/pool.h"

#include <sys/mman.h>

#define CHUNK_SIZE ((size_t)64 * 1024)

static void add_chunk(struct gdri_pool *pool)
{
	char *chunk = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (chunk == MAP_FAILED)
		return;
	for (size_t end = pool->object_size; end <= CHUNK_SIZE; end += pool->object_size)
		gdri_core_pool_put(pool, chunk + end - pool->object_size);
}

void *gdri_core_pool_get(struct gdri_pool *pool)
{
	void **object;

	if (!pool->free_list)
		add_chunk(pool);
	object = pool->free_list;
	if (object)
		pool->free_list = *object;
	return object;
}

void gdri_core_pool_put(struct gdri_pool *pool, void *object)
{
	*(void **)object = pool->free_list;
	pool->free_list = object;
}
