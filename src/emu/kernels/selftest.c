/* SPDX-License-Identifier: MIT */
/* The two kernels of tests/emu/selftest_ptx.h. */
#include <sched.h>

#include "kernels.h"

#define SELFTEST_PTX_HASH 0x430aa3fb8dc6a7c1ull

/* Adds 1 to each of count words: one thread a word. */
static CUresult add_one(struct emu_launch *launch)
{
	uint64_t threads = emu_launch_threads(launch);
	uint64_t count = launch->args[1];
	uint32_t *words;

	if (count > threads)
		count = threads;
	words = emu_kernel_pointer(launch, launch->args[0], count * sizeof(*words));
	if (!words)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t i = 0; i < count; i++)
		words[i]++;
	return CUDA_SUCCESS;
}

/* Waits until *flag is value, then stores value + 1 behind it. */
static CUresult wait_flag(struct emu_launch *launch)
{
	uint32_t value = (uint32_t)launch->args[1];
	uint32_t *flag = emu_kernel_pointer(launch, launch->args[0], 2 * sizeof(*flag));

	if (!flag)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	while (__atomic_load_n(&flag[0], __ATOMIC_ACQUIRE) != value)
		sched_yield();
	__atomic_store_n(&flag[1], value + 1, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

const struct emu_kernel emu_kernel_add_one = {
	.name = "add_one",
	.ptx_hash = SELFTEST_PTX_HASH,
	.arg_count = 2,
	.arg_sizes = { 8, 4 },
	.run = add_one,
};

const struct emu_kernel emu_kernel_wait_flag = {
	.name = "wait_flag",
	.ptx_hash = SELFTEST_PTX_HASH,
	.arg_count = 2,
	.arg_sizes = { 8, 4 },
	.run = wait_flag,
};
