/* SPDX-License-Identifier: MIT */
/* Any call from any thread, and calls that meet: each has one winner. */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <string.h>

/* One life of a buffer, each step in a thread of its own that ends at once. */
struct relay {
	struct gpu_buffer buffer;
	gdr_t g;
	gdr_mh_t handle;
	unsigned char *va;
};

static void *relay_open(void *arg)
{
	((struct relay *)arg)->g = gpu_open();
	return NULL;
}

static void *relay_pin(void *arg)
{
	struct relay *relay = arg;

	CHECK_EQ(gdr_pin_buffer(relay->g, relay->buffer.ptr, MIB, 0, 0, &relay->handle), 0);
	return NULL;
}

static void *relay_map(void *arg)
{
	struct relay *relay = arg;
	void *va;

	CHECK_EQ(gdr_map(relay->g, relay->handle, &va, MIB), 0);
	relay->va = va;
	return NULL;
}

static void *relay_copy(void *arg)
{
	struct relay *relay = arg;
	uint64_t value = 0x0123456789abcdef, seen = 0;

	CHECK_EQ(gdr_copy_to_mapping(relay->handle, relay->va + 64, &value, 8), 0);
	CHECK_EQ(gdr_copy_from_mapping(relay->handle, &seen, relay->va + 64, 8), 0);
	CHECK_EQ(seen, value);
	return NULL;
}

static void *relay_unmap(void *arg)
{
	struct relay *relay = arg;

	CHECK_EQ(gdr_unmap(relay->g, relay->handle, relay->va, MIB), 0);
	return NULL;
}

static void *relay_unpin(void *arg)
{
	struct relay *relay = arg;

	CHECK_EQ(gdr_unpin_buffer(relay->g, relay->handle), 0);
	return NULL;
}

static void *relay_close(void *arg)
{
	CHECK_EQ(gdr_close(((struct relay *)arg)->g), 0);
	return NULL;
}

static void each_step_in_another_thread(void)
{
	struct relay relay = { .buffer = gpu_alloc(MIB) };

	for (int i = 0; i < 20; i++) {
		thread_run(relay_open, &relay);
		thread_run(relay_pin, &relay);
		thread_run(relay_map, &relay);
		thread_run(relay_copy, &relay);
		thread_run(relay_unmap, &relay);
		thread_run(relay_unpin, &relay);
		thread_run(relay_close, &relay);
	}
	gpu_free(relay.buffer);
}

/* Two threads, one call, the same arguments, at the same moment. */
struct duel {
	pthread_barrier_t barrier;
	gdr_t g;
	gdr_mh_t handle;
	void *va;
	int rounds;
	int (*call)(struct duel *duel);
	int loser_rc;
	void (*prepare)(struct duel *duel);
	CUdeviceptr ptr;
	_Atomic int won, lost;
};

