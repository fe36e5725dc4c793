/* SPDX-License-Identifier: MIT */
/*
 * Channels that fail as GDRCOPY_EMU asks, and what spaces know of memory: a
 * view that is gone faults, and what was given to a channel is safe again when
 * its end was confirmed, and only then.
 */
#include "helper_channel.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MMU_FAULT 31
#define COPY0_ERROR 39

static void absent(void)
{
	const struct gdrcopy_emu_entry *entry = channel_entry();
	struct gdrcopy_emu_space *space;

	emu_start(0);
	CHECK_EQ(entry->dma_space(0, &space), -EOPNOTSUPP);
}

static void before_init(void)
{
	const struct gdrcopy_emu_entry *entry = channel_entry();
	struct gdrcopy_emu_space *space;

	CHECK_EQ(entry->dma_space(0, &space), -ENOTCONN);
	emu_start(0);
	CHECK_EQ(entry->dma_space(1, &space), -ENODEV);
	CHECK_EQ(entry->dma_space(-1, &space), -ENODEV);
}

static void bad_mode(void)
{
	CHECK_EQ(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
}

static void none_free(void)
{
	const struct gdrcopy_emu_entry *entry = channel_entry();
	struct gdrcopy_emu_space *space;
	struct gdrcopy_emu_queue *queue;

	emu_start(0);
	REQUIRE_EQ(entry->dma_space(0, &space), 0);
	CHECK_EQ(entry->dma_queue(space, 0, &queue), -EBUSY);
	CHECK_EQ(entry->dma_space_close(space), 0);
}

/* Each GPU has two. */
static void two_free(void)
{
	const struct gdrcopy_emu_entry *entry = channel_entry();
	struct gdrcopy_emu_queue *queue[2], *none, *other;
	struct gdrcopy_emu_space *space[2];

	emu_start(0);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(entry->dma_space(i, &space[i]), 0);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(entry->dma_queue(space[0], 0, &queue[i]), 0);
	CHECK_EQ(entry->dma_queue(space[0], 0, &none), -EBUSY);
	REQUIRE_EQ(entry->dma_queue(space[1], 0, &other), 0);
	CHECK_EQ(entry->dma_space_close(space[0]), -EBUSY);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(entry->dma_close(queue[i]), 0);
	REQUIRE_EQ(entry->dma_queue(space[0], 0, &queue[0]), 0);
	CHECK_EQ(entry->dma_close(queue[0]), 0);
	CHECK_EQ(entry->dma_close(other), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(entry->dma_space_close(space[i]), 0);
}

/* Two good submissions; the third one does not end.  Returns its ticket. */
static uint32_t submit_three(struct rig *rig)
{
	memset(rig->host, 5, 65536);
	for (int i = 0; i < 2; i++) {
		rig_submit(rig, rig->device, rig->host_address, 65536);
		REQUIRE(rig_wait(rig, rig->ticket));
	}
	return rig_submit(rig, rig->host_address + 65536, rig->device, 65536);
}

/* The next two look at memory that a channel may still write to: a race by intention. */
__attribute__((no_sanitize("thread")))
static size_t count_arrived(const struct rig *rig)
{
	volatile unsigned char *bytes = rig->host + 65536;
	size_t count = 0;

	for (size_t i = 0; i < 65536; i++)
		count += bytes[i] == 5;
	return count;
}

__attribute__((no_sanitize("thread")))
static void clear_arrived(const struct rig *rig)
{
	volatile unsigned char *bytes = rig->host + 65536;

	for (size_t i = 0; i < 65536; i++)
		bytes[i] = 0;
}

static void hangs(void)
{
	struct rig rig;
	size_t arrived;

	rig_open(&rig, 0);
	submit_three(&rig);
	rig_sleep_us(50000);
	CHECK_EQ(__atomic_load_n(rig.queue->semaphore, __ATOMIC_ACQUIRE), 2);
	CHECK_EQ(*rig.queue->notifier, 0);
	rig_close_queue(&rig);
	arrived = count_arrived(&rig);
	rig_sleep_us(50000);
	CHECK_EQ(count_arrived(&rig), arrived);
	rig_open_queue(&rig, 0);
	rig_close(&rig);
}

static void dies(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	CHECK(!rig_wait(&rig, submit_three(&rig)));
	CHECK_EQ(rig_error(&rig), COPY0_ERROR);
	CHECK_EQ(*rig.queue->semaphore, 2);
	rig_close(&rig);
}

static void delays(void)
{
	struct timespec start, end;
	struct rig rig;

	rig_open(&rig, 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.device, rig.host_address, 1)));
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec >= 20000000);
	rig_close(&rig);
}

