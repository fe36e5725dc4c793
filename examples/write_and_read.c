/* SPDX-License-Identifier: MIT */
/* cc -Iinclude -Ibuild/emu examples/write_and_read.c -o build/write_and_read -Lsrc/userspace -lgdrapi -Lbuild/emu -lcuda */
/*
 * The mapping is the GPU buffer: what the CPU stores there, CUDA sees at the
 * device address, and the reverse.  Three ways to move bytes: copy calls,
 * plain stores and loads, and a part of an existing allocation.
 */
#include <stdint.h>
#include <string.h>

#include "gpu.h"

#define SIZE (4 * GPU_PAGE_SIZE)

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s: failed; GDRCOPY_ENABLE_LOGGING=1 says why\n", what);
		exit(1);
	}
	printf("%s: ok\n", what);
}

/* Copy calls: the right instructions and fences for this CPU and mapping. */
static void use_copies(gdr_mh_t handle, char *map, CUdeviceptr gpu)
{
	char sent[1000], seen[1000];

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7);
	check(gdr_copy_to_mapping(handle, map + 24, sent, sizeof(sent)) == 0, "copy to the mapping");
	CU(cuMemcpyDtoH(seen, gpu + 24, sizeof(seen)));
	check(memcmp(sent, seen, sizeof(sent)) == 0, "CUDA sees the bytes");

	CU(cuMemsetD8(gpu, 0x5a, sizeof(seen)));
	CU(cuCtxSynchronize());
	check(gdr_copy_from_mapping(handle, seen, map, sizeof(seen)) == 0, "copy from the mapping");
	check(seen[0] == 0x5a && seen[999] == 0x5a, "the CPU sees CUDA's bytes");
}

/*
 * Plain stores work as well.  They may wait in the CPU's write-combining
 * buffers: a copy call or a store fence sends them off, and a load through the
 * mapping waits until they have arrived.
 */
static void use_pointer(char *map, CUdeviceptr gpu)
{
	volatile uint32_t *word = (volatile uint32_t *)map;
	uint32_t seen;

	word[0] = 0x12345678;
	check(word[0] == 0x12345678, "a store is read back by a load");
	CU(cuMemcpyDtoH(&seen, gpu, sizeof(seen)));
	check(seen == 0x12345678, "CUDA sees the store");
}

/*
 * An address in the middle of an allocation: pin from the page boundary below
 * it, and add the distance to the mapping's pointer.
 */
static void use_inner_address(gdr_t g, CUdeviceptr address)
{
	const CUdeviceptr page = address & GPU_PAGE_MASK;
	const size_t offset = address - page;
	gdr_mh_t handle;
	uint64_t value = 42, seen;
	void *map;

	check(gdr_pin_buffer(g, page, offset + sizeof(value), 0, 0, &handle) == 0, "pin the page");
	check(gdr_map(g, handle, &map, offset + sizeof(value)) == 0, "map it");
	check(gdr_copy_to_mapping(handle, (char *)map + offset, &value, sizeof(value)) == 0,
	      "write at the address");
	CU(cuMemcpyDtoH(&seen, address, sizeof(seen)));
	check(seen == value, "the bytes are there");
	check(gdr_unmap(g, handle, map, offset + sizeof(value)) == 0, "unmap");
	check(gdr_unpin_buffer(g, handle) == 0, "unpin");
}

int main(void)
{
	struct gpu_memory memory;
	gdr_mh_t handle;
	void *map;
	gdr_t g;

	gpu_init();
	memory = gpu_alloc(SIZE);
	g = gdr_open();
	check(g != NULL, "open");
	check(gdr_pin_buffer(g, memory.start, SIZE, 0, 0, &handle) == 0, "pin");
	check(gdr_map(g, handle, &map, SIZE) == 0, "map");
	use_copies(handle, map, memory.start);
	use_pointer(map, memory.start);
	use_inner_address(g, memory.start + GPU_PAGE_SIZE + 4096 + 8);
	check(gdr_unmap(g, handle, map, SIZE) == 0, "unmap");
	check(gdr_unpin_buffer(g, handle) == 0, "unpin");
	check(gdr_close(g) == 0, "close");
	CU(cuMemFree(memory.block));
	return 0;
}
