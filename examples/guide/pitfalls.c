/* SPDX-License-Identifier: MIT */
/*
 * pitfalls open|argument|reach|effect: what goes wrong most often, and how it shows.
 * GDRCOPY_ENABLE_LOGGING=1 adds the cause and the remedy of each.
 *
 * cc -I<prefix>/include/gdrcopy pitfalls.c -L<prefix>/lib -lgdrapi -lcudart
 */
#include <cuda_runtime.h>
#include <string.h>

#include "check.h"

#define SIZE ((size_t)1 << 20)

static void show(const char *what, gdr_result_t result)
{
	printf("%s: %d, %s\n", what, (int)result, gdr_strerror(result));
}

static uint64_t allocate(int device)
{
	void *memory;

	CUDA(cudaSetDevice(device));
	CUDA(cudaMalloc(&memory, SIZE));
	return (uint64_t)(uintptr_t)memory;
}

/* Without a driver, a module or the right to use them. */
static void open_without_device(void)
{
	gdr_t g;

	show("open", gdr_open(&g));
}

static void wrong_arguments(void)
{
	static char host[SIZE];
	uint64_t memory = allocate(0), handle;
	gdr_t g;

	GDR(gdr_open(&g));
	show("host memory",
	     gdr_pin_buffer(g, (uint64_t)(uintptr_t)host, SIZE, 0, 0, &handle));
	show("odd size", gdr_pin_buffer(g, memory, SIZE - 100, 0, 0, &handle));
	show("large device id", gdr_pin_buffer(g, memory, SIZE, 0, 99, &handle));
	show("rounded up", gdr_pin_buffer(g, memory, (SIZE - 100 + 4095) / 4096 * 4096, 0, 0,
					  &handle));
	GDR(gdr_unpin(g, handle));
	GDR(gdr_close(g));
}

/* Two GPUs without a way between them. */
static void out_of_reach(void)
{
	uint64_t from, to;
	gdr_t g;

	GDR(gdr_open(&g));
	GDR(gdr_pin_buffer(g, allocate(0), SIZE, 0, 0, &from));
	GDR(gdr_pin_buffer(g, allocate(1), SIZE, 0, 1, &to));
	show("copy", gdr_copy_to_device(g, from, to, 0, 0, SIZE));
	GDR(gdr_unpin(g, from));
	GDR(gdr_unpin(g, to));
	GDR(gdr_close(g));
}

static void show_status(gdr_t g, uint64_t handle, const char *when)
{
	gdr_status_t status = { .size = sizeof(status) };

	GDR(gdr_query(g, handle, &status));
	printf("%s: mapped %u, freed %u\n", when, status.mapped, status.freed);
}

/* What was written shows nowhere: the mapping is not, or not any more, one of the memory. */
static void without_effect(void)
{
	uint64_t memory = allocate(0), handle;
	char seen[8] = "";
	void *window;
	gdr_t g;

	GDR(gdr_open(&g));
	GDR(gdr_pin_buffer(g, memory, SIZE, 0, 0, &handle));
	GDR(gdr_map(g, handle, &window, SIZE));
	memcpy(window, "written", 8);
	GDR(gdr_flush(g));
	CUDA(cudaMemcpy(seen, (void *)(uintptr_t)memory, 8, cudaMemcpyDeviceToHost));
	printf("the GPU has: %s\n", seen);
	show_status(g, handle, "as it should be");
	GDR(gdr_unmap(g, handle, window, SIZE));
	show_status(g, handle, "after unmap");
	show("unmap again", gdr_unmap(g, handle, window, SIZE));
	CUDA(cudaFree((void *)(uintptr_t)memory));
	show_status(g, handle, "after free");
	GDR(gdr_unpin(g, handle));
	GDR(gdr_close(g));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} pitfalls[] = {
		{ "open", open_without_device },
		{ "argument", wrong_arguments },
		{ "reach", out_of_reach },
		{ "effect", without_effect },
	};

	for (size_t i = 0; argc == 2 && i < sizeof(pitfalls) / sizeof(pitfalls[0]); i++)
		if (strcmp(argv[1], pitfalls[i].name) == 0) {
			pitfalls[i].run();
			return 0;
		}
	fprintf(stderr, "usage: %s open|argument|reach|effect\n", argv[0]);
	return 2;
}
