/* SPDX-License-Identifier: MIT */
/* The set of mapped ranges: against a plain model, and read while it changes. */
#include "core/intervals.h"

#include <pthread.h>
#include <stdlib.h>

#include "harness.h"

#define STEP ((uintptr_t)0x10000)
#define FIRST ((uintptr_t)1 << 32)
#define PLACES 512

static const void *place(unsigned n)
{
	return (const void *)(FIRST + n * STEP);
}

/* Half a step long, so that each range has a gap behind it. */
static void check_places(const struct gdri_intervals *set, const bool *present)
{
	unsigned wrong = 0;

	for (unsigned n = 0; n < PLACES; n++) {
		const char *base = place(n);

		wrong += gdri_core_intervals_meet(set, base, 1) != present[n];
		wrong += gdri_core_intervals_meet(set, base + STEP / 2 - 1, 1) != present[n];
		wrong += gdri_core_intervals_meet(set, base - 1, 2) != present[n];
		wrong += gdri_core_intervals_meet(set, base + STEP / 2, STEP / 2);
		wrong += gdri_core_intervals_meet(set, base + 8, 0);
		wrong += gdri_core_intervals_meet(set, base - 64, STEP) != present[n];
	}
	CHECK_EQ(wrong, 0);
}

static void test_model(void)
{
	struct gdri_intervals set = { .capacity = 0 };
	bool present[PLACES] = { false };

	REQUIRE_EQ(gdri_core_intervals_init(&set), 0);
	check_places(&set, present);
	srandom(7);
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < 16; i++) {
			const unsigned n = (unsigned)random() % PLACES;

			if (present[n])
				gdri_core_intervals_remove(&set, place(n));
			else
				CHECK_EQ(gdri_core_intervals_add(&set, place(n), STEP / 2), 0);
			present[n] = !present[n];
		}
		check_places(&set, present);
	}
	gdri_core_intervals_remove(&set, (const char *)place(0) + 1);
	check_places(&set, present);
	gdri_core_intervals_destroy(&set);
}

static void test_full(void)
{
	struct gdri_intervals set = { .capacity = 0 };

	REQUIRE_EQ(gdri_core_intervals_init(&set), 0);
	for (size_t n = set.capacity; n > 0; n--)
		if (gdri_core_intervals_add(&set, (const void *)(FIRST + n * 16), 8) != 0)
			break;
	CHECK_EQ(set.count, set.capacity);
	CHECK(gdri_core_intervals_add(&set, (const void *)8, 8) != 0);
	CHECK(gdri_core_intervals_meet(&set, (const void *)(FIRST + 16), 1));
	CHECK(!gdri_core_intervals_meet(&set, (const void *)8, 8));
	gdri_core_intervals_destroy(&set);
}

struct shared {
	struct gdri_intervals set;
	atomic_bool over;
	atomic_uint wrong;
};

/* Even places are always there, places beyond the end never. */
static void *read_all(void *argument)
{
	struct shared *shared = argument;

	while (!atomic_load(&shared->over))
		for (unsigned n = 0; n < PLACES; n += 2)
			if (!gdri_core_intervals_meet(&shared->set, place(n), 8) ||
			    gdri_core_intervals_meet(&shared->set, place(PLACES + n), 8))
				atomic_fetch_add(&shared->wrong, 1);
	return NULL;
}

static void test_readers(void)
{
	struct shared shared = { .over = false };
	pthread_t reader[2];

	REQUIRE_EQ(gdri_core_intervals_init(&shared.set), 0);
	for (unsigned n = 0; n < PLACES; n += 2)
		gdri_core_intervals_add(&shared.set, place(n), 64);
	for (unsigned i = 0; i < 2; i++)
		REQUIRE_EQ(pthread_create(&reader[i], NULL, read_all, &shared), 0);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned n = 1; n < PLACES; n += 2)
			gdri_core_intervals_add(&shared.set, place(n), 64);
		for (unsigned n = 1; n < PLACES; n += 2)
			gdri_core_intervals_remove(&shared.set, place(n));
	}
	atomic_store(&shared.over, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(reader[i], NULL);
	CHECK_EQ(shared.wrong, 0);
	gdri_core_intervals_destroy(&shared.set);
}

static const struct harness_case cases[] = {
	{ "intervals.model", test_model },
	{ "intervals.full", test_full },
	{ "intervals.readers", test_readers },
};
HARNESS_MAIN(cases)