/* What was not confirmed to be gone comes back and writes. */
static void unconfirmed(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	submit_three(&rig);
	rig_sleep_us(5000);
	CHECK(count_arrived(&rig) < 65536);
	CHECK_EQ(rig.entry->dma_close(rig.queue), -ETIMEDOUT);
	clear_arrived(&rig);
	CHECK(rig_wait(&rig, 3));
	CHECK(count_arrived(&rig) > 0);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.host_address), 0);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.device), 0);
	CHECK_EQ(rig.entry->dma_space_close(rig.space), -EBUSY);
}

/* Each step fails once, leaves nothing behind, and works the next time. */
static void steps_fail(void)
{
	const struct gdrcopy_emu_entry *entry = channel_entry();
	struct gdrcopy_emu_engine engine;
	uint64_t address, used[2], bar1;
	struct gdrcopy_emu_space *space;
	struct gdrcopy_emu_queue *queue;
	struct gdrcopy_emu_range range;
	CUdeviceptr ptr;
	void *base, *host = channel_pages(65536);

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 65536));
	REQUIRE_EQ(entry->hold(ptr, 65536, &range), 0);
	entry->usage(0, &used[0], &bar1);
	CHECK_EQ(entry->dma_space(0, &space), -ENOMEM);
	REQUIRE_EQ(entry->dma_space(0, &space), 0);
	CHECK_EQ(entry->dma_engines(space, &engine, 1), -ENOMEM);
	CHECK_EQ(entry->dma_engines(space, &engine, 1), 1);
	CHECK_EQ(entry->dma_queue(space, 0, &queue), -11);
	REQUIRE_EQ(entry->dma_queue(space, 0, &queue), 0);
	CHECK_EQ(entry->dma_map(space, &range, 0, 65536, &address), -ENOMEM);
	REQUIRE_EQ(entry->dma_map(space, &range, 0, 65536, &address), 0);
	CHECK_EQ(entry->dma_unmap(space, address), -ENOMEM);
	CHECK_EQ(entry->dma_unmap(space, address), 0);
	CHECK_EQ(entry->dma_host(space, host, 65536, &address), -ENOMEM);
	REQUIRE_EQ(entry->dma_host(space, host, 65536, &address), 0);
	CHECK_EQ(entry->dma_unmap(space, address), 0);
	CHECK_EQ(entry->dma_scratch(space, 1, &base, &address), -ENOMEM);
	REQUIRE_EQ(entry->dma_scratch(space, 1, &base, &address), 0);
	CHECK_EQ(entry->dma_close(queue), 0);
	CHECK_EQ(entry->dma_space_close(space), 0);
	entry->usage(0, &used[1], &bar1);
	CHECK_EQ(used[1], used[0]);
	entry->release(range.memory);
}

/* A close that fails loses the channel, as an unconfirmed one does. */
static void close_fails(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	CHECK_EQ(rig.entry->dma_close(rig.queue), -EIO);
	CHECK_EQ(rig.entry->dma_space_close(rig.space), -EBUSY);
	rig_open_queue(&rig, 0);
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.device, rig.host_address, 1)));
	rig_close_queue(&rig);
}

/* The GPU's memory is finite: the queue needs 2 MiB of it. */
static void no_memory(void)
{
	const struct gdrcopy_emu_entry *entry = channel_entry();
	struct gdrcopy_emu_space *space;
	struct gdrcopy_emu_queue *queue;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemAlloc(&ptr, 8 << 20));
	REQUIRE_EQ(entry->dma_space(0, &space), 0);
	CHECK_EQ(entry->dma_queue(space, 0, &queue), -ENOMEM);
	REQUIRE_CU(cuMemFree(ptr));
	REQUIRE_EQ(entry->dma_queue(space, 0, &queue), 0);
	CHECK_EQ(entry->dma_close(queue), 0);
	CHECK_EQ(entry->dma_space_close(space), 0);
}

