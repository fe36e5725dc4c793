/* SPDX-License-Identifier: MIT */
/* Opens and closes channels, and the thread that is one. */
#include "channel.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* In the channel's 2 MiB of GPU memory; the push buffer alone has a device address. */
#define USERD_OFFSET 0x10000
#define USERD_GP_GET 0x88		/* clc86f.h */
#define USERD_GP_PUT 0x8c
#define PUSH_OFFSET 0x20000

/* In its page of host memory. */
#define NOTIFIER_OFFSET 0x80e		/* status of a 16-byte NvNotification */

#define SPIN_NS 10000			/* how long an idle channel looks before it sleeps */
#define LOST_NS 20000000		/* what a lost channel takes before it goes on */

/* Both guarded by the driver's lock. */
static unsigned used_channels[EMU_MAX_DEVICES];
static struct emu_channel *lost_channels;
static uint64_t opened_channels;

static struct emu_channel *channel_of(struct gdrcopy_emu_queue *queue)
{
	return (struct emu_channel *)queue;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_dead(const struct emu_channel *channel)
{
	return __atomic_load_n(&channel->dead, __ATOMIC_RELAXED);
}

void emu_channel_die(struct emu_channel *channel, unsigned error)
{
	if (!__atomic_exchange_n(&channel->dead, true, __ATOMIC_RELAXED))
		__atomic_store_n(channel->notifier, (uint16_t)error, __ATOMIC_RELEASE);
}

bool emu_channel_stopped(struct emu_channel *channel)
{
	return is_dead(channel) || __atomic_load_n(&channel->stop, __ATOMIC_RELAXED);
}

void emu_channel_pause(struct emu_channel *channel, uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	struct timespec until = {
		.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000)
	};
	int ret = 0;

	pthread_mutex_lock(&channel->lock);
	while (!channel->stop && ret != ETIMEDOUT)
		ret = pthread_cond_timedwait(&channel->changed, &channel->lock, &until);
	pthread_mutex_unlock(&channel->lock);
}

bool emu_channel_hang(struct emu_channel *channel)
{
	bool lost;

	pthread_mutex_lock(&channel->lock);
	while (!channel->stop && !channel->lost)
		pthread_cond_wait(&channel->changed, &channel->lock);
	lost = channel->lost;
	pthread_mutex_unlock(&channel->lock);
	if (lost)
		emu_channel_pause(channel, LOST_NS);
	return lost;
}

static bool has_entry(struct emu_channel *channel)
{
	return __atomic_load_n(&channel->published, __ATOMIC_ACQUIRE) != channel->consumed;
}

/* false: the channel is closed. */
static bool wait_for_entry(struct emu_channel *channel)
{
	uint64_t end;
	bool stop;

	if (!has_entry(channel) && !emu_channel_stopped(channel))
		emu_engine_drain(channel);
	for (end = now_ns() + SPIN_NS; !has_entry(channel) && now_ns() < end;)
		continue;
	if (has_entry(channel) && !emu_channel_stopped(channel))
		return true;
	pthread_mutex_lock(&channel->lock);
	while (!channel->stop && (is_dead(channel) || !has_entry(channel))) {
		channel->asleep = true;
		pthread_cond_wait(&channel->changed, &channel->lock);
	}
	channel->asleep = false;
	stop = channel->stop;
	pthread_mutex_unlock(&channel->lock);
	return !stop;
}

/*
 * GP_GET moves on when the entry is read, as it does on a real channel: it
 * says nothing about the words that the entry names.
 */
static void run_entry(struct emu_channel *channel)
{
	uint32_t n = channel->consumed % channel->ring_entries;
	struct emu_channel_slot slot = channel->slots[n];
	uint64_t delay_us = emu_config_get()->dma.delay_us;

	if (__atomic_load_n(&channel->ring[n], __ATOMIC_RELAXED) != slot.entry) {
		emu_channel_die(channel, EMU_CHANNEL_HOST_ERROR);
		return;
	}
	channel->submission++;
	__atomic_store_n(&channel->consumed, channel->consumed + 1, __ATOMIC_RELEASE);
	__atomic_store_n(channel->get, (n + 1) % channel->ring_entries, __ATOMIC_RELEASE);
	if (delay_us > 0)
		emu_channel_pause(channel, delay_us * 1000);
	if (!emu_channel_stopped(channel))
		emu_channel_execute(channel, &slot);
}

