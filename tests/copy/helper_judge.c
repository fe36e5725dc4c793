/* SPDX-License-Identifier: MIT */
/* Plans copies, keeps the book of accesses to them, and holds routines that are wrong. */
#include "helper_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fault_names[JUDGE_FAULTS] = {
	[JUDGE_OUTSIDE] = "outside every copy",
	[JUDGE_TWICE] = "of a byte that was touched before",
	[JUDGE_MISSED] = "missing",
	[JUDGE_SPLIT] = "too many for an aligned word",
	[JUDGE_UNALIGNED] = "not aligned to their size",
	[JUDGE_TOO_WIDE] = "wider than the mapping's type allows",
	[JUDGE_WRONG_KIND] = "in the wrong direction",
};

/* Bytes that stay free on both sides of each copy, in the range and in the host's buffer. */
#define GAP 128

/* Above it, one size for each power of two. */
#define MAX_DENSE_POWER ((size_t)512 << 10)

static void add_copy(struct judge *judge, size_t misalignment, size_t size)
{
	size_t offset = judge->length + GAP + misalignment;

	judge->copies[judge->count++] = (struct judge_copy){
		.offset = offset,
		.host_offset = GAP + (7 * misalignment + 3 * size) % 64,
		.size = size,
	};
	judge->length = (offset + size + GAP + 63) / 64 * 64;
}

void judge_plan(struct judge *judge, size_t max_size, size_t max_power)
{
	*judge = (struct judge){ .widest = 64 };
	judge->copies = calloc((max_size + 1) * 64 + 64 * 6, sizeof(*judge->copies));
	for (size_t size = 0; size <= max_size; size++)
		for (size_t misalignment = 0; misalignment < 64; misalignment++)
			add_copy(judge, misalignment, size);
	for (size_t power = 512; power <= max_power && power <= MAX_DENSE_POWER; power *= 2) {
		for (size_t size = power - 1; size <= power + 1; size++) {
			add_copy(judge, 0, size);
			add_copy(judge, power / 512 * 5 % 64, size);
		}
	}
	for (size_t power = 2 * MAX_DENSE_POWER; power <= max_power; power *= 2)
		add_copy(judge, 5, power + 1);
	judge->length = (judge->length + 4095) / 4096 * 4096;
	judge->touched = calloc(judge->length, 1);
}

void judge_free(struct judge *judge)
{
	free(judge->copies);
	free(judge->touched);
}

/* The copy that holds the byte at offset, or NULL. */
static struct judge_copy *find_copy(const struct judge *judge, size_t offset)
{
	size_t low = 0, high = judge->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct judge_copy *copy = &judge->copies[middle];

		if (offset < copy->offset)
			high = middle;
		else if (offset >= copy->offset + copy->size)
			low = middle + 1;
		else
			return copy;
	}
	return NULL;
}

static void touch(struct judge *judge, size_t offset)
{
	struct judge_copy *copy = offset < judge->length ? find_copy(judge, offset) : NULL;

	if (!copy)
		judge->faults[JUDGE_OUTSIDE]++;
	else if (judge->touched[offset]++)
		judge->faults[JUDGE_TWICE]++;
}

void judge_access(struct judge *judge, bool store, uintptr_t address, size_t size)
{
	struct judge_copy *copy;

	if (address + size <= judge->base || address >= judge->base + judge->length)
		return;
	for (size_t i = 0; i < size; i++)
		touch(judge, address - judge->base + i);
	copy = find_copy(judge, address - judge->base);
	if (copy)
		copy->accesses++;
	if (address % size != 0)
		judge->faults[JUDGE_UNALIGNED]++;
	if (size > judge->widest)
		judge->faults[JUDGE_TOO_WIDE]++;
	if (store != judge->store)
		judge->faults[JUDGE_WRONG_KIND]++;
}

static bool is_aligned_word(const struct judge *judge, const struct judge_copy *copy)
{
	size_t size = copy->size;

	return (size == 1 || size == 2 || size == 4 || size == 8) &&
	       (judge->base + copy->offset) % size == 0;
}

unsigned long judge_finish(struct judge *judge, const char *name)
{
	unsigned long sum = 0;

	for (size_t i = 0; i < judge->count; i++) {
		const struct judge_copy *copy = &judge->copies[i];

		for (size_t byte = 0; byte < copy->size; byte++)
			if (judge->touched[copy->offset + byte] == 0)
				judge->faults[JUDGE_MISSED]++;
		if (is_aligned_word(judge, copy) && copy->accesses != 1)
			judge->faults[JUDGE_SPLIT]++;
	}
	for (int i = 0; i < JUDGE_FAULTS; i++) {
		sum += judge->faults[i];
		if (judge->faults[i])
			fprintf(stderr, "%s, %s: %lu accesses %s\n", name,
				judge->store ? "stores" : "loads", judge->faults[i], fault_names[i]);
	}
	return sum;
}

