/* SPDX-License-Identifier: MIT */
/* A channel of the emulated driver, driven by hand. */
#include "helper_channel.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* The driver exports it; the library finds it by name. */
const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void);

const struct gdrcopy_emu_entry *channel_entry(void)
{
	const struct gdrcopy_emu_entry *entry = gdrcopy_emu_entry_v1();

	REQUIRE_EQ(entry->abi, GDRCOPY_EMU_ABI);
	REQUIRE_EQ(entry->size, sizeof(*entry));
	return entry;
}

void *channel_pages(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(pages != MAP_FAILED);
	return pages;
}

void rig_open_queue(struct rig *rig, unsigned engine)
{
	REQUIRE_EQ(rig->entry->dma_queue(rig->space, engine, &rig->queue), 0);
	rig->words = rig->start = rig->put = rig->ticket = 0;
}

void rig_close_queue(struct rig *rig)
{
	CHECK_EQ(rig->entry->dma_close(rig->queue), 0);
}

void rig_open(struct rig *rig, int device)
{
	memset(rig, 0, sizeof(*rig));
	rig->entry = channel_entry();
	emu_start(device);
	REQUIRE_EQ(rig->entry->dma_space(device, &rig->space), 0);
	REQUIRE_CU(cuMemAlloc(&rig->ptr, RIG_BYTES));
	REQUIRE_EQ(rig->entry->hold(rig->ptr, RIG_BYTES, &rig->range), 0);
	REQUIRE_EQ(rig->entry->dma_map(rig->space, &rig->range, rig->ptr - rig->range.object_va,
				       RIG_BYTES, &rig->device), 0);
	rig->host = channel_pages(RIG_BYTES);
	REQUIRE_EQ(rig->entry->dma_host(rig->space, rig->host, RIG_BYTES, &rig->host_address), 0);
	rig_open_queue(rig, 0);
}

void rig_close(struct rig *rig)
{
	rig_close_queue(rig);
	CHECK_EQ(rig->entry->dma_unmap(rig->space, rig->device), 0);
	CHECK_EQ(rig->entry->dma_unmap(rig->space, rig->host_address), 0);
	CHECK_EQ(rig->entry->dma_space_close(rig->space), 0);
	rig->entry->release(rig->range.memory);
	CHECK_CU(cuMemFree(rig->ptr));
	munmap(rig->host, RIG_BYTES);
}

void rig_word(struct rig *rig, uint32_t word)
{
	rig->queue->push[rig->words++ % rig->queue->push_words] = word;
}

void rig_methods(struct rig *rig, unsigned subchannel, uint32_t method, unsigned count, ...)
{
	va_list list;

	rig_word(rig, 0x20000000u | count << 16 | subchannel << 13 | method >> 2);
	va_start(list, count);
	for (unsigned i = 0; i < count; i++)
		rig_word(rig, va_arg(list, uint32_t));
	va_end(list);
}

void rig_set_object(struct rig *rig)
{
	rig_methods(rig, COPY, 0x0, 1, rig->queue->copy_class);
}

void rig_copy(struct rig *rig, uint64_t destination, uint64_t source, uint32_t length,
	      uint32_t launch)
{
	rig_methods(rig, COPY, 0x400, 4, (uint32_t)(source >> 32), (uint32_t)source,
		    (uint32_t)(destination >> 32), (uint32_t)destination);
	rig_methods(rig, COPY, 0x418, 2, length, 1u);
	rig_methods(rig, COPY, 0x300, 1, launch);
}

void rig_target(struct rig *rig, uint64_t address, uint32_t payload)
{
	rig_methods(rig, COPY, 0x240, 3, (uint32_t)(address >> 32), (uint32_t)address, payload);
}

void rig_release(struct rig *rig, uint64_t address, uint32_t payload, uint32_t execute)
{
	rig_methods(rig, HOST, 0x5c, 5, (uint32_t)address, (uint32_t)(address >> 32), payload, 0u,
		    execute);
}

void rig_raw_entry(struct rig *rig, uint64_t entry)
{
	rig->queue->ring[rig->put] = entry;
	rig->put = (rig->put + 1) % rig->queue->ring_entries;
	rig->start = rig->words;
}

/* What does not fit before the end of the push buffer is moved to its start. */
void rig_entry(struct rig *rig)
{
	uint32_t size = rig->queue->push_words, count = rig->words - rig->start;
	uint32_t first = rig->start % size;

	if (first + count > size) {
		uint32_t skip = size - first;

		for (uint32_t i = count; i-- > 0;)
			rig->queue->push[i] = rig->queue->push[(first + i) % size];
		rig->words += skip;
		first = 0;
	}
	rig_raw_entry(rig, (rig->queue->push_address + first * 4) | (uint64_t)count << 42);
}

void rig_knock(struct rig *rig)
{
	*rig->queue->put = rig->put;
	rig->entry->dma_knock(rig->queue);
}

uint32_t rig_submit(struct rig *rig, uint64_t destination, uint64_t source, uint32_t length)
{
	if (rig->ticket == 0)
		rig_set_object(rig);
	rig_copy(rig, destination, source, length, LAUNCH_PIPELINED);
	rig_release(rig, rig->queue->semaphore_address, ++rig->ticket, EXECUTE_RELEASE_WFI);
	rig_entry(rig);
	rig_knock(rig);
	return rig->ticket;
}

void rig_sleep_us(unsigned us)
{
	struct timespec time = { us / 1000000, (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static unsigned error_now(const struct rig *rig)
{
	return __atomic_load_n(rig->queue->notifier, __ATOMIC_ACQUIRE);
}

bool rig_wait(const struct rig *rig, uint32_t ticket)
{
	double limit = seconds() + (getenv("HARNESS_SLOW") ? 20 : 2);

	while ((int32_t)(__atomic_load_n(rig->queue->semaphore, __ATOMIC_ACQUIRE) - ticket) < 0) {
		if (error_now(rig) != 0 || seconds() > limit)
			return false;
		sched_yield();
	}
	return true;
}

unsigned rig_error(const struct rig *rig)
{
	double limit = seconds() + (getenv("HARNESS_SLOW") ? 20 : 2);

	while (error_now(rig) == 0 && seconds() < limit)
		sched_yield();
	return error_now(rig);
}
