/* SPDX-License-Identifier: MIT */
/* Type-stable allocation in chunks that are only returned all together. */
#include "core/pool.h"

#include <stdint.h>
#include <sys/mman.h>

#include "core/gate.h"

#define CHUNK_SIZE ((size_t)64 * 1024)

/* The first cache line of a chunk. */
struct chunk {
	struct chunk *next;
};

static void add_chunk(struct gdri_pool *pool)
{
	struct chunk *chunk = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t offset = GDRI_CACHE_LINE;

	if (chunk == MAP_FAILED)
		return;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (; offset + pool->object_size <= CHUNK_SIZE; offset += pool->object_size)
		gdri_core_pool_put(pool, (char *)chunk + offset);
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

void gdri_core_pool_destroy(struct gdri_pool *pool)
{
	struct chunk *chunk = pool->chunks;

	while (chunk) {
		struct chunk *next = chunk->next;

		munmap(chunk, CHUNK_SIZE);
		chunk = next;
	}
	pool->chunks = NULL;
	pool->free_list = NULL;
}
