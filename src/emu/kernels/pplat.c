/* SPDX-License-Identifier: MIT */
/*
 * The kernel of gdrcopy_pplat: tools/pplat/kernel_ptx.h has the text and the
 * protocol.  Two failures can be injected: GDRCOPY_EMU=fail=kernel makes it
 * never answer, fail=payload makes it store and expect wrong words.
 */
#include <sched.h>

#include "config.h"
#include "kernels.h"

#define PPLAT_PTX_HASH 0xbecc0b0d73758aa1ull

enum { ARG_GPU_FLAG, ARG_CPU_FLAG, ARG_PAYLOAD, ARG_SCRATCH, ARG_WORDS, ARG_DIRECTION, ARG_ROUNDS };

struct pplat {
	uint32_t *gpu_flag, *cpu_flag, *payload, *scratch;
	uint32_t words;
	int stores;	/* the kernel sends the payload instead of checking it */
	uint32_t error;	/* added to each word */
};

/* A flag that the CPU sent: the asked round, a later one, or the stop value. */
static uint32_t wait_round(const struct pplat *pplat, uint32_t round)
{
	uint32_t seen;

	for (;;) {
		seen = __atomic_load_n(pplat->gpu_flag, __ATOMIC_ACQUIRE);
		if (seen >= round)
			return seen;
		sched_yield();
	}
}

static void move_payload(const struct pplat *pplat, uint32_t round)
{
	for (uint32_t i = 0; i < pplat->words; i++) {
		uint32_t word = round + i + pplat->error;

		if (pplat->stores)
			__atomic_store_n(&pplat->payload[i], word, __ATOMIC_RELAXED);
		else if (__atomic_load_n(&pplat->payload[i], __ATOMIC_RELAXED) != word)
			__atomic_add_fetch(&pplat->scratch[1], 1, __ATOMIC_RELAXED);
	}
}

static CUresult find_memory(struct emu_launch *launch, struct pplat *pplat)
{
	pplat->words = (uint32_t)launch->args[ARG_WORDS];
	pplat->stores = launch->args[ARG_DIRECTION] == 1;
	pplat->gpu_flag = emu_kernel_pointer(launch, launch->args[ARG_GPU_FLAG], 4);
	pplat->cpu_flag = emu_kernel_pointer(launch, launch->args[ARG_CPU_FLAG], 4);
	pplat->scratch = emu_kernel_pointer(launch, launch->args[ARG_SCRATCH], 8);
	if (pplat->words)
		pplat->payload = emu_kernel_pointer(launch, launch->args[ARG_PAYLOAD],
						    (size_t)pplat->words * 4);
	if (!pplat->gpu_flag || !pplat->cpu_flag || !pplat->scratch)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	return pplat->words && !pplat->payload ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult pingpong(struct emu_launch *launch)
{
	uint32_t rounds = (uint32_t)launch->args[ARG_ROUNDS], round = 1;
	struct pplat pplat = { .words = 0 };
	CUresult ret = find_memory(launch, &pplat);
	int result;

	pplat.error = emu_config_injected("payload", 1, &result);
	if (ret == CUDA_SUCCESS && emu_config_injected("kernel", 1, &result))
		wait_round(&pplat, UINT32_MAX);	/* only the stop value is that large */
	while (ret == CUDA_SUCCESS && round <= rounds) {
		uint32_t seen = wait_round(&pplat, round);

		if (seen > rounds)
			break;
		move_payload(&pplat, round);
		__atomic_store_n(pplat.cpu_flag, round, __ATOMIC_RELEASE);
		round++;
	}
	return ret;
}

const struct emu_kernel emu_kernel_pplat = {
	.name = "pplat_pingpong",
	.ptx_hash = PPLAT_PTX_HASH,
	.arg_count = 7,
	.arg_sizes = { 8, 8, 8, 8, 4, 4, 4 },
	.run = pingpong,
};