static void *serve(void *arg)
{
	struct emu_channel *channel = arg;

	while (wait_for_entry(channel))
		run_entry(channel);
	return NULL;
}

/* Program's signals are not for the GPU. */
static int start_thread(struct emu_channel *channel)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&channel->thread, NULL, serve, channel);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/* Takes the entries between the old GP_PUT and the new one; locked. */
static bool publish(struct emu_channel *channel, uint32_t put)
{
	uint32_t mask = channel->ring_entries - 1;
	uint64_t waiting = channel->published -
			   __atomic_load_n(&channel->consumed, __ATOMIC_ACQUIRE);
	uint32_t added = (put - channel->last_put) & mask;

	if (put > mask || added > mask - waiting)
		return false;
	for (uint32_t i = 0; i < added; i++) {
		uint32_t n = (channel->last_put + i) & mask;
		uint64_t entry = __atomic_load_n(&channel->ring[n], __ATOMIC_RELAXED);

		channel->slots[n] = (struct emu_channel_slot){
			.entry = entry, .sum = emu_channel_sum(channel, entry)
		};
	}
	channel->last_put = put;
	__atomic_store_n(&channel->published, channel->published + added, __ATOMIC_RELEASE);
	return true;
}

void emu_dma_knock(struct gdrcopy_emu_queue *queue)
{
	struct emu_channel *channel = channel_of(queue);
	bool wake;

	if (!emu_ready())
		return;
	pthread_mutex_lock(&channel->lock);
	if (!is_dead(channel) && !publish(channel, __atomic_load_n(queue->put, __ATOMIC_ACQUIRE)))
		emu_channel_die(channel, EMU_CHANNEL_HOST_ERROR);
	wake = channel->asleep;
	pthread_mutex_unlock(&channel->lock);
	if (wake)
		pthread_cond_signal(&channel->changed);
}

/* Counts a channel of the device, unless all are taken. */
static int take_channel(struct gdrcopy_emu_space *space, uint64_t *serial)
{
	const struct emu_dma_config *config = &emu_config_get()->dma;
	bool taken;

	emu_lock();
	taken = !config->limited || used_channels[space->device] < config->channels;
	if (taken) {
		used_channels[space->device]++;
		space->queues++;
		*serial = ++opened_channels;
	}
	emu_unlock();
	return taken ? 0 : -EBUSY;
}

static void give_channel(struct gdrcopy_emu_space *space)
{
	emu_lock();
	used_channels[space->device]--;
	space->queues--;
	emu_unlock();
}

static int create_device_memory(struct emu_channel *channel)
{
	struct emu_view view = {
		.length = channel->push_words * sizeof(uint32_t), .own = true
	};
	CUresult result;

	emu_lock();
	result = emu_block_create(channel->space->device, EMU_BLOCK_SIZE, false, &channel->block);
	if (result == CUDA_SUCCESS)
		channel->block->pins++;
	emu_unlock();
	if (result != CUDA_SUCCESS)
		return -ENOMEM;
	view.block = channel->block;
	view.cpu = channel->block->cpu + PUSH_OFFSET;
	return emu_view_add(channel->space, &view, EMU_VIEW_LOW, 0, &channel->push_address);
}

static int create_host_memory(struct emu_channel *channel)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct emu_view view = { .length = size, .own = true };
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (page == MAP_FAILED)
		return -ENOMEM;
	view.cpu = page;
	ret = madvise(page, size, MADV_DONTFORK) == 0 ? 0 : -errno;
	if (ret == 0)
		ret = emu_view_add(channel->space, &view, EMU_VIEW_HIGH, 0,
				   &channel->host_address);
	if (ret != 0) {
		munmap(page, size);
		return ret;
	}
	channel->host = page;
	channel->notifier = (uint16_t *)(void *)(channel->host + NOTIFIER_OFFSET);
	return 0;
}

static void destroy_host_memory(struct emu_channel *channel)
{
	emu_view_remove(channel->space, channel->host_address, true);
	munmap(channel->host, (size_t)sysconf(_SC_PAGESIZE));
}