static void *fight(void *arg)
{
	struct duel *duel = arg;

	for (int i = 0; i < duel->rounds; i++) {
		int rc;

		if (pthread_barrier_wait(&duel->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			duel->prepare(duel);
		pthread_barrier_wait(&duel->barrier);
		rc = duel->call(duel);
		if (rc == 0)
			atomic_fetch_add(&duel->won, 1);
		else if (rc == duel->loser_rc)
			atomic_fetch_add(&duel->lost, 1);
	}
	return NULL;
}

static void hold_duel(struct duel *duel, int rounds)
{
	struct team team;

	duel->rounds = rounds;
	pthread_barrier_init(&duel->barrier, NULL, 2);
	team_start(&team, 2, fight, duel, 0);
	team_join(&team);
	pthread_barrier_destroy(&duel->barrier);
	CHECK_EQ(duel->won, rounds);
	CHECK_EQ(duel->lost, rounds);
}

static void prepare_pin(struct duel *duel)
{
	duel->handle = gpu_pin(duel->g, duel->ptr, GPU_PAGE_SIZE);
}

static int duel_unpin(struct duel *duel)
{
	return gdr_unpin_buffer(duel->g, duel->handle);
}

static void two_unpins(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	struct duel duel = { .g = gpu_open(), .ptr = buffer.ptr, .call = duel_unpin,
			     .prepare = prepare_pin, .loser_rc = EINVAL };

	hold_duel(&duel, api_rounds(20000));
	CHECK_EQ(gdr_close(duel.g), 0);
	gpu_free(buffer);
}

static void prepare_map(struct duel *duel)
{
	duel->va = gpu_map(duel->g, duel->handle, GPU_PAGE_SIZE);
}

static int duel_unmap(struct duel *duel)
{
	return gdr_unmap(duel->g, duel->handle, duel->va, GPU_PAGE_SIZE);
}

static void two_unmaps(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	struct duel duel = { .g = gpu_open(), .ptr = buffer.ptr, .call = duel_unmap,
			     .prepare = prepare_map, .loser_rc = EINVAL };

	prepare_pin(&duel);
	hold_duel(&duel, api_rounds(20000));
	CHECK_EQ(gdr_close(duel.g), 0);
	gpu_free(buffer);
}

static void prepare_unmapped(struct duel *duel)
{
	if (duel->va)
		CHECK_EQ(gdr_unmap(duel->g, duel->handle, duel->va, GPU_PAGE_SIZE), 0);
	duel->va = NULL;
}

static int duel_map(struct duel *duel)
{
	void *va = NULL;
	int rc = gdr_map(duel->g, duel->handle, &va, GPU_PAGE_SIZE);

	if (rc == 0)
		duel->va = va;
	else
		CHECK(va == NULL);
	return rc;
}

static void two_maps(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	struct duel duel = { .g = gpu_open(), .ptr = buffer.ptr, .call = duel_map,
			     .prepare = prepare_unmapped, .loser_rc = EAGAIN };

	prepare_pin(&duel);
	hold_duel(&duel, api_rounds(20000));
	CHECK_EQ(gdr_close(duel.g), 0);
	gpu_free(buffer);
}

static void prepare_session(struct duel *duel)
{
	duel->g = gpu_open();
	gpu_pin(duel->g, duel->ptr, GPU_PAGE_SIZE);
}

static int duel_close(struct duel *duel)
{
	return gdr_close(duel->g);
}

static void two_closes(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	struct duel duel = { .ptr = buffer.ptr, .call = duel_close,
			     .prepare = prepare_session, .loser_rc = EINVAL };

	hold_duel(&duel, api_rounds(5000));
	gpu_free(buffer);
}

/* Threads that pin, map, copy, unmap and unpin on one session that gets closed. */
struct user {
	struct team *team;
	_Atomic(gdr_t) *session;
	CUdeviceptr ptr;
	int wrong;
	int cycles;
};

static int live_once(gdr_t g, CUdeviceptr ptr)
{
	uint64_t value = 1, seen;
	gdr_mh_t handle;
	void *va;
	int rc;

	rc = gdr_pin_buffer(g, ptr, GPU_PAGE_SIZE, 0, 0, &handle);
	if (rc != 0)
		return rc;
	rc = gdr_map(g, handle, &va, GPU_PAGE_SIZE);
	if (rc == 0)
		rc = gdr_copy_to_mapping(handle, va, &value, 8);
	if (rc == 0)
		rc = gdr_copy_from_mapping(handle, &seen, va, 8);
	if (rc == 0)
		rc = gdr_unmap(g, handle, va, GPU_PAGE_SIZE);
	if (rc == 0)
		rc = gdr_unpin_buffer(g, handle);
	return rc;
}

static void *use_session(void *arg)
{
	struct user *user = arg;

	while (!atomic_load(&user->team->stop)) {
		int rc = live_once(atomic_load(user->session), user->ptr);

		if (rc != 0 && rc != EINVAL)
			user->wrong++;
		if (rc == 0)
			user->cycles++;
		else
			thread_nap(10);
	}
	return NULL;
}

static void close_while_others_pin(void)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	_Atomic(gdr_t) session = gpu_open();
	struct user user[4];
	struct team team;
	int fds = harness_count_fds(), cycles = 0;

	for (int i = 0; i < 4; i++)
		user[i] = (struct user){ &team, &session, buffer.ptr + i * GPU_PAGE_SIZE, 0, 0 };
	team_start(&team, 4, use_session, user, sizeof(user[0]));
	for (int i = 0; i < api_rounds(2000); i++) {
		thread_nap(i % 8 * 50);
		CHECK_EQ(gdr_close(atomic_load(&session)), 0);
		atomic_store(&session, gpu_open());
	}
	team_join(&team);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(user[i].wrong, 0);
		cycles += user[i].cycles;
	}
	CHECK(cycles > 0);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_EQ(gdr_close(atomic_load(&session)), 0);
	gpu_free(buffer);
}

/* R15, and GDRCopy's own suite: whole lives in several threads, one session. */
static void *live_many_times(void *arg)
{
	struct user *user = arg;

	for (int i = 0; i < user->cycles; i++)
		if (live_once(atomic_load(user->session), user->ptr) != 0)
			user->wrong++;
	return NULL;
}

