/* SPDX-License-Identifier: MIT */
/* The data_validation_* tests of GDRCopy 2.6: bytes arrive whole and where they belong. */
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "machine.h"
#include "tests.h"

#define DATA_SIZE ((size_t)320 << 10)
#define DATA_WORDS (DATA_SIZE / sizeof(uint32_t))
#define ROUNDS 1000

/* Used as numbers of words and as numbers of bytes. */
static const unsigned offsets[] = { 1, 2, 3, 4, 5, 6, 7, 11, 129, 1023 };

struct data {
	struct mapped m;
	unsigned char *sent;	/* what the GPU is to hold */
	unsigned char *seen;
	uint32_t seed;
};

static void fill_pattern(struct data *d)
{
	uint32_t *words = (uint32_t *)(void *)d->sent;

	d->seed = d->seed * 2654435761u + 1;
	for (size_t i = 0; i < DATA_WORDS; i++)
		words[i] = d->seed ^ (uint32_t)(i * 0x9e3779b9u);
}

/* The first place where the two differ, or size. */
static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t size)
{
	size_t i = 0;

	if (memcmp(a, b, size) == 0)
		return size;
	while (a[i] == b[i])
		i++;
	return i;
}

static void require_same(const unsigned char *seen, const unsigned char *sent, size_t size,
			 const char *what, size_t offset)
{
	size_t at = first_difference(seen, sent, size);

	if (at < size)
		FAIL("%s, offset %zu: byte %zu of %zu is 0x%02x, expected 0x%02x", what, offset, at,
		     size, seen[at], sent[at]);
}

/* One side's offset of a copy: in the mapping and in host memory. */
static void check_write(struct data *d, size_t map_offset, size_t host_offset)
{
	size_t size = DATA_SIZE - (map_offset > host_offset ? map_offset : host_offset);
	unsigned char *va = (unsigned char *)d->m.va;

	gpu_fill(d->m.buffer.addr, 0xdeadbeef, DATA_SIZE);
	fill_pattern(d);
	REQUIRE_OK(gdr_copy_to_mapping(d->m.mh, va + map_offset, d->sent + host_offset, size));
	gpu_read(d->seen, d->m.buffer.addr, DATA_SIZE);
	require_same(d->seen + map_offset, d->sent + host_offset, size, "copy to mapping",
		     map_offset);
	for (size_t i = 0; i < map_offset; i++)
		REQUIRE(d->seen[i] == (unsigned char)(0xdeadbeef >> (8 * (i % 4))));
}

static void check_read(struct data *d, size_t map_offset, size_t host_offset)
{
	size_t size = DATA_SIZE - (map_offset > host_offset ? map_offset : host_offset);
	const unsigned char *va = (const unsigned char *)d->m.va;

	fill_pattern(d);
	gpu_write(d->m.buffer.addr, d->sent, DATA_SIZE);
	memset(d->seen, 0x3c, DATA_SIZE);
	REQUIRE_OK(gdr_copy_from_mapping(d->m.mh, d->seen + host_offset, va + map_offset, size));
	require_same(d->seen + host_offset, d->sent + map_offset, size, "copy from mapping",
		     map_offset);
	for (size_t i = 0; i < host_offset; i++)
		REQUIRE(d->seen[i] == 0x3c);
}

static void check_offset(struct data *d, size_t offset)
{
	DEBUG("copies at offset %zu", offset);
	check_write(d, offset, 0);
	check_write(d, 0, offset);
	check_write(d, offset, offset);
	check_read(d, offset, 0);
	check_read(d, 0, offset);
	check_read(d, offset, offset);
}

static void check_direct_stores(struct data *d)
{
	volatile uint32_t *va = d->m.va;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < 64; i++)
			va[(round * 61 + i * 97) % DATA_WORDS] = round + (uint32_t)i;
	fill_pattern(d);
	for (size_t i = 0; i < DATA_WORDS; i++)
		va[i] = ((const uint32_t *)(const void *)d->sent)[i];
	gpu_read(d->seen, d->m.buffer.addr, DATA_SIZE);
	require_same(d->seen, d->sent, DATA_SIZE, "direct stores", 0);
}

