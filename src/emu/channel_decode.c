/* SPDX-License-Identifier: MIT */
/* Reads ring entries and method words, and refuses what it does not know. */
#include <string.h>

#include "channel.h"

/* GP_ENTRY (clc86f.h), as bits of the 64-bit entry. */
#define ENTRY_FETCH UINT64_C(0x3)		/* 0: unconditional */
#define ENTRY_ADDRESS UINT64_C(0xfffffffffc)
#define ENTRY_LEVEL (UINT64_C(3) << 40)		/* 0: main */
#define ENTRY_LENGTH(entry) ((uint32_t)((entry) >> 42) & 0x1fffff)
#define ENTRY_SYNC (UINT64_C(1) << 63)		/* 0: proceed */

/* A method header: operation 31:29, count 28:16, subchannel 15:13, word address 11:0. */
#define HEADER_OPERATION(word) ((word) >> 29)
#define HEADER_COUNT(word) ((word) >> 16 & 0x1fff)
#define HEADER_SUBCHANNEL(word) ((word) >> 13 & 0x7)
#define HEADER_UNUSED(word) ((word) & 0x1000)
#define HEADER_METHOD(word) (((word) & 0xfff) << 2)
#define OPERATION_INCREMENT 1

#define SUBCHANNEL_HOST 0
#define SUBCHANNEL_COPY 4			/* cla06fsubch.h */

enum host_method {
	SET_OBJECT = 0x00,
	SEM_ADDR_LO = 0x5c,			/* bits 31:2 */
	SEM_ADDR_HI = 0x60,			/* bits 24:0 */
	SEM_PAYLOAD_LO = 0x64,
	SEM_PAYLOAD_HI = 0x68,
	SEM_EXECUTE = 0x6c
};
#define SEM_EXECUTE_RELEASE 1u
#define SEM_EXECUTE_WFI (1u << 20)

enum copy_method {
	SET_SEMAPHORE_A = 0x240,
	SET_SEMAPHORE_PAYLOAD = 0x248,
	LAUNCH_DMA = 0x300,
	OFFSET_IN_UPPER = 0x400,
	OFFSET_OUT_LOWER = 0x40c,
	LINE_LENGTH_IN = 0x418,
	LINE_COUNT = 0x41c
};
#define UPPER_BITS 0x1ffffffu			/* upper words of addresses: bits 24:0 */

#define LAUNCH_TYPE 0x3u
#define LAUNCH_FLUSH (1u << 2)
#define LAUNCH_SEMAPHORE (3u << 3)
#define LAUNCH_PITCH (3u << 7)			/* both sides */
#define LAUNCH_KNOWN (LAUNCH_TYPE | LAUNCH_FLUSH | LAUNCH_SEMAPHORE | LAUNCH_PITCH)
enum { TYPE_NONE, TYPE_PIPELINED, TYPE_NON_PIPELINED };
enum { SEMAPHORE_NONE, SEMAPHORE_ONE_WORD };

/* Bits of emu_channel_state.written. */
#define WRITTEN_SEMAPHORE 0x7u
#define WRITTEN_OFFSETS (0xfu << 3)
#define WRITTEN_LENGTH (1u << 7)

static bool refuse(struct emu_channel *channel, unsigned error)
{
	emu_channel_die(channel, error);
	return false;
}

