/* SPDX-License-Identifier: MIT */
/*
 * Symptom: a pin that had just succeeded was refused as "not a live pin" by
 * the next call, or the session's descriptor read as 0, now and then, when
 * another thread unpinned at the same moment.
 *
 * Records of handles lie on pages that go back to the kernel once all their
 * records are dead.  A record that was handed out but not yet published looked
 * dead, so the unpin of its last living neighbour threw the page away while
 * the pin was writing to it.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <pthread.h>

#define THREADS 4

struct worker {
	gdr_t g;
	CUdeviceptr ptr;
	int rounds;
	int lost;
};

static void *pin_and_unpin(void *arg)
{
	struct worker *worker = arg;
	gdr_info_t info;

	for (int i = 0; i < worker->rounds; i++) {
		gdr_mh_t handle;

		if (gdr_pin_buffer(worker->g, worker->ptr, GPU_PAGE_SIZE, 0, 0, &handle) != 0 ||
		    gdr_get_info(worker->g, handle, &info) != 0 ||
		    gdr_unpin_buffer(worker->g, handle) != 0)
			worker->lost++;
	}
	return NULL;
}

static void pins_survive_unpins_of_others(void)
{
	struct gpu_buffer buffer = gpu_alloc(GPU_PAGE_SIZE);
	gdr_t g = gpu_open();
	struct worker worker[THREADS];
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){ g, buffer.ptr, api_rounds(200000), 0 };
		REQUIRE_EQ(pthread_create(&thread[i], NULL, pin_and_unpin, &worker[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		CHECK_EQ(worker[i].lost, 0);
	}
	CHECK_EQ(gdr_close(g), 0);
	gpu_free(buffer);
}

static void *open_and_close(void *arg)
{
	struct worker *worker = arg;

	for (int i = 0; i < worker->rounds; i++) {
		gdr_t g = gdr_open();
		gdr_mh_t handle;

		if (!g || gdr_pin_buffer(g, worker->ptr, GPU_PAGE_SIZE, 0, 0, &handle) != 0 ||
		    gdr_close(g) != 0)
			worker->lost++;
	}
	return NULL;
}

static void sessions_survive_closes_of_others(void)
{
	struct gpu_buffer buffer = gpu_alloc(GPU_PAGE_SIZE);
	struct worker worker[THREADS];
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){ NULL, buffer.ptr, api_rounds(10000), 0 };
		REQUIRE_EQ(pthread_create(&thread[i], NULL, open_and_close, &worker[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		CHECK_EQ(worker[i].lost, 0);
	}
	gpu_free(buffer);
}

static const struct api_case cases[] = {
	{ "pins_survive_unpins_of_others", pins_survive_unpins_of_others, NULL },
	{ "sessions_survive_closes_of_others", sessions_survive_closes_of_others, NULL },
};

API_MAIN(cases)