static void map_checked(struct mapped *m)
{
	void *va = NULL;
	gdr_info_t info;

	REQUIRE_OK(gdr_get_info(m->g, m->mh, &info));
	REQUIRE(!info.mapped);
	REQUIRE_OK(gdr_map(m->g, m->mh, &va, DATA_SIZE));
	REQUIRE_OK(gdr_get_info(m->g, m->mh, &info));
	REQUIRE(info.mapped);
	m->va = (void *)((unsigned char *)va + (m->buffer.addr - info.va));
}

static void validate(enum memory memory, uint32_t flags, bool v2)
{
	struct data d = { .seed = 1 };

	d.sent = malloc(DATA_SIZE);
	d.seen = malloc(DATA_SIZE);
	REQUIRE(d.sent && d.seen);
	gpu_start();
	buffer_alloc(memory, DATA_SIZE, &d.m.buffer);
	d.m.g = open_session();
	if (v2)
		REQUIRE_OK(gdr_pin_buffer_v2(d.m.g, d.m.buffer.addr, DATA_SIZE, flags, &d.m.mh));
	else
		REQUIRE_OK(gdr_pin_buffer(d.m.g, d.m.buffer.addr, DATA_SIZE, 0, 0, &d.m.mh));
	map_checked(&d.m);

	check_direct_stores(&d);
	check_offset(&d, 0);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		check_offset(&d, offsets[i] * sizeof(uint32_t));
		check_offset(&d, offsets[i]);
	}
	mapped_close(&d.m);
	REQUIRE_OK(gdr_close(d.m.g));
	free(d.sent);
	free(d.seen);
}

void test_data_validation(enum memory memory)
{
	validate(memory, 0, false);
}

void test_data_validation_v2(enum memory memory)
{
	validate(memory, GDR_PIN_FLAG_DEFAULT, true);
}

void test_data_validation_v2_forcepci(enum memory memory)
{
	validate(memory, GDR_PIN_FLAG_FORCE_PCIE, true);
}

/* What one mapping writes, the other reads. */
static void check_through(gdr_mh_t to, void *to_va, gdr_mh_t from, const void *from_va,
			  uint32_t seed)
{
	static unsigned char sent[GPU_PAGE_SIZE], seen[GPU_PAGE_SIZE];

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (unsigned char)(seed + i * 7);
	memset(seen, 0, sizeof(seen));
	REQUIRE_OK(gdr_copy_to_mapping(to, to_va, sent, sizeof(sent)));
	REQUIRE_OK(gdr_copy_from_mapping(from, seen, from_va, sizeof(seen)));
	require_same(seen, sent, sizeof(sent), "read through the other mapping", 0);
}

void test_data_validation_mix_mappings(enum memory memory)
{
	void *wc_va = NULL, *cached_va = NULL;
	struct buffer buffer;
	gdr_mh_t wc, cached;
	gdr_info_t info;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	wc = buffer_pin(g, &buffer);
	cached = buffer_pin(g, &buffer);
	REQUIRE_OK(gdr_map_v2(g, wc, &wc_va, GPU_PAGE_SIZE, GDR_MAP_FLAG_REQ_WC_MAPPING));
	REQUIRE_OK(gdr_map_v2(g, cached, &cached_va, GPU_PAGE_SIZE,
			      GDR_MAP_FLAG_REQ_CACHE_MAPPING));
	REQUIRE_OK(gdr_get_info(g, wc, &info));
	REQUIRE_EQ(info.mapping_type, GDR_MAPPING_TYPE_WC);
	REQUIRE_OK(gdr_get_info(g, cached, &info));
	REQUIRE_EQ(info.mapping_type, GDR_MAPPING_TYPE_CACHING);

	for (uint32_t round = 0; round < 100; round++) {
		check_through(wc, wc_va, cached, cached_va, 2 * round);
		check_through(cached, cached_va, wc, wc_va, 2 * round + 1);
	}
	REQUIRE_OK(gdr_unmap(g, wc, wc_va, GPU_PAGE_SIZE));
	REQUIRE_OK(gdr_unmap(g, cached, cached_va, GPU_PAGE_SIZE));
	REQUIRE_OK(gdr_unpin_buffer(g, wc));
	REQUIRE_OK(gdr_unpin_buffer(g, cached));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}
