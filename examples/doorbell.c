/* SPDX-License-Identifier: MIT */
/* cc -pthread -Iinclude -Ibuild/emu examples/doorbell.c -o build/doorbell -Lsrc/userspace -lgdrapi -Lbuild/emu -lcuda */
/*
 * A message to the GPU: payload first, then a flag that says "it is there".
 * This is what the mapping is for: a few hundred bytes and a flag reach the
 * GPU in less time than a CUDA copy takes to start.
 *
 * Two rules make it right.  Each copy call hands its bytes to the bus before
 * those of the next one, so the payload is there when the flag is.  And an
 * aligned copy of 4 bytes is one store, so nobody sees half a flag.
 *
 * The receiver would be a kernel that polls the flag.  Here it is a thread
 * that lets the GPU's copy engine read flag and payload, so that no compiler
 * for GPU code is needed.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "gpu.h"

#define ROUNDS 200
#define PAYLOAD 512

struct mailbox {
	uint32_t flag;
	uint32_t unused[15];	/* the flag has a cache line to itself */
	uint8_t payload[PAYLOAD];
};

static CUdeviceptr box_on_gpu;
static volatile uint32_t taken;	/* the receiver's answer: round finished */
static int wrong;

static void *receive(void *context)
{
	uint8_t payload[PAYLOAD], expected[PAYLOAD];
	uint32_t flag;

	CU(cuCtxSetCurrent(context));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		do
			CU(cuMemcpyDtoH(&flag, box_on_gpu, sizeof(flag)));
		while (flag != round);
		CU(cuMemcpyDtoH(payload, box_on_gpu + offsetof(struct mailbox, payload), PAYLOAD));
		memset(expected, (int)(round & 0xff), PAYLOAD);
		wrong += memcmp(payload, expected, PAYLOAD) != 0;
		__atomic_store_n(&taken, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int send_round(gdr_mh_t handle, struct mailbox *box, uint32_t round)
{
	uint8_t payload[PAYLOAD];
	int rc;

	memset(payload, (int)(round & 0xff), PAYLOAD);
	rc = gdr_copy_to_mapping(handle, box->payload, payload, PAYLOAD);
	if (rc == 0)
		rc = gdr_copy_to_mapping(handle, &box->flag, &round, sizeof(round));
	while (rc == 0 && __atomic_load_n(&taken, __ATOMIC_ACQUIRE) != round)
		;
	return rc;
}

int main(void)
{
	struct gpu_memory memory;
	CUcontext context;
	pthread_t receiver;
	gdr_mh_t handle;
	int rc = 0;
	void *map;
	gdr_t g;

	gpu_init();
	CU(cuCtxGetCurrent(&context));
	memory = gpu_alloc(sizeof(struct mailbox));
	CU(cuMemsetD8(memory.start, 0, sizeof(struct mailbox)));
	CU(cuCtxSynchronize());
	box_on_gpu = memory.start;
	g = gdr_open();
	if (gdr_pin_buffer(g, memory.start, sizeof(struct mailbox), 0, 0, &handle) != 0 ||
	    gdr_map(g, handle, &map, sizeof(struct mailbox)) != 0) {
		fprintf(stderr, "no mapping; GDRCOPY_ENABLE_LOGGING=1 says why\n");
		return 1;
	}
	pthread_create(&receiver, NULL, receive, context);
	for (uint32_t round = 1; round <= ROUNDS && rc == 0; round++)
		rc = send_round(handle, map, round);
	if (rc != 0) {
		fprintf(stderr, "copy: %s\n", strerror(rc));
		return 1;
	}
	pthread_join(receiver, NULL);
	printf("%d messages, %d of them wrong\n", ROUNDS, wrong);
	gdr_close(g);
	CU(cuMemFree(memory.block));
	return wrong != 0;
}
