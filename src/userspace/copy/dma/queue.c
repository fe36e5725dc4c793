/* SPDX-License-Identifier: MIT */
/* Writes launches into a channel, waits for them, and closes a channel that died. */
#include "copy/dma/queue.h"

#include <errno.h>
#include <string.h>

#include "copy/cpu/fence.h"
#include "copy/dma/format.h"

/*
 * The words of one launch and its release: one line of 64 bytes in every way
 * of completion, so that the CPU's write-combining buffers send it in one piece.
 * Ticket t lies in line t modulo the number of lines; that is a power of two,
 * so this goes on where tickets wrap around.
 */
#define LINE_WORDS 16

/* A waiter looks at more than the semaphore every few microseconds. */
#define TURNS_PER_LOOK 64
#define YIELD_AFTER_NS 100000

/*
 * A look that comes later than this is not the channel's fault: the process was
 * stopped, or had no processor.
 */
#define LONGEST_STEP_NS 10000000

/* For the threads that are told to leave a dead channel. */
#define POLLERS_TIMEOUT_NS UINT64_C(20000000000)

static uint32_t *put_header(uint32_t *word, unsigned subchannel, uint32_t method, unsigned count)
{
	*word = gdri_dma_methods(subchannel, method, count);
	return word + 1;
}

static uint32_t *put_address(uint32_t *word, uint64_t address)
{
	word[0] = (uint32_t)(address >> 32);
	word[1] = (uint32_t)address;
	return word + 2;
}

/* The host engine's release: 6 words. */
static uint32_t *put_host_release(uint32_t *word, uint64_t address, uint32_t ticket)
{
	word = put_header(word, GDRI_DMA_HOST_SUBCHANNEL, GDRI_DMA_SEM_ADDR_LO, 5);
	*word++ = (uint32_t)address;
	*word++ = (uint32_t)(address >> 32);
	*word++ = ticket;
	*word++ = 0;
	*word++ = GDRI_DMA_SEM_RELEASE | GDRI_DMA_SEM_RELEASE_WFI;
	return word;
}

/* The copy engine's release, for the launch that follows: 6 words, where 4 would do. */
static uint32_t *put_engine_release(uint32_t *word, uint64_t address, uint32_t ticket)
{
	const uint32_t method = GDRI_DMA_SET_SEMAPHORE_A;

	word = put_header(word, GDRI_DMA_COPY_SUBCHANNEL, method, 1);
	*word++ = (uint32_t)(address >> 32);
	word = put_header(word, GDRI_DMA_COPY_SUBCHANNEL, method + 4, 1);
	*word++ = (uint32_t)address;
	word = put_header(word, GDRI_DMA_COPY_SUBCHANNEL, method + 8, 1);
	*word++ = ticket;
	return word;
}

static uint32_t launch_bits(enum gdri_dma_completion completion, unsigned flags)
{
	uint32_t bits = GDRI_DMA_LAUNCH_PITCH;

	bits |= flags & GDRI_DMA_NON_PIPELINED ? GDRI_DMA_LAUNCH_NON_PIPELINED :
						 GDRI_DMA_LAUNCH_PIPELINED;
	if (flags & GDRI_DMA_FLUSH || completion == GDRI_DMA_BY_ENGINE_FLUSHED)
		bits |= GDRI_DMA_LAUNCH_FLUSH;
	if (completion != GDRI_DMA_BY_HOST)
		bits |= GDRI_DMA_LAUNCH_SEMAPHORE;
	return bits;
}

static void build_line(const struct gdri_dma_channel *channel,
		       const struct gdri_dma_launch *launch, unsigned flags, uint32_t ticket,
		       uint32_t *word)
{
	const bool by_host = channel->completion == GDRI_DMA_BY_HOST;
	const uint64_t semaphore = channel->queue.semaphore_address;

	if (!by_host)
		word = put_engine_release(word, semaphore, ticket);
	word = put_header(word, GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_OFFSET_IN_UPPER, 4);
	word = put_address(word, launch->src);
	word = put_address(word, launch->dst);
	word = put_header(word, GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_LINE_LENGTH_IN, 2);
	*word++ = (uint32_t)launch->size;
	*word++ = 1;
	word = put_header(word, GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_LAUNCH, 1);
	*word++ = launch_bits(channel->completion, flags);
	if (by_host)
		put_host_release(word, semaphore, ticket);
}