static int create_memory(struct emu_channel *channel)
{
	bool small = emu_config_get()->dma.small;
	int ret;

	channel->ring_entries = small ? 8 : 1024;
	channel->push_words = small ? 256 : 32768;
	channel->slots = calloc(channel->ring_entries, sizeof(*channel->slots));
	channel->words = calloc(channel->push_words, sizeof(*channel->words));
	ret = channel->slots && channel->words ? create_device_memory(channel) : -ENOMEM;
	if (ret != 0)
		goto err_free;
	ret = create_host_memory(channel);
	if (ret != 0)
		goto err_device;
	channel->ring = (uint64_t *)(void *)channel->block->cpu;
	channel->get = (uint32_t *)(void *)(channel->block->cpu + USERD_OFFSET + USERD_GP_GET);
	return 0;

err_device:
	emu_view_remove(channel->space, channel->push_address, true);
err_free:
	free(channel->slots);
	free(channel->words);
	return ret;
}

static void destroy_memory(struct emu_channel *channel)
{
	destroy_host_memory(channel);
	emu_view_remove(channel->space, channel->push_address, true);
	free(channel->slots);
	free(channel->words);
}

static void init_locks(struct emu_channel *channel)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&channel->lock, NULL);
	pthread_cond_init(&channel->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void destroy_locks(struct emu_channel *channel)
{
	pthread_cond_destroy(&channel->changed);
	pthread_mutex_destroy(&channel->lock);
}

/* What the program gets of it. */
static void describe(struct emu_channel *channel)
{
	channel->queue = (struct gdrcopy_emu_queue){
		.ring = channel->ring,
		.ring_entries = channel->ring_entries,
		.push_words = channel->push_words,
		.push = (uint32_t *)(void *)(channel->block->cpu + PUSH_OFFSET),
		.push_address = channel->push_address,
		.put = (uint32_t *)(void *)(channel->block->cpu + USERD_OFFSET + USERD_GP_PUT),
		.get = channel->get,
		.semaphore = (uint32_t *)(void *)channel->host,
		.semaphore_address = channel->host_address,
		.notifier = channel->notifier,
		.copy_class = EMU_CHANNEL_COPY_CLASS,
	};
}

static int create_channel(struct gdrcopy_emu_space *space, unsigned engine, uint64_t serial,
			  struct emu_channel **out)
{
	struct emu_channel *channel = calloc(1, sizeof(*channel));
	int ret;

	if (!channel)
		return -ENOMEM;
	channel->space = space;
	channel->engine = engine;
	channel->random = serial * UINT64_C(0x9e3779b97f4a7c15) | 1;
	ret = create_memory(channel);
	if (ret != 0)
		goto err_free;
	describe(channel);
	init_locks(channel);
	ret = start_thread(channel);
	if (ret != 0)
		goto err_memory;
	*out = channel;
	return 0;

err_memory:
	destroy_locks(channel);
	destroy_memory(channel);
err_free:
	free(channel);
	return ret;
}

int emu_dma_queue_open(struct gdrcopy_emu_space *space, unsigned engine,
		       struct gdrcopy_emu_queue **queue)
{
	struct emu_channel *channel;
	uint64_t serial;
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	if (engine >= EMU_CHANNEL_ENGINES)
		return -EINVAL;
	ret = emu_dma_injected("dma-queue");
	if (ret == 0)
		ret = take_channel(space, &serial);
	if (ret != 0)
		return ret;
	ret = create_channel(space, engine, serial, &channel);
	if (ret != 0) {
		give_channel(space);
		return ret;
	}
	*queue = &channel->queue;
	return 0;
}

/* The channel and its memory stay for ever, and its thread goes on. */
static void lose(struct emu_channel *channel)
{
	pthread_detach(channel->thread);
	pthread_mutex_lock(&channel->lock);
	channel->lost = true;
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
	emu_lock();
	channel->next = lost_channels;
	lost_channels = channel;
	emu_unlock();
}

int emu_dma_queue_close(struct gdrcopy_emu_queue *queue)
{
	struct emu_channel *channel = channel_of(queue);
	int ret;

	if (!emu_ready())
		return -ENOTCONN;
	ret = emu_dma_injected("dma-close");
	if (ret == 0 && emu_config_get()->dma.unconfirmed)
		ret = -ETIMEDOUT;
	if (ret != 0) {
		lose(channel);
		return ret;
	}
	pthread_mutex_lock(&channel->lock);
	__atomic_store_n(&channel->stop, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
	pthread_join(channel->thread, NULL);
	destroy_locks(channel);
	destroy_memory(channel);
	give_channel(channel->space);
	free(channel);
	return 0;
}
