/* SPDX-License-Identifier: MIT */
/* cc -pthread -Iinclude -Ibuild/emu examples/threads.c -o build/threads -Lsrc/userspace -lgdrapi -Lbuild/emu -lcuda */
/*
 * One mapping, many threads, no lock: copies through one handle may run at the
 * same time as long as their ranges do not overlap.  A thread needs no CUDA
 * context to copy.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "gpu.h"

#define THREADS 4
#define SLICE (16 * 1024)

struct worker {
	pthread_t thread;
	gdr_mh_t handle;
	char *slice;		/* this thread's part of the mapping */
	char value;
	int rc;
};

static void *fill_slice(void *arg)
{
	struct worker *worker = arg;
	char bytes[256];

	memset(bytes, worker->value, sizeof(bytes));
	for (size_t at = 0; at < SLICE && worker->rc == 0; at += sizeof(bytes))
		worker->rc = gdr_copy_to_mapping(worker->handle, worker->slice + at, bytes,
						 sizeof(bytes));
	return NULL;
}

static int is_filled(CUdeviceptr slice, char value)
{
	static char seen[SLICE];

	CU(cuMemcpyDtoH(seen, slice, SLICE));
	for (size_t i = 0; i < SLICE; i++)
		if (seen[i] != value)
			return 0;
	return 1;
}

int main(void)
{
	struct worker workers[THREADS];
	struct gpu_memory memory;
	gdr_mh_t handle;
	int wrong = 0;
	void *map;
	gdr_t g;

	gpu_init();
	memory = gpu_alloc(THREADS * SLICE);
	g = gdr_open();
	if (gdr_pin_buffer(g, memory.start, THREADS * SLICE, 0, 0, &handle) != 0 ||
	    gdr_map(g, handle, &map, THREADS * SLICE) != 0) {
		fprintf(stderr, "no mapping; GDRCOPY_ENABLE_LOGGING=1 says why\n");
		return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.handle = handle,
			.slice = (char *)map + i * SLICE,
			.value = (char)('a' + i),
		};
		pthread_create(&workers[i].thread, NULL, fill_slice, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].rc != 0 ||
		    !is_filled(memory.start + (CUdeviceptr)(i * SLICE), workers[i].value))
			wrong++;
	}
	printf("%d threads, %d slices wrong\n", THREADS, wrong);
	gdr_close(g);
	CU(cuMemFree(memory.block));
	return wrong != 0;
}
