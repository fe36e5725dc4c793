/* SPDX-License-Identifier: MIT */
/*
 * From one GPU to the other, whole: open, pin, fill through a mapping, copy, look,
 * and give everything back.
 *
 * cc -I<prefix>/include/gdrcopy copy.c -L<prefix>/lib -lgdrapi -lcudart
 */
#include <cuda_runtime.h>
#include <string.h>

#include "check.h"

#define SIZE ((size_t)16 << 20)

struct buffer {
	void *memory;
	uint64_t handle;
};

static struct buffer make_buffer(gdr_t g, int device)
{
	struct buffer made;

	CUDA(cudaSetDevice(device));
	CUDA(cudaMalloc(&made.memory, SIZE));
	CUDA(cudaMemset(made.memory, 0, SIZE));
	CUDA(cudaDeviceSynchronize());
	GDR(gdr_pin_buffer(g, (uint64_t)(uintptr_t)made.memory, SIZE, 0, device, &made.handle));
	return made;
}

static void drop_buffer(gdr_t g, struct buffer buffer)
{
	GDR(gdr_unpin(g, buffer.handle));
	CUDA(cudaFree(buffer.memory));
}

/* Plain stores of the CPU. */
static void fill(gdr_t g, struct buffer buffer, const unsigned char *data)
{
	void *window;

	GDR(gdr_map(g, buffer.handle, &window, SIZE));
	memset(window, 0xff, SIZE);
	memcpy(window, data, SIZE);
	GDR(gdr_unmap(g, buffer.handle, window, SIZE));
}

/* What CUDA sees in [offset, offset + length) of the buffer. */
static int has(struct buffer buffer, const unsigned char *data, size_t offset, size_t length)
{
	unsigned char *seen = malloc(length);
	int same;

	CUDA(cudaMemcpy(seen, (char *)buffer.memory + offset, length, cudaMemcpyDeviceToHost));
	same = memcmp(seen, data, length) == 0;
	free(seen);
	return same;
}

int main(void)
{
	unsigned char *data = malloc(SIZE);
	struct buffer first, second;
	int whole, part;
	gdr_t g;

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 12) + 1);
	GDR(gdr_open(&g));
	first = make_buffer(g, 0);
	second = make_buffer(g, 1);

	fill(g, first, data);
	GDR(gdr_copy_to_device(g, first.handle, second.handle, 0, 0, SIZE));
	whole = has(second, data, 0, SIZE);

	GDR(gdr_copy_to_device(g, first.handle, second.handle, 4096, 65536, 8192));
	part = has(second, data + 4096, 65536, 8192) && has(second, data, 0, 65536);

	drop_buffer(g, first);
	drop_buffer(g, second);
	GDR(gdr_close(g));
	free(data);
	printf("all of it: %s, a part of it: %s\n", whole ? "right" : "wrong",
	       part ? "right" : "wrong");
	return whole && part ? 0 : 1;
}
