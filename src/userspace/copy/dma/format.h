/* SPDX-License-Identifier: MIT */
/*
 * What the library writes into a channel: ring entries and method words.
 *
 * Numbers from the class headers of NVIDIA's open kernel modules: host methods
 * and ring entries clc46f.h (Turing) to clca6f.h (Blackwell), copy methods
 * clc5b5.h to clcab5.h; the ones used here are the same in all of them.  The
 * emulated channel (src/emu/) checks them against a list of its own.
 */
#ifndef GDRI_COPY_DMA_FORMAT_H
#define GDRI_COPY_DMA_FORMAT_H

#include <stdint.h>

/* GP_ENTRY: address bits 39:2, MAIN level, length in words from bit 42 on. */
static inline uint64_t gdri_dma_ring_entry(uint64_t address, uint32_t words)
{
	return (address & UINT64_C(0xfffffffffc)) | (uint64_t)words << 42;
}

/* Header of `count` words for methods from `method` on, one after the other. */
static inline uint32_t gdri_dma_methods(unsigned subchannel, uint32_t method, unsigned count)
{
	return 1u << 29 | count << 16 | subchannel << 13 | method >> 2;
}

enum {
	GDRI_DMA_HOST_SUBCHANNEL = 0,
	GDRI_DMA_COPY_SUBCHANNEL = 4,	/* cla06fsubch.h: where copy objects belong */

	GDRI_DMA_SET_OBJECT = 0x000,
	/* Host: SEM_ADDR_LO, SEM_ADDR_HI, SEM_PAYLOAD_LO, SEM_PAYLOAD_HI, SEM_EXECUTE */
	GDRI_DMA_SEM_ADDR_LO = 0x05c,
	GDRI_DMA_SEM_RELEASE = 1,
	GDRI_DMA_SEM_RELEASE_WFI = 1 << 20,	/* wait until the engine is idle */

	/* Copy: SET_SEMAPHORE_A (high), _B (low), _PAYLOAD */
	GDRI_DMA_SET_SEMAPHORE_A = 0x240,
	/* OFFSET_IN_UPPER, _LOWER, OFFSET_OUT_UPPER, _LOWER */
	GDRI_DMA_OFFSET_IN_UPPER = 0x400,
	/* LINE_LENGTH_IN (bytes), LINE_COUNT */
	GDRI_DMA_LINE_LENGTH_IN = 0x418,

	GDRI_DMA_LAUNCH = 0x300,
	GDRI_DMA_LAUNCH_NO_DATA = 0,
	GDRI_DMA_LAUNCH_PIPELINED = 1,
	GDRI_DMA_LAUNCH_NON_PIPELINED = 2,	/* waits for earlier launches */
	GDRI_DMA_LAUNCH_FLUSH = 1 << 2,		/* of system scope */
	GDRI_DMA_LAUNCH_SEMAPHORE = 1 << 3,	/* release of one word */
	GDRI_DMA_LAUNCH_PITCH = 1 << 7 | 1 << 8
};

#endif