/* Fewest stores that every CPU has; the combining buffer joins them. */
static void store_line(struct gdri_dma_channel *channel, uint32_t line, const uint32_t *words)
{
	volatile uint64_t *to = (volatile uint64_t *)(channel->queue.push + line * LINE_WORDS);

	for (unsigned i = 0; i < LINE_WORDS / 2; i++) {
		uint64_t pair;

		memcpy(&pair, words + 2 * i, sizeof(pair));
		to[i] = pair;
	}
}

static void store_entry(struct gdri_dma_channel *channel, uint32_t line, uint32_t words)
{
	struct gdri_dma_queue *queue = &channel->queue;
	const uint64_t address = queue->push_address + (uint64_t)line * LINE_WORDS * 4;

	queue->ring[channel->entries++ & (queue->ring_entries - 1)] =
		gdri_dma_ring_entry(address, words);
}

/*
 * Hands over what was stored.  The first fence also puts everything that this
 * thread stored through a mapping in front of the doorbell (decision 14).
 */
static void ring_doorbell(struct gdri_dma_channel *channel)
{
	struct gdri_dma_queue *queue = &channel->queue;

	gdri_fence_stores_posted();
	__atomic_store_n(queue->put, channel->entries & (queue->ring_entries - 1),
			 __ATOMIC_RELEASE);
	gdri_fence_stores_posted();
	if (channel->read_first) {
		(void)*channel->read_first;
		gdri_fence_loads_done();
	}
	if (queue->knock) {
		queue->knock(queue);
		return;
	}
	__atomic_store_n(queue->doorbell, queue->token, __ATOMIC_RELEASE);
	gdri_fence_stores_posted();
}

static uint32_t read_semaphore(const struct gdri_dma_channel *channel)
{
	return __atomic_load_n(channel->queue.semaphore, __ATOMIC_ACQUIRE);
}

static inline bool is_over(uint32_t word, uint32_t ticket)
{
	return (int32_t)(word - ticket) >= 0;
}

/*
 * Death.  Whoever finds out first takes the state from OPEN to CLOSING, under the
 * lock, so that nobody is in the middle of a submission; waits until nobody
 * polls any more, since the port takes the semaphore's memory away; and closes.
 */
static int wait_for_outcome(struct gdri_dma_channel *channel)
{
	int state;

	while ((state = atomic_load(&channel->state)) == GDRI_DMA_QUEUE_CLOSING)
		sched_yield();
	return state;
}

/*
 * false: one stays, since a signal handler left it by longjmp.  The others only
 * need a processor to leave, which on a busy machine may take its time.
 */
static bool pollers_are_out(struct gdri_dma_channel *channel)
{
	uint64_t now = gdri_dma_now_ns(), waited = 0;

	while (atomic_load(&channel->pollers) != 0) {
		const uint64_t last = now;

		sched_yield();
		now = gdri_dma_now_ns();
		waited += now - last < LONGEST_STEP_NS ? now - last : LONGEST_STEP_NS;
		if (waited > POLLERS_TIMEOUT_NS)
			return false;
	}
	return true;
}

static int close_dead(struct gdri_dma_channel *channel, int cause)
{
	const struct gdri_log *log = channel->queue.space->port->log;
	const unsigned number = channel->queue.engine.number;
	const char *fate = "gone";
	bool first;

	gdri_dma_lock_take(&channel->lock);
	first = gdri_dma_channel_is_open(channel);
	if (first)
		atomic_store(&channel->state, GDRI_DMA_QUEUE_CLOSING);
	gdri_dma_lock_drop(&channel->lock);
	if (!first)
		return wait_for_outcome(channel);

	if (!pollers_are_out(channel) ||
	    channel->queue.space->port->ops->close_queue(&channel->queue) != 0) {
		cause = -EOWNERDEAD;
		fate = "not known to be gone; memory that it was given is not used any more";
	}
	gdri_warn(log, "DMA: the channel of COPY%u died; it is %s", number, fate);
	atomic_store(&channel->state, cause);
	return cause;
}

