/* SPDX-License-Identifier: MIT */
/* Work beside a soak: large copies by CUDA to the device, from it and within it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "soak/soak.h"

#define LOAD_SIZE MIB(32)

struct load {
	struct machine *machine;
	pthread_t thread;
	atomic_bool over;
	uint64_t bytes;
	int (*to)(gdri_cu_ptr dst, const void *src, size_t size, void *stream);
	int (*from)(void *dst, gdri_cu_ptr src, size_t size, void *stream);
	int (*within)(gdri_cu_ptr dst, gdri_cu_ptr src, size_t size, void *stream);
	int (*synchronize)(void *stream);
	void *stream[2];
	gdri_cu_ptr device;
	void *pinned[2];
};

/* Two rounds are under way at any time, one on each stream. */
static void *run_load(void *arg)
{
	struct load *load = arg;

	must("cuCtxSetCurrent", load->machine->cuda.ctx_set_current(load->machine->context));
	for (unsigned turn = 0; !atomic_load(&load->over); turn++) {
		void *stream = load->stream[turn % 2];
		const gdri_cu_ptr half = load->device + turn % 2 * 2 * LOAD_SIZE;

		must("load", load->synchronize(stream));
		must("load", load->to(half, load->pinned[0], LOAD_SIZE, stream));
		must("load", load->within(half + LOAD_SIZE, half, LOAD_SIZE, stream));
		must("load", load->from(load->pinned[1], half, LOAD_SIZE, stream));
		load->bytes += 3 * LOAD_SIZE;
	}
	must("load", load->synchronize(load->stream[0]));
	must("load", load->synchronize(load->stream[1]));
	return NULL;
}

static void open_load(struct load *load)
{
	const unsigned non_blocking = 1;	/* CU_STREAM_NON_BLOCKING */
	int (*host_alloc)(void **, size_t, unsigned);
	int (*stream_create)(void **, unsigned);

	*(void **)&load->to = machine_find(load->machine, "cuMemcpyHtoDAsync_v2");
	*(void **)&load->from = machine_find(load->machine, "cuMemcpyDtoHAsync_v2");
	*(void **)&load->within = machine_find(load->machine, "cuMemcpyDtoDAsync_v2");
	*(void **)&load->synchronize = machine_find(load->machine, "cuStreamSynchronize");
	*(void **)&host_alloc = machine_find(load->machine, "cuMemHostAlloc");
	*(void **)&stream_create = machine_find(load->machine, "cuStreamCreate");
	must("cuMemAlloc", load->machine->cuda.mem_alloc(&load->device, 4 * LOAD_SIZE));
	for (unsigned i = 0; i < 2; i++) {
		must("cuMemHostAlloc", host_alloc(&load->pinned[i], LOAD_SIZE, 0));
		must("cuStreamCreate", stream_create(&load->stream[i], non_blocking));
	}
}

struct load *load_start(struct machine *machine)
{
	struct load *load = calloc(1, sizeof(*load));

	must("memory", !load);
	load->machine = machine;
	open_load(load);
	must("thread", pthread_create(&load->thread, NULL, run_load, load));
	return load;
}

/* CUDA's memory stays until the program's end. */
uint64_t load_stop(struct load *load)
{
	uint64_t bytes;

	atomic_store(&load->over, true);
	pthread_join(load->thread, NULL);
	bytes = load->bytes;
	free(load);
	return bytes;
}
