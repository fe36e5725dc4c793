/* SPDX-License-Identifier: MIT */
/* Sets up the DMA engine on emulated GPUs. */
#include "dma/helper_dma.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The driver exports it; the library finds it by name. */
const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void);

/* The address sanitizer's; its own check is for processes that end with exit. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

struct gdri_dma_options dma_options(void)
{
	return (struct gdri_dma_options){ .engine = -1 };
}

void dma_open(struct dma_rig *rig, const struct gdri_dma_options *options)
{
	memset(rig, 0, sizeof(*rig));
	rig->log.level = getenv("TEST_DMA_LOG") ? GDRI_LOG_DEBUG : GDRI_LOG_OFF;
	rig->entry = gdrcopy_emu_entry_v1();
	REQUIRE_EQ(rig->entry->abi, GDRCOPY_EMU_ABI);
	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	gdri_dma_port_emu_init(&rig->port, rig->entry, &rig->log);
	REQUIRE_EQ(gdri_dma_create(&rig->port.base, options, &rig->dma), 0);
}

void dma_close(struct dma_rig *rig)
{
	CHECK_EQ(gdri_dma_destroy(rig->dma), 0);
}

void dma_alloc(struct dma_rig *rig, int device, size_t size, struct dma_memory *memory)
{
	CUcontext context;
	off_t offset;

	memset(memory, 0, sizeof(*memory));
	REQUIRE_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
	REQUIRE_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemAlloc((CUdeviceptr *)&memory->ptr, size), CUDA_SUCCESS);
	memory->size = size;
	REQUIRE_EQ(rig->entry->hold(memory->ptr, size, &memory->range), 0);
	offset = (off_t)(memory->range.file_offset + (memory->ptr - memory->range.object_va));
	memory->cpu = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->range.fd,
			   offset);
	REQUIRE(memory->cpu != MAP_FAILED);
}

struct gdri_dma_memory dma_describe(const struct dma_memory *memory)
{
	return (struct gdri_dma_memory){
		.device = (unsigned)memory->range.device,
		.object = &memory->range,
		.offset = memory->ptr - memory->range.object_va,
		.length = memory->size,
		.va = memory->ptr,
	};
}

void dma_attach(struct dma_rig *rig, int device, size_t size, struct dma_memory *memory)
{
	struct gdri_dma_memory described;

	dma_alloc(rig, device, size, memory);
	described = dma_describe(memory);
	REQUIRE_EQ(gdri_dma_attach(rig->dma, &described, &memory->target), 0);
}

void dma_free(struct dma_rig *rig, struct dma_memory *memory)
{
	if (memory->target)
		gdri_dma_detach(memory->target);
	munmap(memory->cpu, memory->size);
	rig->entry->release(memory->range.memory);
	CHECK_EQ(cuMemFree((CUdeviceptr)memory->ptr), CUDA_SUCCESS);
}

uint8_t *dma_pages(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(pages != MAP_FAILED);
	return pages;
}

void dma_fill(void *bytes, size_t size, uint32_t seed)
{
	uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)((i + seed) * 2654435761u >> 24 ^ (i >> 3) ^ seed);
}

bool dma_all(const void *bytes, size_t size, uint8_t value)
{
	const uint8_t *at = bytes;

	return size == 0 || (at[0] == value && memcmp(at, at + 1, size - 1) == 0);
}

uint32_t dma_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

unsigned dma_turns(unsigned full)
{
	return getenv("HARNESS_SLOW") ? (full + 9) / 10 : full;
}

static void run_body(void *arg)
{
	void (**body)(void) = arg;

	(*body)();
	if (__lsan_do_recoverable_leak_check)
		CHECK_EQ(__lsan_do_recoverable_leak_check(), 0);
}

void dma_run_with(const char *settings, void (*body)(void))
{
	int status;

	setenv("GDRCOPY_EMU", settings, 1);
	status = harness_fork(run_body, &body);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