/* A view keeps the memory; after it, the address is nobody's and never comes again. */
static void views(void)
{
	uint64_t offset, again;
	struct rig rig;

	rig_open(&rig, 0);
	offset = rig.ptr - rig.range.object_va;
	REQUIRE_EQ(rig.entry->dma_map(rig.space, &rig.range, offset + 5, 3, &again), 0);
	CHECK(again != rig.device);
	rig.entry->release(rig.range.memory);
	CHECK_CU(cuMemFree(rig.ptr));
	rig.host[0] = 7;
	CHECK(rig_wait(&rig, rig_submit(&rig, again + 1, rig.host_address, 1)));
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.host_address + 1, rig.device + 6, 1)));
	CHECK_EQ(rig.host[1], 7);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.device), 0);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.device), -EINVAL);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.queue->semaphore_address), -EINVAL);
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.host_address + 2, again + 1, 1)));
	CHECK_EQ(rig.host[2], 7);
	rig_submit(&rig, rig.device, rig.host_address, 1);
	CHECK_EQ(rig_error(&rig), MMU_FAULT);
	rig_close_queue(&rig);
	rig_open_queue(&rig, 0);
	rig_submit(&rig, again + 3, rig.host_address, 1);
	CHECK_EQ(rig_error(&rig), MMU_FAULT);
	rig_close_queue(&rig);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.host_address), 0);
	CHECK_EQ(rig.entry->dma_space_close(rig.space), -EBUSY);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, again), 0);
	CHECK_EQ(rig.entry->dma_space_close(rig.space), 0);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Pages that cannot be written; older kernels have no way to see that. */
static void check_pages(const struct rig *rig, unsigned char *pages, size_t page)
{
	uint64_t address = 1;

	if (madvise(pages, page, MADV_POPULATE_WRITE) != 0)
		return;
	REQUIRE_EQ(mprotect(pages + page, page, PROT_READ), 0);
	CHECK_EQ(rig->entry->dma_host(rig->space, pages, 2 * page, &address), -EFAULT);
	REQUIRE_EQ(munmap(pages + page, page), 0);
	CHECK_EQ(rig->entry->dma_host(rig->space, pages, 3 * page, &address), -EFAULT);
	CHECK_EQ(address, 1);
}

static void bad_views(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages = channel_pages(3 * page);
	uint64_t address = 1, size;
	void *base = NULL;
	struct rig rig;

	rig_open(&rig, 0);
	size = rig.range.object_size;
	CHECK_EQ(rig.entry->dma_map(rig.space, &rig.range, size - 1, 2, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_map(rig.space, &rig.range, size + 1, 1, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_map(rig.space, &rig.range, 8, UINT64_MAX, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_map(rig.space, &rig.range, 0, 0, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_host(rig.space, pages + 1, page, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_host(rig.space, pages, page - 1, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_host(rig.space, pages, 0, &address), -EINVAL);
	CHECK_EQ(rig.entry->dma_scratch(rig.space, 0, &base, &address), -EINVAL);
	CHECK(!base);
	CHECK_EQ(address, 1);
	check_pages(&rig, pages, page);
	munmap(pages, 3 * page);
	rig_close(&rig);
}

/* Another GPU's memory: with a link it is like one's own. */
static void peer(void)
{
	struct gdrcopy_emu_range range;
	unsigned char byte = 0;
	uint64_t address;
	CUdeviceptr ptr;
	struct rig rig;

	rig_open(&rig, 0);
	emu_start(1);
	REQUIRE_CU(cuMemAlloc(&ptr, 65536));
	REQUIRE_EQ(rig.entry->hold(ptr, 65536, &range), 0);
	CHECK_EQ(range.device, 1);
	REQUIRE_EQ(rig.entry->dma_map(rig.space, &range, ptr - range.object_va, 65536, &address),
		   0);
	rig.host[0] = 21;
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.device + 9, rig.host_address, 1)));
	CHECK(rig_wait(&rig, rig_submit(&rig, address + 65535, rig.device + 9, 1)));
	CHECK_CU(cuMemcpyDtoH(&byte, ptr + 65535, 1));
	CHECK_EQ(byte, 21);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, address), 0);
	rig.entry->release(range.memory);
	rig_close(&rig);
}

static void no_peer(void)
{
	struct gdrcopy_emu_range range;
	uint64_t address;
	CUdeviceptr ptr;
	struct rig rig;

	rig_open(&rig, 0);
	emu_start(1);
	REQUIRE_CU(cuMemAlloc(&ptr, 65536));
	REQUIRE_EQ(rig.entry->hold(ptr, 65536, &range), 0);
	CHECK_EQ(rig.entry->dma_map(rig.space, &range, 0, 65536, &address), -EOPNOTSUPP);
	rig.entry->release(range.memory);
	rig_close(&rig);
}

static void scratch(void)
{
	uint64_t address;
	struct rig rig;
	void *base;

	rig_open(&rig, 0);
	REQUIRE_EQ(rig.entry->dma_scratch(rig.space, 3 << 20, &base, &address), 0);
	((unsigned char *)base)[(3 << 20) - 1] = 44;
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.host_address, address + (3 << 20) - 1, 1)));
	CHECK_EQ(rig.host[0], 44);
	rig_close(&rig);
}