struct watch {
	uint32_t word;
	uint64_t last_ns;	/* of the last look; 0: none yet */
	uint64_t still_ns;	/* time seen without a change of word */
	uint64_t total_ns;
};

/* 0: go on polling; otherwise why the channel is given up. */
static int look_around(struct gdri_dma_channel *channel, struct watch *watch)
{
	const uint64_t now = gdri_dma_now_ns();
	const uint32_t word = read_semaphore(channel);
	uint64_t step = watch->last_ns ? now - watch->last_ns : 0;
	unsigned error;

	if (!gdri_dma_channel_is_open(channel))
		return -ECANCELED;
	error = __atomic_load_n(channel->queue.notifier, __ATOMIC_ACQUIRE);
	if (error != 0) {
		gdri_warn(channel->queue.space->port->log, "DMA: COPY%u: channel error (Xid) %u",
			  channel->queue.engine.number, error);
		return -EIO;
	}
	if (step > LONGEST_STEP_NS)
		step = LONGEST_STEP_NS;
	watch->still_ns = word == watch->word ? watch->still_ns + step : 0;
	watch->total_ns += step;
	watch->word = word;
	watch->last_ns = now;
	if (watch->still_ns > channel->timeout_ns)
		return -ETIMEDOUT;
	if (watch->total_ns > YIELD_AFTER_NS)
		sched_yield();
	return 0;
}

/* equal: the first ticket, before which the semaphore's word means nothing. */
static int poll_ticket(struct gdri_dma_channel *channel, uint32_t ticket, bool equal)
{
	struct watch watch = { .word = read_semaphore(channel) };
	int rc;

	for (unsigned turn = 1;; turn++) {
		const uint32_t word = read_semaphore(channel);

		if (equal ? word == ticket : is_over(word, ticket))
			return 0;
		gdri_dma_relax();
		if (turn % TURNS_PER_LOOK != 0)
			continue;
		rc = look_around(channel, &watch);
		if (rc != 0)
			return rc;
	}
}

static int wait_ticket(struct gdri_dma_channel *channel, uint32_t ticket, bool equal)
{
	int rc = -ECANCELED;

	/* Both sequentially consistent, as the closing thread's stores and looks are. */
	atomic_fetch_add(&channel->pollers, 1);
	if (atomic_load(&channel->state) == GDRI_DMA_QUEUE_OPEN)
		rc = poll_ticket(channel, ticket, equal);
	atomic_fetch_sub(&channel->pollers, 1);
	if (__builtin_expect(rc == 0, 1)) {
		gdri_fence_loads_done();
		return 0;
	}
	return rc == -ECANCELED ? wait_for_outcome(channel) : close_dead(channel, rc);
}

int gdri_dma_channel_wait(struct gdri_dma_channel *channel, uint32_t ticket)
{
	return wait_ticket(channel, ticket, false);
}

/* The lock is held; the caller has made sure of the room. */
static void write_launches(struct gdri_dma_channel *channel,
			   const struct gdri_dma_launch *launches, unsigned count,
			   unsigned flags, uint32_t ticket)
{
	uint32_t words[LINE_WORDS];
	uint32_t start = ticket & (channel->lines - 1);
	uint32_t end = start;

	for (unsigned i = 0; i < count; i++) {
		build_line(channel, &launches[i], flags, ticket + i, words);
		store_line(channel, end++, words);
		/* An entry's words are contiguous: one more at the end of the buffer. */
		if (end == channel->lines || i + 1 == count) {
			store_entry(channel, start, (end - start) * LINE_WORDS);
			start = end = 0;
		}
	}
	ring_doorbell(channel);
}

/*
 * A launch has a line to itself until its ticket is over, and there is never
 * less ring than lines, so lines are all the room that counts.  false: *blocker
 * has to be over first.
 */
