/* SPDX-License-Identifier: MIT */
/*
 * Threads that are cancelled: no call of the library is a cancellation point,
 * not even one that logs or waits, so none ends with a lock held or inside a gate.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART ((size_t)65536)

/* What one thread does; each step is a call, or a few that belong together. */
struct life {
	gdr_t shared;		/* session that all threads use */
	struct gpu_buffer buffer;
	const struct gpu_mapping *mapping;	/* of the shared session, stays */
	size_t part;		/* offset of what this thread copies to and from */
	gdr_t own;
	gdr_mh_t handle;
	void *va;
};

static void step_open(struct life *life)
{
	life->own = gdr_open();
}

static void step_pin(struct life *life)
{
	gdr_pin_buffer(life->shared, life->buffer.ptr, MIB, 0, 0, &life->handle);
}

static void step_map(struct life *life)
{
	gdr_map(life->shared, life->handle, &life->va, MIB);
}

static void step_ask(struct life *life)
{
	gdr_info_t info;
	int a, b;

	gdr_get_info(life->shared, life->handle, &info);
	gdr_get_callback_flag(life->shared, life->handle, &a);
	gdr_driver_get_version(life->shared, &a, &b);
	gdr_get_attribute(life->shared, GDR_ATTR_USE_PERSISTENT_MAPPING, &a);
}

static void step_copy(struct life *life)
{
	unsigned char host[PART] = { 1 };

	gdr_copy_to_mapping(life->handle, (char *)life->va + life->part, host, 8);
	gdr_copy_to_mapping(life->handle, (char *)life->va + life->part, host, PART);
	gdr_copy_from_mapping(life->mapping->handle, host, life->mapping->va + life->part, PART);
}

/* Each logs a line, some of them inside a gate or a lock. */
static void step_fail(struct life *life)
{
	gdr_mh_t none = { 12345 }, handle;
	char host[8];
	void *va;
	int a;

	gdr_pin_buffer(life->shared, 4096, 10, 0, 0, &handle);
	gdr_map(life->shared, life->mapping->handle, &va, MIB);
	gdr_unmap(life->shared, life->mapping->handle, host, MIB);
	gdr_unpin_buffer(life->shared, none);
	gdr_copy_to_mapping(none, host, host, 8);
	gdr_copy_to_mapping(life->mapping->handle, host, host, 8);
	gdr_copy_from_mapping(life->mapping->handle, NULL, life->mapping->va, 8);
	gdr_get_attribute(life->shared, GDR_ATTR_MAX, &a);
	gdr_close((gdr_t)host);
}

static void step_unmap(struct life *life)
{
	gdr_unmap(life->shared, life->handle, life->va, MIB);
}

static void step_unpin(struct life *life)
{
	gdr_unpin_buffer(life->shared, life->handle);
}

static void step_close(struct life *life)
{
	gdr_mh_t left;

	gdr_pin_buffer(life->own, life->buffer.ptr, MIB, 0, 0, &left);
	gdr_close(life->own);
}

static void (*const steps[])(struct life *life) = {
	step_open, step_pin, step_map, step_ask, step_copy, step_fail, step_unmap, step_unpin,
	step_close
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* Log lines are the cancellation points that the calls would have; nobody reads them. */
static void log_to_nowhere(void)
{
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	REQUIRE(null >= 0);
	dup2(null, STDERR_FILENO);
	close(null);
}

static void live(struct life *life)
{
	for (size_t i = 0; i < STEPS; i++)
		steps[i](life);
}

/* A session that anybody left something held in makes this wait for ever. */
static void check_others_go_on(struct life life)
{
	alarm(60);
	live(&life);
	CHECK(life.own != NULL);
	CHECK(life.handle.h != 0);
	CHECK(life.va != NULL);
}

struct request {
	struct life life;
	size_t step;
	int returned;
};

/* The request is there before the call, so a cancellation point inside would act on it. */
static void *call_with_request_pending(void *arg)
{
	struct request *request = arg;

	for (size_t i = 0; i < STEPS; i++) {
		if (i == request->step)
			pthread_cancel(pthread_self());
		steps[i](&request->life);
		if (i == request->step)
			request->returned++;
	}
	pthread_testcancel();
	return NULL;
}

static void no_call_is_a_cancellation_point(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct life life = { mapping.g, mapping.buffer, &mapping, 0, NULL, { 0 }, NULL };

	log_to_nowhere();
	for (size_t i = 0; i < STEPS; i++) {
		struct request request = { life, i, 0 };
		pthread_t thread;
		void *result;

		REQUIRE_EQ(pthread_create(&thread, NULL, call_with_request_pending, &request), 0);
		pthread_join(thread, &result);
		if (!CHECK_EQ(request.returned, 1))
			printf("# cancelled in step %zu\n", i);
		/* Put off, not lost. */
		CHECK(result == PTHREAD_CANCELED);
		check_others_go_on(life);
	}
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void *live_until_cancelled(void *arg)
{
	struct life life = *(struct life *)arg;

	for (;;) {
		live(&life);
		pthread_testcancel();
	}
	return NULL;
}

static void others_go_on_after_cancellations(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct life life = { mapping.g, mapping.buffer, &mapping, 0, NULL, { 0 }, NULL };

	log_to_nowhere();
	for (int i = 0; i < api_rounds(400); i++) {
		struct life lives[2] = { life, life };
		pthread_t threads[2];

		for (int k = 0; k < 2; k++) {
			lives[k].part = (size_t)k * PART;
			REQUIRE_EQ(pthread_create(&threads[k], NULL, live_until_cancelled,
						  &lives[k]), 0);
		}
		thread_nap(i % 50 * 20);
		for (int k = 0; k < 2; k++)
			pthread_cancel(threads[k]);
		alarm(60);
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
		check_others_go_on(life);
	}
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* The thread's own setting is what it was. */
static void state_is_kept(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct life life = { mapping.g, mapping.buffer, &mapping, 0, NULL, { 0 }, NULL };
	int state = -1;

	log_to_nowhere();
	live(&life);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
	live(&life);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	CHECK_EQ(state, PTHREAD_CANCEL_DISABLE);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

#define SETTINGS "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=1 "
#define BY_DMA SETTINGS "GDRCOPY_DMA=min=4096"
#define BY_CPU SETTINGS "GDRCOPY_DMA=0"

static const struct api_case cases[] = {
	{ "no_call_is_a_cancellation_point", no_call_is_a_cancellation_point, BY_DMA },
	{ "others_go_on_after_cancellations", others_go_on_after_cancellations, BY_DMA },
	{ "others_go_on_after_cancellations_cpu", others_go_on_after_cancellations, BY_CPU },
	{ "state_is_kept", state_is_kept, BY_DMA },
};

API_MAIN(cases)