static void run_lives(_Atomic(gdr_t) *first, _Atomic(gdr_t) *second, int threads)
{
	struct gpu_buffer buffer = gpu_alloc(MIB);
	struct user user[8];
	struct team team;

	for (int i = 0; i < threads; i++)
		user[i] = (struct user){ &team, i % 2 ? second : first, buffer.ptr, 0,
					 api_rounds(3000) };
	team_start(&team, threads, live_many_times, user, sizeof(user[0]));
	team_join(&team);
	for (int i = 0; i < threads; i++)
		CHECK_EQ(user[i].wrong, 0);
	gpu_free(buffer);
}

static void lives_on_one_session(void)
{
	_Atomic(gdr_t) session = gpu_open();

	run_lives(&session, &session, 8);
	CHECK_EQ(gdr_close(session), 0);
}

static void lives_on_two_sessions(void)
{
	_Atomic(gdr_t) first = gpu_open(), second = gpu_open();

	run_lives(&first, &second, 8);
	CHECK_EQ(gdr_close(first), 0);
	CHECK_EQ(gdr_close(second), 0);
}

/* Queries of a handle that another thread maps, unmaps and in the end unpins. */
struct query {
	struct team *team;
	struct gpu_mapping *mapping;
	int wrong;
};

static void *query_handle(void *arg)
{
	struct query *query = arg;
	const struct gpu_mapping *mapping = query->mapping;

	while (!atomic_load(&query->team->stop)) {
		gdr_info_t info;
		int flag, value, major, minor;
		int rc = gdr_get_info(mapping->g, mapping->handle, &info);

		if (rc == 0)
			query->wrong += info.va != mapping->buffer.ptr ||
					info.wc_mapping != info.mapped ||
					(info.mapping_type == GDR_MAPPING_TYPE_WC) != info.mapped;
		else
			query->wrong += rc != EINVAL;
		rc = gdr_get_callback_flag(mapping->g, mapping->handle, &flag);
		query->wrong += rc != 0 && rc != EINVAL;
		query->wrong += gdr_get_attribute(mapping->g, GDR_ATTR_USE_PERSISTENT_MAPPING,
						  &value) != 0;
		query->wrong += gdr_driver_get_version(mapping->g, &major, &minor) != 0;
	}
	return NULL;
}

static void queries_while_mapping(void)
{
	struct gpu_mapping mapping = { .buffer = gpu_alloc(MIB), .g = gpu_open() };
	struct query query[3];
	struct team team;

	mapping.handle = gpu_pin(mapping.g, mapping.buffer.ptr, MIB);
	for (int i = 0; i < 3; i++)
		query[i] = (struct query){ &team, &mapping, 0 };
	team_start(&team, 3, query_handle, query, sizeof(query[0]));
	for (int i = 0; i < api_rounds(2000); i++) {
		void *va = gpu_map(mapping.g, mapping.handle, MIB);

		CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, va, MIB), 0);
	}
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	thread_nap(1000);
	team_join(&team);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(query[i].wrong, 0);
	CHECK_EQ(gdr_close(mapping.g), 0);
	gpu_free(mapping.buffer);
}

/* The first gdr_open of a process, from many threads at once. */
static void *open_once(void *arg)
{
	_Atomic(gdr_t) *session = arg;

	atomic_store(session, gdr_open());
	return NULL;
}

static void many_first_opens(void)
{
	_Atomic(gdr_t) session[8];
	struct team team;

	team_start(&team, 8, open_once, session, sizeof(session[0]));
	team_join(&team);
	for (int i = 0; i < 8; i++) {
		for (int j = 0; j < i; j++)
			CHECK(session[i] != session[j]);
		CHECK_EQ(gdr_close(session[i]), 0);
	}
}

static const struct api_case cases[] = {
	{ "many_first_opens", many_first_opens, NULL },
	{ "each_step_in_another_thread", each_step_in_another_thread, NULL },
	{ "two_unpins", two_unpins, NULL },
	{ "two_unmaps", two_unmaps, NULL },
	{ "two_maps", two_maps, NULL },
	{ "two_closes", two_closes, NULL },
	{ "close_while_others_pin", close_while_others_pin, "GDRCOPY_DMA=0" },
	{ "lives_on_one_session", lives_on_one_session, NULL },
	{ "lives_on_two_sessions", lives_on_two_sessions, NULL },
	{ "queries_while_mapping", queries_while_mapping, NULL },
};

API_MAIN(cases)
