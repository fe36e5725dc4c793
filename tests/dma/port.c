/* SPDX-License-Identifier: MIT */
/*
 * The port to the emulated channel, and format.h: words that the library
 * writes are words that the model, with numbers of its own, knows.
 */
#include "copy/dma/format.h"
#include "copy/dma/port_emu.h"
#include "emu/helper_case.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "gdrcopy_emu.h"

#define SIZE 65536

const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void);

static const struct gdri_log silent = { .level = GDRI_LOG_OFF };
static struct gdri_dma_port_emu port;
static const struct gdri_dma_port_ops *ops;

struct memory {
	CUdeviceptr ptr;
	struct gdrcopy_emu_range range;
	struct gdri_dma_memory memory;
};

static void start(int device)
{
	emu_start(device);
	gdri_dma_port_emu_init(&port, gdrcopy_emu_entry_v1(), &silent);
	ops = port.base.ops;
	CHECK_EQ(strcmp(ops->name, "emu"), 0);
}

static void allocate(struct memory *memory)
{
	REQUIRE_CU(cuMemAlloc(&memory->ptr, SIZE));
	REQUIRE_EQ(port.entry->hold(memory->ptr, SIZE, &memory->range), 0);
	memory->memory = (struct gdri_dma_memory){
		.device = (unsigned)memory->range.device,
		.object = &memory->range,
		.offset = memory->ptr - memory->range.object_va,
		.length = SIZE,
	};
}

static void release(struct memory *memory)
{
	port.entry->release(memory->range.memory);
	CHECK_CU(cuMemFree(memory->ptr));
}

static void submit(struct gdri_dma_queue *queue, const uint32_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		queue->push[i] = words[i];
	queue->ring[*queue->get] = gdri_dma_ring_entry(queue->push_address, count);
	*queue->put = (*queue->get + 1) % queue->ring_entries;
	queue->knock(queue);
}

static bool wait_for(const struct gdri_dma_queue *queue, uint32_t ticket)
{
	time_t end = time(NULL) + 20;

	while (__atomic_load_n(queue->semaphore, __ATOMIC_ACQUIRE) != ticket) {
		if (__atomic_load_n(queue->notifier, __ATOMIC_ACQUIRE) != 0 || time(NULL) > end)
			return false;
		sched_yield();
	}
	return true;
}

/* One copy whose completion is told by the host's engine or by the copy engine's. */
static bool copy(struct gdri_dma_queue *queue, uint64_t to, uint64_t from, uint32_t length,
		 bool by_host, uint32_t ticket)
{
	uint64_t semaphore = queue->semaphore_address;
	uint32_t last = by_host ? 0 : GDRI_DMA_LAUNCH_FLUSH | GDRI_DMA_LAUNCH_SEMAPHORE;
	uint32_t words[] = {
		gdri_dma_methods(GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_SET_OBJECT, 1),
		queue->copy_class,
		gdri_dma_methods(GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_SET_SEMAPHORE_A, 3),
		(uint32_t)(semaphore >> 32), (uint32_t)semaphore, ticket,
		gdri_dma_methods(GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_OFFSET_IN_UPPER, 4),
		(uint32_t)(from >> 32), (uint32_t)from, (uint32_t)(to >> 32), (uint32_t)to,
		gdri_dma_methods(GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_LINE_LENGTH_IN, 2), length, 1,
		gdri_dma_methods(GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_LAUNCH, 1),
		GDRI_DMA_LAUNCH_PIPELINED | GDRI_DMA_LAUNCH_PITCH | last,
		gdri_dma_methods(GDRI_DMA_HOST_SUBCHANNEL, GDRI_DMA_SEM_ADDR_LO, 5),
		(uint32_t)semaphore, (uint32_t)(semaphore >> 32), ticket, 0,
		GDRI_DMA_SEM_RELEASE | GDRI_DMA_SEM_RELEASE_WFI,
	};

	submit(queue, words, sizeof(words) / sizeof(words[0]) - (by_host ? 0 : 6));
	return wait_for(queue, ticket);
}

static void copies(void)
{
	struct gdri_dma_engine engines[GDRI_DMA_MAX_ENGINES];
	struct gdri_dma_view host_view, device_view;
	struct gdri_dma_space *space;
	struct gdri_dma_queue queue;
	struct memory memory;
	unsigned char *host;
	uint64_t address;
	void *base;
	int count;

	start(0);
	allocate(&memory);
	host = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(host != MAP_FAILED);
	REQUIRE_EQ(ops->open_space(&port.base, 0, &space), 0);
	CHECK(space->port == &port.base);
	count = ops->list_engines(space, engines);
	REQUIRE_EQ(count, 5);
	REQUIRE_EQ(ops->map_memory(space, &memory.memory, &device_view), 0);
	CHECK_EQ(device_view.length, SIZE);
	REQUIRE_EQ(ops->map_host(space, host, SIZE, &host_view), 0);
	REQUIRE_EQ(ops->scratch(space, SIZE, &base, &address), 0);
	for (int i = 0; i < count; i++) {
		unsigned char *scratch = base;

		REQUIRE_EQ(ops->open_queue(space, &engines[i], &queue), 0);
		CHECK_EQ(queue.engine.number, i);
		CHECK(queue.space == space && queue.knock && !queue.doorbell);
		memset(host, i + 1, 100);
		memset(host + 200, 0, 100);
		CHECK(copy(&queue, device_view.address + 7, host_view.address, 100, true, 1));
		CHECK(copy(&queue, address + 1, device_view.address + 7, 100, false, 2));
		CHECK(scratch[1] == i + 1 && scratch[100] == i + 1);
		CHECK(copy(&queue, host_view.address + 200, address + 1, 100, true, 3));
		CHECK(memcmp(host, host + 200, 100) == 0);
		CHECK_EQ(ops->close_queue(&queue), 0);
	}
	CHECK_EQ(ops->close_space(space), -EBUSY);
	CHECK_EQ(ops->unmap(space, &host_view), 0);
	CHECK_EQ(ops->unmap(space, &device_view), 0);
	CHECK_EQ(ops->close_space(space), 0);
	munmap(host, SIZE);
	release(&memory);
}

