/* SPDX-License-Identifier: MIT */
/*
 * Symptom: unmap did not return while a few dozen threads went on copying
 * through the handle, although all their copies were refused.
 *
 * A refused copy announced itself before it found the gate closed.  With more
 * threads than CPUs one of them was always preempted in between, so the
 * waiting side never saw the gate empty.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <stdlib.h>
#include <unistd.h>

struct knocker {
	struct team *team;
	gdr_mh_t handle;
	unsigned char *va;
};

static void *knock(void *arg)
{
	struct knocker *knocker = arg;
	uint64_t value = 1;

	while (!atomic_load_explicit(&knocker->team->stop, memory_order_relaxed))
		gdr_copy_to_mapping(knocker->handle, knocker->va, &value, sizeof(value));
	return NULL;
}

static void unmap_ends(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	const int threads = getenv("HARNESS_SLOW") ? 20 : 300;
	static struct team team;
	static struct knocker knocker[TEAM_MAX];

	for (int i = 0; i < threads; i++)
		knocker[i] = (struct knocker){ &team, mapping.handle, mapping.va + i * 64 };
	team_start(&team, threads, knock, knocker, sizeof(knocker[0]));
	thread_nap(10000);
	alarm(60);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, MIB), 0);
	team_join(&team);
	CHECK_EQ(gdr_close(mapping.g), 0);
	gpu_free(mapping.buffer);
}

static const struct api_case cases[] = {
	{ "unmap_ends", unmap_ends, NULL },
};

API_MAIN(cases)