struct child {
	struct rig *rig;
	volatile const void *address;
};

static void use_in_child(void *arg)
{
	const struct child *child = arg;
	struct gdrcopy_emu_space *space;
	uint64_t address;
	void *base;

	CHECK_EQ(child->rig->entry->dma_space(0, &space), -ENOTCONN);
	CHECK_EQ(child->rig->entry->dma_queue(child->rig->space, 0, &child->rig->queue), -ENOTCONN);
	CHECK_EQ(child->rig->entry->dma_close(child->rig->queue), -ENOTCONN);
	CHECK_EQ(child->rig->entry->dma_unmap(child->rig->space, child->rig->device), -ENOTCONN);
	CHECK_EQ(child->rig->entry->dma_scratch(child->rig->space, 1, &base, &address), -ENOTCONN);
	CHECK_EQ(child->rig->entry->dma_space_close(child->rig->space), -ENOTCONN);
	child->rig->entry->dma_knock(child->rig->queue);
}

static void touch_in_child(void *arg)
{
	const struct child *child = arg;

	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	*(volatile const unsigned char *)child->address;
}

static void forks(void)
{
	struct rig rig;
	struct child child = { .rig = &rig };

	rig_open(&rig, 0);
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.device, rig.host_address, 1)));
	CHECK_EQ(harness_fork(use_in_child, &child), 0);
	child.address = rig.queue->ring;
	CHECK(harness_fork(touch_in_child, &child) != 0);
	child.address = rig.queue->semaphore;
	CHECK(harness_fork(touch_in_child, &child) != 0);
	CHECK(rig_wait(&rig, rig_submit(&rig, rig.device, rig.host_address, 1)));
	rig_close(&rig);
}

/* A program may end without closing anything, with work under way. */
static void exit_role(void)
{
	struct rig *rig = malloc(sizeof(*rig));

	rig_open(rig, 0);
	for (int i = 0; i < 20; i++)
		rig_submit(rig, rig->device, rig->host_address, RIG_BYTES);
	free(rig);
}

static void exit_while_busy(void)
{
	CHECK(emu_role_passed(emu_start_role("exit_role", -1)));
}

static void exit_while_hanging(void)
{
	CHECK(emu_role_passed(emu_start_role("exit_hang_role", -1)));
}

static void close_while_busy(void)
{
	struct rig rig;
	unsigned char *copy = malloc(RIG_BYTES);

	rig_open(&rig, 0);
	for (int round = 0; round < 20; round++) {
		memset(rig.host, round, RIG_BYTES);
		REQUIRE_CU(cuMemsetD8(rig.ptr, 100 + (unsigned char)round, RIG_BYTES));
		for (int i = 0; i < 50; i++)
			rig_submit(&rig, rig.host_address, rig.device, RIG_BYTES);
		rig_sleep_us((unsigned)round * 20);
		rig_close_queue(&rig);
		memcpy(copy, rig.host, RIG_BYTES);
		memset(rig.host, 0, RIG_BYTES);
		rig_sleep_us(500);
		CHECK(rig.host[0] == 0 && memcmp(rig.host, rig.host + 1, RIG_BYTES - 1) == 0);
		rig_open_queue(&rig, 0);
	}
	rig_close(&rig);
	free(copy);
}