static uint64_t join(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static bool execute_semaphore(struct emu_channel *channel, uint32_t value)
{
	const uint32_t *host = channel->state.host;

	if ((value & ~SEM_EXECUTE_WFI) != SEM_EXECUTE_RELEASE)
		return refuse(channel, EMU_CHANNEL_HOST_ERROR);
	return emu_engine_release(channel, join(host[1], host[0]), host[2],
				  value & SEM_EXECUTE_WFI);
}

static bool run_host_method(struct emu_channel *channel, uint32_t method, uint32_t value)
{
	switch (method) {
	case SEM_ADDR_LO:
		if (value % 4 != 0)
			return refuse(channel, EMU_CHANNEL_HOST_ERROR);
		break;
	case SEM_ADDR_HI:
		if (value & ~UPPER_BITS)
			return refuse(channel, EMU_CHANNEL_HOST_ERROR);
		break;
	case SEM_PAYLOAD_LO:
	case SEM_PAYLOAD_HI:
		break;
	case SEM_EXECUTE:
		return execute_semaphore(channel, value);
	default:
		return refuse(channel, EMU_CHANNEL_HOST_ERROR);
	}
	channel->state.host[(method - SEM_ADDR_LO) / 4] = value;
	return true;
}

/* SET_OBJECT is the host's, on the subchannel that the object shall have. */
static bool set_object(struct emu_channel *channel, uint32_t value)
{
	if (value != EMU_CHANNEL_COPY_CLASS)
		return refuse(channel, EMU_CHANNEL_HOST_ERROR);
	channel->state.has_object = true;
	return true;
}

static bool check_transfer(struct emu_channel *channel, uint32_t value)
{
	const struct emu_channel_state *state = &channel->state;

	if ((value & LAUNCH_PITCH) != LAUNCH_PITCH || state->line[0] == 0 ||
	    (state->written & WRITTEN_OFFSETS) != WRITTEN_OFFSETS ||
	    !(state->written & WRITTEN_LENGTH))
		return refuse(channel, emu_engine_error(channel));
	return true;
}

static bool launch_transfer(struct emu_channel *channel, uint32_t value)
{
	const struct emu_channel_state *state = &channel->state;
	struct emu_launch launch = {
		.source = join(state->offset[0], state->offset[1]),
		.destination = join(state->offset[2], state->offset[3]),
		.length = state->line[0],
	};

	return check_transfer(channel, value) &&
	       emu_engine_launch(channel, &launch, (value & LAUNCH_TYPE) == TYPE_PIPELINED);
}

static bool launch_semaphore(struct emu_channel *channel, uint32_t value)
{
	const uint32_t *semaphore = channel->state.semaphore;
	uint64_t address = join(semaphore[0], semaphore[1]);

	if ((channel->state.written & WRITTEN_SEMAPHORE) != WRITTEN_SEMAPHORE || address % 4 != 0)
		return refuse(channel, emu_engine_error(channel));
	return emu_engine_release(channel, address, semaphore[2], value & LAUNCH_FLUSH);
}

static bool launch(struct emu_channel *channel, uint32_t value)
{
	unsigned type = value & LAUNCH_TYPE;
	unsigned semaphore = (value & LAUNCH_SEMAPHORE) >> 3;

	if ((value & ~LAUNCH_KNOWN) || type > TYPE_NON_PIPELINED || semaphore > SEMAPHORE_ONE_WORD)
		return refuse(channel, emu_engine_error(channel));
	if (type != TYPE_NONE && !launch_transfer(channel, value))
		return false;
	if (semaphore == SEMAPHORE_ONE_WORD)
		return launch_semaphore(channel, value);
	return !(value & LAUNCH_FLUSH) || emu_engine_drain(channel);
}

static bool run_copy_method(struct emu_channel *channel, uint32_t method, uint32_t value)
{
	struct emu_channel_state *state = &channel->state;
	unsigned n;

	if (method >= SET_SEMAPHORE_A && method <= SET_SEMAPHORE_PAYLOAD) {
		n = (method - SET_SEMAPHORE_A) / 4;
		if (n == 0 && (value & ~UPPER_BITS))
			return refuse(channel, emu_engine_error(channel));
		state->semaphore[n] = value;
		state->written |= 1u << n;
		return true;
	}
	if (method >= OFFSET_IN_UPPER && method <= OFFSET_OUT_LOWER) {
		n = (method - OFFSET_IN_UPPER) / 4;
		if (n % 2 == 0 && (value & ~UPPER_BITS))
			return refuse(channel, emu_engine_error(channel));
		state->offset[n] = value;
		state->written |= 1u << (3 + n);
		return true;
	}
	switch (method) {
	case LINE_LENGTH_IN:
		state->line[0] = value;
		state->written |= WRITTEN_LENGTH;
		return true;
	case LINE_COUNT:
		/* Several lines need MULTI_LINE_ENABLE and pitches, which nobody uses here. */
		state->line[1] = value;
		return value == 1 || refuse(channel, emu_engine_error(channel));
	case LAUNCH_DMA:
		return launch(channel, value);
	default:
		return refuse(channel, emu_engine_error(channel));
	}
}

/*
 * Real hosts take semaphore methods on any subchannel; the library promises to
 * use those of the class headers, and the model holds it to that.
 */
static bool run_method(struct emu_channel *channel, unsigned subchannel, uint32_t method,
		       uint32_t value)
{
	if (subchannel == SUBCHANNEL_HOST)
		return run_host_method(channel, method, value);
	if (subchannel != SUBCHANNEL_COPY)
		return refuse(channel, EMU_CHANNEL_HOST_ERROR);
	if (method == SET_OBJECT)
		return set_object(channel, value);
	if (!channel->state.has_object)
		return refuse(channel, EMU_CHANNEL_HOST_ERROR);
	return run_copy_method(channel, method, value);
}

static bool run_words(struct emu_channel *channel, const uint32_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count;) {
		uint32_t header = words[i++];
		uint32_t values = HEADER_COUNT(header);

		if (HEADER_OPERATION(header) != OPERATION_INCREMENT || HEADER_UNUSED(header) ||
		    values == 0 || values > count - i)
			return refuse(channel, EMU_CHANNEL_HOST_ERROR);
		for (uint32_t n = 0; n < values; n++, i++)
			if (!run_method(channel, HEADER_SUBCHANNEL(header),
					HEADER_METHOD(header) + 4 * n, words[i]))
				return false;
	}
	return true;
}

