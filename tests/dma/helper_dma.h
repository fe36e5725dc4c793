/* SPDX-License-Identifier: MIT */
/* The DMA engine on emulated GPUs, as core would use it. */
#ifndef TESTS_DMA_HELPER_DMA_H
#define TESTS_DMA_HELPER_DMA_H

#include "copy/dma/dma.h"
#include "copy/dma/port_emu.h"
#include "gdrcopy_emu.h"
#include "harness.h"

struct dma_rig {
	const struct gdrcopy_emu_entry *entry;
	struct gdri_log log;
	struct gdri_dma_port_emu port;
	struct gdri_dma *dma;
};

/* Device memory with its target and a mapping for the CPU. */
struct dma_memory {
	struct gdrcopy_emu_range range;
	uint64_t ptr;
	size_t size;
	uint8_t *cpu;
	struct gdri_dma_target *target;
};

/* Options of the library's own session, but no calibration: it would take tickets. */
struct gdri_dma_options dma_options(void);

/* Starts CUDA in this process and makes an engine; the process stays with these settings. */
void dma_open(struct dma_rig *rig, const struct gdri_dma_options *options);
void dma_close(struct dma_rig *rig);

/* Memory that is not attached yet; the attached one; the end of either. */
void dma_alloc(struct dma_rig *rig, int device, size_t size, struct dma_memory *memory);
struct gdri_dma_memory dma_describe(const struct dma_memory *memory);
void dma_attach(struct dma_rig *rig, int device, size_t size, struct dma_memory *memory);
void dma_free(struct dma_rig *rig, struct dma_memory *memory);

/* Whole pages of host memory. */
uint8_t *dma_pages(size_t size);

/* Bytes that differ from place to place and from seed to seed. */
void dma_fill(void *bytes, size_t size, uint32_t seed);

/* Whether all of them have this value. */
bool dma_all(const void *bytes, size_t size, uint8_t value);

/* xorshift32, for sizes and offsets. */
uint32_t dma_random(uint32_t *state);

/* A smaller number of turns under sanitizers and valgrind. */
unsigned dma_turns(unsigned full);

/*
 * Runs a case in a process of its own, with GDRCOPY_EMU set, since the
 * emulated driver reads it once.  The parent must not have started CUDA.
 */
void dma_run_with(const char *settings, void (*body)(void));

#endif
