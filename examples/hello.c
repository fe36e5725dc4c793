/* SPDX-License-Identifier: MIT */
/* cc -Iinclude -Ibuild/emu examples/hello.c -o build/hello -Lsrc/userspace -lgdrapi -Lbuild/emu -lcuda */
/* The five-line program: the CPU writes into GPU memory, and the GPU gives it back. */
#include <cuda.h>
#include <gdrapi.h>
#include <stdio.h>

/* A GPU page, at the start of a GPU page: only such memory can be mapped. */
static CUdeviceptr allocate_page(void)
{
	CUdeviceptr memory = 0;
	CUcontext context;
	CUdevice device;

	cuInit(0);
	cuDeviceGet(&device, 0);
	cuDevicePrimaryCtxRetain(&context, device);
	cuCtxSetCurrent(context);
	if (cuMemAlloc(&memory, 2 * GPU_PAGE_SIZE) != CUDA_SUCCESS)
		return 0;
	return (memory + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
}

int main(void)
{
	const char text[] = "hello, GPU";
	CUdeviceptr gpu = allocate_page();
	char answer[sizeof(text)];
	gdr_mh_t handle;
	void *map;
	int rc;

	gdr_t g = gdr_open();					/* a session */
	gdr_pin_buffer(g, gpu, GPU_PAGE_SIZE, 0, 0, &handle);	/* hold the GPU page */
	gdr_map(g, handle, &map, GPU_PAGE_SIZE);		/* show it to the CPU */
	rc = gdr_copy_to_mapping(handle, map, text, sizeof(text));
	gdr_close(g);						/* unmaps and unpins, too */

	/* A call that gets nothing from a failed one before it fails as well, so one test will do. */
	if (rc != 0 || cuMemcpyDtoH(answer, gpu, sizeof(answer)) != CUDA_SUCCESS) {
		fprintf(stderr, "failed; GDRCOPY_ENABLE_LOGGING=1 says why\n");
		return 1;
	}
	printf("the GPU says: %s\n", answer);
	return 0;
}