size_t judge_host_size(const struct judge *judge)
{
	size_t largest = 0;

	for (size_t i = 0; i < judge->count; i++)
		if (judge->copies[i].size > largest)
			largest = judge->copies[i].size;
	return largest + 64 + 2 * GAP;
}

void judge_run(const struct judge *judge, gdri_copy_fn copy, char *mapping, char *host)
{
	for (size_t i = 0; i < judge->count; i++) {
		const struct judge_copy *c = &judge->copies[i];

		if (judge->store)
			copy(mapping + c->offset, host + c->host_offset, c->size);
		else
			copy(host + c->host_offset, mapping + c->offset, c->size);
	}
}

/* Bytes, one by one: right but for what each planted routine adds. */
static void copy_bytes(void *dst, const void *src, size_t size)
{
	const volatile char *from = src;
	volatile char *to = dst;

	for (size_t i = 0; i < size; i++)
		to[i] = from[i];
}

static void bad_twice(void *dst, const void *src, size_t size)
{
	copy_bytes(dst, src, size);
	if (size > 0)
		copy_bytes((char *)dst + size - 1, (const char *)src + size - 1, 1);
}

static void bad_past(void *dst, const void *src, size_t size)
{
	copy_bytes(dst, src, size == 11 ? 12 : size);
}

static void bad_before(void *dst, const void *src, size_t size)
{
	if (size == 11)
		copy_bytes((char *)dst - 1, (const char *)src - 1, 1);
	copy_bytes(dst, src, size);
}

static void bad_missed(void *dst, const void *src, size_t size)
{
	copy_bytes(dst, src, size == 11 ? 10 : size);
}

/* One access of the whole, wherever it lies: too wide for device memory, too, at 16. */
static void bad_whole(void *dst, const void *src, size_t size)
{
	typedef uint64_t word __attribute__((aligned(1), may_alias));
	typedef char vector __attribute__((vector_size(16), aligned(1), may_alias));

	if (size == 8)
		*(volatile word *)dst = *(const volatile word *)src;
	else if (size == 16)
		*(volatile vector *)dst = *(const volatile vector *)src;
	else
		copy_bytes(dst, src, size);
}

/* Loads from where it stores and stores to where it loads. */
static void bad_kind(void *dst, const void *src, size_t size)
{
	volatile char *to = dst, *from = (volatile char *)(uintptr_t)src;

	copy_bytes(dst, src, size);
	if (size == 11) {
		(void)*to;
		*from = 0;
	}
}

const struct judge_planted judge_planted[] = {
	{ "bad-twice", bad_twice, JUDGE_TWICE },
	{ "bad-past", bad_past, JUDGE_OUTSIDE },
	{ "bad-before", bad_before, JUDGE_OUTSIDE },
	{ "bad-missed", bad_missed, JUDGE_MISSED },
	{ "bad-split", copy_bytes, JUDGE_SPLIT },
	{ "bad-unaligned", bad_whole, JUDGE_UNALIGNED },
	{ "bad-wide", bad_whole, JUDGE_TOO_WIDE },
	{ "bad-kind", bad_kind, JUDGE_WRONG_KIND },
};
const unsigned judge_planted_count = sizeof(judge_planted) / sizeof(judge_planted[0]);

static gdri_copy_fn find_planted(const char *name)
{
	for (unsigned i = 0; i < judge_planted_count; i++)
		if (strcmp(judge_planted[i].name, name) == 0)
			return judge_planted[i].copy;
	return NULL;
}

static bool is_usable(const char *name)
{
	const char *known;
	bool usable;

	for (unsigned i = 0; (known = gdri_copy_routine_name(i, &usable)); i++)
		if (strcmp(known, name) == 0)
			return usable;
	return false;
}

gdri_copy_fn judge_find_routine(const char *name, bool store)
{
	const struct gdri_log log = { .level = GDRI_LOG_OFF };
	gdr_mapping_type_t type = GDR_MAPPING_TYPE_WC;
	struct gdri_copy_engine engine;

	if (strncmp(name, "bad-", 4) == 0)
		return find_planted(name);
	if (strcmp(name, "device") == 0)
		type = GDR_MAPPING_TYPE_DEVICE;
	else if (strcmp(name, "caching") == 0)
		type = GDR_MAPPING_TYPE_CACHING;
	else if (strcmp(name, "auto") != 0 && !is_usable(name))
		return NULL;
	gdri_copy_engine_select(is_usable(name) ? name : NULL, &log, &engine);
	return store ? engine.to_mapping[type] : engine.from_mapping[type];
}