/* An unmap waits for the engine that is there, and later accesses fault. */
static void unmap_while_busy(void)
{
	struct rig rig;

	rig_open(&rig, 0);
	for (int i = 0; i < 200; i++)
		rig_submit(&rig, rig.device, rig.host_address, RIG_BYTES);
	CHECK_EQ(rig.entry->dma_unmap(rig.space, rig.host_address), 0);
	REQUIRE_EQ(mprotect(rig.host, RIG_BYTES, PROT_NONE), 0);
	CHECK_EQ(rig_error(&rig), MMU_FAULT);
	REQUIRE_EQ(mprotect(rig.host, RIG_BYTES, PROT_READ | PROT_WRITE), 0);
	REQUIRE_EQ(rig.entry->dma_host(rig.space, rig.host, RIG_BYTES, &rig.host_address), 0);
	rig_close(&rig);
}

/* Queues come and go; nothing stays. */
static void nothing_leaks(void)
{
	uint64_t used[2], bar1;
	size_t maps = 0;
	struct rig rig;
	int fds = 0;

	rig_open(&rig, 0);
	for (int i = 0; i < 100; i++) {
		rig_close_queue(&rig);
		if (i == 10) {
			rig.entry->usage(0, &used[0], &bar1);
			maps = harness_count_maps();
			fds = harness_count_fds();
		}
		rig_open_queue(&rig, i % 5);
		CHECK(rig_wait(&rig, rig_submit(&rig, rig.device, rig.host_address, 64)));
	}
	rig_close_queue(&rig);
	rig.entry->usage(0, &used[1], &bar1);
	CHECK_EQ(used[1], used[0]);
	CHECK_EQ(harness_count_fds(), fds);
	if (!getenv("HARNESS_SLOW"))		/* sanitizers keep what was freed */
		CHECK_EQ(harness_count_maps(), maps);
	rig_open_queue(&rig, 0);
	rig_close(&rig);
}

static const struct emu_case cases[] = {
	{ .name = "absent", .emu = "dma=0", .run = absent },
	{ .name = "before_init", .run = before_init },
	{ .name = "bad_mode", .emu = "dma=maybe", .run = bad_mode },
	{ .name = "bad_number", .emu = "dma=hang:0", .run = bad_mode },
	{ .name = "number_missing", .emu = "dma=delay", .run = bad_mode },
	{ .name = "none_free", .emu = "dma=busy", .run = none_free },
	{ .name = "two_free", .emu = "devices=2,dma=busy:2", .run = two_free },
	{ .name = "hangs", .emu = "dma=hang:3", .run = hangs },
	{ .name = "dies", .emu = "dma=die:3", .run = dies },
	{ .name = "delays", .emu = "dma=delay:20000", .run = delays },
	{ .name = "unconfirmed", .emu = "dma=hang:3,dma=unconfirmed", .run = unconfirmed },
	{ .name = "steps_fail", .emu = "fail=dma-space,fail=dma-engines,fail=dma-queue:1:11,"
	  "fail=dma-map,fail=dma-unmap,fail=dma-host,fail=dma-scratch", .run = steps_fail },
	{ .name = "close_fails", .emu = "fail=dma-close:1:5", .run = close_fails },
	{ .name = "no_memory", .emu = "mem=8M", .run = no_memory },
	{ .name = "views", .run = views },
	{ .name = "bad_views", .run = bad_views },
	{ .name = "peer", .emu = "devices=2", .run = peer },
	{ .name = "no_peer", .emu = "devices=2,no-peer", .run = no_peer },
	{ .name = "scratch", .run = scratch },
	{ .name = "forks", .run = forks },
	{ .name = "exit_role", .run = exit_role, .role = true },
	{ .name = "exit_hang_role", .emu = "dma=hang", .run = exit_role, .role = true },
	{ .name = "exit_while_busy", .run = exit_while_busy },
	{ .name = "exit_while_hanging", .run = exit_while_hanging },
	{ .name = "close_while_busy", .run = close_while_busy },
	{ .name = "unmap_while_busy", .run = unmap_while_busy },
	{ .name = "nothing_leaks", .run = nothing_leaks },
};

EMU_CASE_MAIN(cases)
