/* SPDX-License-Identifier: MIT */
/* The copy engine of a channel: moves bytes as late and as disorderly as a real one may. */
#include <string.h>

#include "channel.h"

/*
 * Launches wait in a list until something orders them: a launch that is not
 * pipelined, a flush, a semaphore of the host that waits for idle, an idle
 * queue.  Then their bytes move in pieces of random size and order.
 *
 * A semaphore that nothing orders goes ahead of the bytes once in LATE_ODDS
 * times, and they follow LATE_NS later, so that a reader who trusts it meets
 * old bytes.  (Measured on an H200 under load: 13% of copies of 64 KiB.)
 */
#define LATE_ODDS 4
#define LATE_NS 30000

/* xorshift64*; each channel has a seed of its own, so that runs repeat. */
static uint64_t random_number(struct emu_channel *channel)
{
	channel->random ^= channel->random >> 12;
	channel->random ^= channel->random << 25;
	channel->random ^= channel->random >> 27;
	return channel->random * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

/* Errors of a copy engine have numbers of their own: CE0 to CE2, CE3, CE4. */
unsigned emu_engine_error(const struct emu_channel *channel)
{
	static const unsigned errors[EMU_CHANNEL_ENGINES] = { 39, 40, 41, 70, 71 };

	return errors[channel->engine];
}

/*
 * Bytes that follow their semaphore race with the program by intention; byte
 * by byte, the thread sanitizer does not look.  Those that are in order move
 * by memmove, where it does.
 */
__attribute__((no_sanitize("thread")))
static void move_racing(volatile uint8_t *destination, const volatile uint8_t *source, size_t size)
{
	for (size_t i = 0; i < size; i++)
		destination[i] = source[i];
}

static bool move_bytes(struct emu_channel *channel, uint64_t destination, uint64_t source,
		       uint64_t length)
{
	const struct gdrcopy_emu_space *space = channel->space;
	void *to, *from;

	pthread_rwlock_rdlock(&channel->space->lock);
	to = emu_view_translate(space, destination, length);
	from = emu_view_translate(space, source, length);
	if (to && from && channel->stale)
		move_racing(to, from, length);
	else if (to && from)
		memmove(to, from, length);
	pthread_rwlock_unlock(&channel->space->lock);
	if (!to || !from)
		emu_channel_die(channel, EMU_CHANNEL_MMU_FAULT);
	return to && from;
}

/* Moves one end of a launch that is pending, or all of it. */
static bool move_piece(struct emu_channel *channel, unsigned n)
{
	struct emu_launch *launch = &channel->pending[n];
	uint64_t choice = random_number(channel);
	uint64_t size = launch->length, skip = 0;

	if (size > 1 && choice % 4 != 0) {
		size = 1 + (choice >> 8) % (size - 1);
		skip = choice % 4 == 1 ? launch->length - size : 0;
	}
	if (!move_bytes(channel, launch->destination + skip, launch->source + skip, size))
		return false;
	launch->length -= size;
	if (skip == 0) {
		launch->destination += size;
		launch->source += size;
	}
	if (launch->length == 0)
		*launch = channel->pending[--channel->pending_count];
	return true;
}

bool emu_engine_drain(struct emu_channel *channel)
{
	while (channel->pending_count > 0) {
		if (emu_channel_stopped(channel))
			return false;
		if (!move_piece(channel, random_number(channel) % channel->pending_count))
			return false;
	}
	channel->stale = false;
	return true;
}

bool emu_engine_launch(struct emu_channel *channel, const struct emu_launch *launch,
		       bool pipelined)
{
	bool full = channel->pending_count == EMU_CHANNEL_PENDING;

	if ((!pipelined || full) && !emu_engine_drain(channel))
		return false;
	channel->pending[channel->pending_count++] = *launch;
	return true;
}

/* A channel that dies or hangs has often moved a part of the bytes. */
bool emu_engine_misbehave(struct emu_channel *channel)
{
	const struct emu_dma_config *config = &emu_config_get()->dma;
	bool hangs = channel->submission == config->hang_at;
	bool dies = channel->submission == config->die_at;

	if (channel->misbehaved || (!hangs && !dies))
		return true;
	channel->misbehaved = true;
	if (channel->pending_count > 0 && !move_piece(channel, 0))
		return false;
	if (hangs)
		return emu_channel_hang(channel);
	emu_channel_die(channel, emu_engine_error(channel));
	return false;
}

bool emu_engine_release(struct emu_channel *channel, uint64_t address, uint32_t payload,
			bool ordered)
{
	bool late = false;
	uint32_t *word;

	if (!emu_engine_misbehave(channel))
		return false;
	if ((!ordered || emu_config_get()->dma.early) && channel->pending_count > 0)
		late = random_number(channel) % LATE_ODDS == 0;
	if (!late && !emu_engine_drain(channel))
		return false;
	pthread_rwlock_rdlock(&channel->space->lock);
	word = emu_view_translate(channel->space, address, sizeof(*word));
	if (word)
		__atomic_store_n(word, payload, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&channel->space->lock);
	if (!word) {
		emu_channel_die(channel, EMU_CHANNEL_MMU_FAULT);
		return false;
	}
	if (late) {
		channel->stale = true;
		emu_channel_pause(channel, LATE_NS);
	}
	return true;
}
