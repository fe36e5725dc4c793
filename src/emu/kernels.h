/* SPDX-License-Identifier: MIT */
/* How a kernel of ours becomes a C function of the emulator. */
#ifndef EMU_KERNELS_H
#define EMU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda.h"

/*
 * The emulator runs no PTX.  It knows the texts that this project's programs
 * load, by their hash, and has a C function for each kernel in them.  To add
 * one:
 *
 *  1. write kernels/NAME.c with a function of type emu_kernel_fn and
 *     `const struct emu_kernel emu_kernel_NAME = { ... };`
 *  2. list it in kernels/table.c and kernels/NAME.c in sources.mk;
 *  3. ptx_hash is emu_kernel_hash() of the exact text that the program passes
 *     to cuModuleLoadData.  An unknown text is answered NO_BINARY_FOR_GPU, and
 *     cuModuleLoadDataEx writes its hash into CU_JIT_ERROR_LOG_BUFFER.  The
 *     test tests/emu/kernels.c prints the hash of a file: `kernels hash FILE`.
 *
 * The function runs once for a launch, in a thread of its own, and does the
 * work of all blocks and threads.  It may wait for memory to change, as the
 * real kernel does.  What it returns other than CUDA_SUCCESS sticks to the
 * context, as a real kernel's fault does.
 */
#define EMU_KERNEL_MAX_ARGS 16

struct emu_launch {
	unsigned grid[3], block[3];
	unsigned shared;
	unsigned arg_count;
	uint64_t args[EMU_KERNEL_MAX_ARGS];	/* by value, zero-extended */
	struct emu_block **held;		/* memory that pointers reach */
	size_t held_count;
};

typedef CUresult (*emu_kernel_fn)(struct emu_launch *launch);

struct emu_kernel {
	const char *name;		/* the .entry in the PTX */
	uint64_t ptx_hash;
	unsigned arg_count;
	unsigned char arg_sizes[EMU_KERNEL_MAX_ARGS];	/* bytes: 1, 2, 4 or 8 */
	emu_kernel_fn run;
};

/* Ends with NULL.  Several kernels may have the hash of one text. */
extern const struct emu_kernel *const emu_kernel_table[];

/* FNV-1a, 64 bits, over the bytes of the text without its NUL. */
uint64_t emu_kernel_hash(const char *ptx, size_t length);

/*
 * Where the kernel reaches [address, address + size) of device, managed or
 * page-locked memory; NULL when it cannot: return CUDA_ERROR_ILLEGAL_ADDRESS.
 * The memory stays until the launch ends.  Use __atomic accesses for words
 * that somebody else reads or writes meanwhile.
 */
void *emu_kernel_pointer(struct emu_launch *launch, uint64_t address, size_t size);

/* Threads of the launch: blocks times threads in each. */
static inline uint64_t emu_launch_threads(const struct emu_launch *launch)
{
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++)
		threads *= (uint64_t)launch->grid[i] * launch->block[i];
	return threads;
}

#endif