static bool has_room(struct gdri_dma_channel *channel, unsigned count, uint32_t issued,
		     uint32_t *blocker)
{
	*blocker = issued + count - channel->lines;
	return is_over(read_semaphore(channel), *blocker);
}

int gdri_dma_channel_submit(struct gdri_dma_channel *channel,
			    const struct gdri_dma_launch *launches, unsigned count,
			    unsigned flags, uint32_t *first)
{
	uint32_t issued, blocker = 0;
	bool open, room;
	int rc;

	for (;;) {
		gdri_dma_lock_take(&channel->lock);
		open = gdri_dma_channel_is_open(channel);
		issued = atomic_load_explicit(&channel->issued, memory_order_relaxed);
		room = open && has_room(channel, count, issued, &blocker);
		if (room) {
			write_launches(channel, launches, count, flags, issued + 1);
			atomic_store_explicit(&channel->issued, issued + count,
					      memory_order_relaxed);
		}
		gdri_dma_lock_drop(&channel->lock);
		if (room)
			break;
		rc = open ? gdri_dma_channel_wait(channel, blocker) : wait_for_outcome(channel);
		if (rc != 0)
			return rc;
	}
	*first = issued + 1;
	return 0;
}

/* The largest power of two that is in no way more than the queue has. */
static uint32_t count_lines(const struct gdri_dma_queue *queue)
{
	uint32_t lines = queue->push_words / LINE_WORDS;

	/* A full ring would look empty; and a batch may take one entry more. */
	return lines < queue->ring_entries / 2 ? lines : queue->ring_entries / 2;
}

/* Names the copy object and releases the first ticket, in a line of its own. */
static int start_channel(struct gdri_dma_channel *channel, uint32_t ticket)
{
	uint32_t words[LINE_WORDS] = { 0 };
	uint32_t *end = words;
	const uint32_t line = ticket & (channel->lines - 1);

	if (ticket == read_semaphore(channel))
		ticket += channel->lines;
	end = put_header(end, GDRI_DMA_COPY_SUBCHANNEL, GDRI_DMA_SET_OBJECT, 1);
	*end++ = channel->queue.copy_class;
	end = put_host_release(end, channel->queue.semaphore_address, ticket);
	store_line(channel, line, words);
	store_entry(channel, line, (uint32_t)(end - words));
	atomic_store_explicit(&channel->issued, ticket, memory_order_relaxed);
	ring_doorbell(channel);
	return wait_ticket(channel, ticket, true);
}

int gdri_dma_channel_open(struct gdri_dma_space *space, const struct gdri_dma_engine *engine,
			  const struct gdri_dma_options *options,
			  volatile const uint32_t *behind_bar1, struct gdri_dma_channel *channel)
{
	int rc;

	*channel = (struct gdri_dma_channel){
		.completion = options->completion,
		.timeout_ns = options->timeout_ns,
	};
	rc = space->port->ops->open_queue(space, engine, &channel->queue);
	if (rc != 0)
		return rc;
	if (channel->queue.doorbell_apart || options->read_before_submit)
		channel->read_first = behind_bar1;
	channel->lines = count_lines(&channel->queue);
	rc = channel->lines < GDRI_DMA_BATCH ? -EOPNOTSUPP :
					       start_channel(channel, options->first_ticket);
	if (rc == 0)
		return 0;
	gdri_debug(space->port->log, "DMA: a new channel of COPY%u does not work",
		   engine->number);
	return gdri_dma_channel_close(channel) == -EOWNERDEAD ? -EOWNERDEAD : rc;
}

int gdri_dma_channel_close(struct gdri_dma_channel *channel)
{
	const int state = wait_for_outcome(channel);

	if (state != GDRI_DMA_QUEUE_OPEN)
		return state == -EOWNERDEAD ? state : 0;
	if (channel->queue.space->port->ops->close_queue(&channel->queue) != 0) {
		atomic_store(&channel->state, -EOWNERDEAD);
		return -EOWNERDEAD;
	}
	atomic_store(&channel->state, -EIO);
	return 0;
}