/* The words that an entry names, or the error's number; the space's lock is held. */
static unsigned find_words(const struct emu_channel *channel, uint64_t entry,
			   const uint32_t **words, uint32_t *count)
{
	*count = ENTRY_LENGTH(entry);
	if ((entry & (ENTRY_FETCH | ENTRY_LEVEL | ENTRY_SYNC)) || *count == 0 ||
	    *count > channel->push_words)
		return EMU_CHANNEL_HOST_ERROR;
	*words = emu_view_translate(channel->space, entry & ENTRY_ADDRESS,
				    (uint64_t)*count * sizeof(uint32_t));
	return *words ? 0 : EMU_CHANNEL_MMU_FAULT;
}

static uint64_t sum_words(const uint32_t *words, uint32_t count)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);	/* FNV-1a, word by word */

	for (uint32_t i = 0; i < count; i++)
		sum = (sum ^ words[i]) * UINT64_C(0x100000001b3);
	return sum;
}

uint64_t emu_channel_sum(struct emu_channel *channel, uint64_t entry)
{
	const uint32_t *words;
	uint64_t sum = 0;
	uint32_t count;

	pthread_rwlock_rdlock(&channel->space->lock);
	if (find_words(channel, entry, &words, &count) == 0)
		sum = sum_words(words, count);
	pthread_rwlock_unlock(&channel->space->lock);
	return sum;
}

/*
 * Executes a copy of the words: they are the channel's from the knock to the
 * completion, and a change in between is a mistake that a real channel would
 * see only now and then.
 */
bool emu_channel_execute(struct emu_channel *channel, const struct emu_channel_slot *slot)
{
	const uint32_t *words;
	uint32_t count;
	unsigned error;

	pthread_rwlock_rdlock(&channel->space->lock);
	error = find_words(channel, slot->entry, &words, &count);
	if (error == 0)
		memcpy(channel->words, words, count * sizeof(*words));
	pthread_rwlock_unlock(&channel->space->lock);
	if (error == 0 && sum_words(channel->words, count) != slot->sum)
		error = EMU_CHANNEL_HOST_ERROR;
	if (error != 0)
		return refuse(channel, error);
	return run_words(channel, channel->words, count) && emu_engine_misbehave(channel);
}
