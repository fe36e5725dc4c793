/* SPDX-License-Identifier: MIT */
/* cc -Iinclude -Ibuild/emu examples/error_handling.c -o build/error_handling -Lsrc/userspace -lgdrapi -Lbuild/emu -lcuda */
/*
 * What failures look like: calls return a positive errno value, strerror()
 * names it, and with GDRCOPY_ENABLE_LOGGING set one line on stderr says what
 * to do.  Clean-up after a failure is short: gdr_close releases what is left.
 */
#include <errno.h>
#include <string.h>

#include "gpu.h"

static int failures;

/* Each mistake below must give exactly this error. */
static void expect(const char *mistake, int rc, int expected)
{
	printf("%-44s %s\n", mistake, strerror(rc));
	if (rc != expected)
		failures++;
}

static void make_mistakes(gdr_t g, const struct gpu_memory *memory)
{
	gdr_mh_t handle, unaligned;
	void *map, *again;
	char host[16] = "";

	expect("pin: host memory", gdr_pin_buffer(g, (unsigned long)host, 16, 0, 0, &handle),
	       EINVAL);
	expect("pin: no bytes", gdr_pin_buffer(g, memory->start, 0, 0, 0, &handle), EINVAL);
	expect("pin: nowhere to put the handle", gdr_pin_buffer(g, memory->start, 16, 0, 0, NULL),
	       EINVAL);

	expect("pin: not at a GPU page (allowed)",
	       gdr_pin_buffer(g, memory->start + 8, 8, 0, 0, &unaligned), 0);
	expect("map: not at a GPU page", gdr_map(g, unaligned, &map, 8), EINVAL);

	expect("pin", gdr_pin_buffer(g, memory->start, GPU_PAGE_SIZE, 0, 0, &handle), 0);
	expect("map: more than was pinned", gdr_map(g, handle, &map, 2 * GPU_PAGE_SIZE), EINVAL);
	expect("copy: not mapped", gdr_copy_to_mapping(handle, host, host, 16), EINVAL);
	expect("map", gdr_map(g, handle, &map, GPU_PAGE_SIZE), 0);
	expect("map: a second time", gdr_map(g, handle, &again, GPU_PAGE_SIZE), EAGAIN);
	expect("copy: arguments swapped", gdr_copy_to_mapping(handle, host, map, 16), EINVAL);
	expect("copy: past the end",
	       gdr_copy_to_mapping(handle, (char *)map + GPU_PAGE_SIZE - 8, host, 16), EINVAL);

	expect("unpin", gdr_unpin_buffer(g, handle), 0);
	expect("unpin: a second time", gdr_unpin_buffer(g, handle), EINVAL);
}

int main(void)
{
	struct gpu_memory memory;
	gdr_t g;

	g = gdr_open();
	if (!g) {
		/* Usual on machines without a GPU: go on without, and say nothing. */
		fprintf(stderr, "no direct access; GDRCOPY_ENABLE_LOGGING=1 says why\n");
		return 1;
	}
	gpu_init();
	memory = gpu_alloc(GPU_PAGE_SIZE);
	make_mistakes(g, &memory);
	expect("close", gdr_close(g), 0);
	expect("close: a second time", gdr_close(g), EINVAL);
	CU(cuMemFree(memory.block));
	return failures != 0;
}
