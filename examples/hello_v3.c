/* SPDX-License-Identifier: MIT */
/* cc -Iinclude/gdrcopy -Ibuild/emu examples/hello_v3.c -o build/hello_v3 -Lsrc/userspace -lgdrapi -Lbuild/emu -lcuda */
/* Version 3 in five calls: copies by handle, any pinned address, no mapping. */
#include <cuda.h>
#include <gdrapi.h>
#include <stdio.h>
#include <string.h>

#define SIZE 4096

static CUdeviceptr allocate(void)
{
	CUdeviceptr memory = 0;
	CUcontext context;
	CUdevice device;

	cuInit(0);
	cuDeviceGet(&device, 0);
	cuDevicePrimaryCtxRetain(&context, device);
	cuCtxSetCurrent(context);
	return cuMemAlloc(&memory, SIZE) == CUDA_SUCCESS ? memory : 0;
}

int main(void)
{
	const char text[] = "hello, GPU";
	CUdeviceptr gpu = allocate();
	char answer[sizeof(text)] = "";
	gdr_result_t result;
	uint64_t handle;
	gdr_t g;

	gdr_open(&g);					/* a session */
	gdr_pin_buffer(g, gpu, SIZE, 0, 0, &handle);	/* memory of device 0 */
	gdr_copy_from_host(g, handle, 0, text, sizeof(text));
	result = gdr_copy_to_host(g, handle, 0, answer, sizeof(answer));
	gdr_close(g);					/* unpins, too */

	/* A call that gets nothing from a failed one before it fails as well, so one test will do. */
	if (result != GDR_SUCCESS || strcmp(answer, text) != 0) {
		fprintf(stderr, "copy: %s; GDRCOPY_ENABLE_LOGGING=1 says why\n",
			gdr_strerror(result));
		return 1;
	}
	printf("the GPU says: %s\n", answer);
	return 0;
}
