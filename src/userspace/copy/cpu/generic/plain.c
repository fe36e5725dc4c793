/* SPDX-License-Identifier: MIT */
/* Moves words of 8 bytes with plain C accesses. */
#include "copy/cpu/generic/plain.h"

#include "copy/cpu/split.h"

/* Block: 8 bytes.  Four at a time keep the loop's own work out of the way. */
static void store_blocks(void *dst, const void *src, size_t count)
{
	const char *host = src;
	char *mapping = dst;

	for (; count >= 4; count -= 4, mapping += 32, host += 32) {
		gdri_copy_store64(mapping, host);
		gdri_copy_store64(mapping + 8, host + 8);
		gdri_copy_store64(mapping + 16, host + 16);
		gdri_copy_store64(mapping + 24, host + 24);
	}
	for (; count > 0; count--, mapping += 8, host += 8)
		gdri_copy_store64(mapping, host);
}

static void load_blocks(void *dst, const void *src, size_t count)
{
	const char *mapping = src;
	char *host = dst;

	for (; count >= 4; count -= 4, mapping += 32, host += 32) {
		gdri_copy_load64(host, mapping);
		gdri_copy_load64(host + 8, mapping + 8);
		gdri_copy_load64(host + 16, mapping + 16);
		gdri_copy_load64(host + 24, mapping + 24);
	}
	for (; count > 0; count--, mapping += 8, host += 8)
		gdri_copy_load64(host, mapping);
}

static const struct gdri_copy_ladder stores = { .block = 8, .wide = store_blocks };
static const struct gdri_copy_ladder loads = { .block = 8, .wide = load_blocks };

void gdri_copy_plain_store(void *dst, const void *src, size_t size)
{
	gdri_copy_store(&stores, dst, src, size);
}

void gdri_copy_plain_load(void *dst, const void *src, size_t size)
{
	gdri_copy_load(&loads, dst, src, size);
}

void gdri_copy_plain_cached_store(void *dst, const void *src, size_t size)
{
	gdri_copy_split_store(&stores, dst, src, size);
	gdri_fence_full();
}

void gdri_copy_plain_cached_load(void *dst, const void *src, size_t size)
{
	gdri_fence_loads_begin();
	gdri_copy_split_load(&loads, dst, src, size);
	gdri_fence_full();
}

const struct gdri_copy_routine gdri_copy_plain = {
	.name = "plain",
	.store = gdri_copy_plain_store,
	.load = gdri_copy_plain_load,
};