static void absent(void)
{
	struct gdri_dma_space *space = NULL;

	start(0);
	CHECK_EQ(ops->open_space(&port.base, 0, &space), -EOPNOTSUPP);
	CHECK(!space);
}

/* Each step passes its failure on, and writes no output. */
static void steps_fail(void)
{
	struct gdri_dma_engine engines[GDRI_DMA_MAX_ENGINES] = { 0 };
	struct gdri_dma_view view = { 0 };
	struct gdri_dma_space *space;
	struct gdri_dma_queue queue = { 0 };
	struct memory memory;
	uint64_t address = 0;
	void *base = NULL;

	start(0);
	allocate(&memory);
	CHECK_EQ(ops->open_space(&port.base, 9, &space), -ENODEV);
	CHECK_EQ(ops->open_space(&port.base, 0, &space), -ENOMEM);
	REQUIRE_EQ(ops->open_space(&port.base, 0, &space), 0);
	CHECK_EQ(ops->list_engines(space, engines), -ENOMEM);
	CHECK_EQ(ops->open_queue(space, &engines[0], &queue), -ENOMEM);
	CHECK(!queue.space && !queue.ring);
	CHECK_EQ(ops->map_memory(space, &memory.memory, &view), -ENOMEM);
	CHECK_EQ(ops->map_host(space, &view, 1, &view), -EINVAL);
	CHECK_EQ(view.address, 0);
	CHECK_EQ(ops->scratch(space, SIZE, &base, &address), -ENOMEM);
	CHECK(!base && address == 0);
	memory.memory.device = 1;
	CHECK_EQ(ops->map_memory(space, &memory.memory, &view), -EINVAL);
	memory.memory.device = 0;
	REQUIRE_EQ(ops->map_memory(space, &memory.memory, &view), 0);
	CHECK_EQ(ops->unmap(space, &view), -ENOMEM);
	CHECK_EQ(ops->unmap(space, &view), 0);
	CHECK_EQ(ops->close_space(space), 0);
	release(&memory);
}

static void unconfirmed(void)
{
	static struct gdri_dma_space *space;	/* for ever, as the queue */
	struct gdri_dma_engine engine = { .number = 4 };
	struct gdri_dma_queue queue;

	start(0);
	REQUIRE_EQ(ops->open_space(&port.base, 0, &space), 0);
	REQUIRE_EQ(ops->open_queue(space, &engine, &queue), 0);
	CHECK_EQ(ops->close_queue(&queue), -ETIMEDOUT);
	CHECK_EQ(ops->close_space(space), -EBUSY);
	CHECK_EQ(ops->open_queue(space, &engine, &queue), -EBUSY);
}

static void peer(void)
{
	struct gdri_dma_space *space;
	struct gdri_dma_view view;
	struct memory memory;

	start(1);
	allocate(&memory);
	REQUIRE_EQ(ops->open_space(&port.base, 0, &space), 0);
	REQUIRE_EQ(ops->map_memory(space, &memory.memory, &view), 0);
	CHECK_EQ(ops->unmap(space, &view), 0);
	CHECK_EQ(ops->close_space(space), 0);
	release(&memory);
}

static void no_peer(void)
{
	struct gdri_dma_space *space;
	struct gdri_dma_view view;
	struct memory memory;

	start(1);
	allocate(&memory);
	REQUIRE_EQ(ops->open_space(&port.base, 0, &space), 0);
	CHECK_EQ(ops->map_memory(space, &memory.memory, &view), -EOPNOTSUPP);
	CHECK_EQ(ops->close_space(space), 0);
	release(&memory);
}

static const struct emu_case cases[] = {
	{ .name = "copies", .run = copies },
	{ .name = "absent", .emu = "dma=0", .run = absent },
	{ .name = "steps_fail", .emu = "fail=dma-space,fail=dma-engines,fail=dma-queue,"
	  "fail=dma-map,fail=dma-unmap,fail=dma-scratch", .run = steps_fail },
	{ .name = "unconfirmed", .emu = "dma=unconfirmed,dma=busy:1", .run = unconfirmed },
	{ .name = "peer", .emu = "devices=2", .run = peer },
	{ .name = "no_peer", .emu = "devices=2,no-peer", .run = no_peer },
};

EMU_CASE_MAIN(cases)
