/* SPDX-License-Identifier: MIT */
/* A channel of the emulated driver, driven by hand. */
#ifndef TESTS_EMU_HELPER_CHANNEL_H
#define TESTS_EMU_HELPER_CHANNEL_H

#include "gdrcopy_emu.h"
#include "helper_case.h"

/*
 * Words are written as numbers: what the class headers say (clc86f.h,
 * clc8b5.h), independent of the library's names for them.
 */
#define HOST 0
#define COPY 4
#define LAUNCH_PIPELINED 0x181u
#define LAUNCH_NON_PIPELINED 0x182u
#define LAUNCH_NOTHING 0x0u
#define LAUNCH_FLUSH 0x4u
#define LAUNCH_RELEASE 0x8u
#define EXECUTE_RELEASE 0x1u
#define EXECUTE_RELEASE_WFI 0x100001u

#define RIG_BYTES ((size_t)1 << 20)

/* One space with one queue, device memory and host memory that both see. */
struct rig {
	const struct gdrcopy_emu_entry *entry;
	struct gdrcopy_emu_space *space;
	struct gdrcopy_emu_queue *queue;
	CUdeviceptr ptr;		/* RIG_BYTES of device memory */
	struct gdrcopy_emu_range range;
	uint64_t device;		/* where engines see it */
	unsigned char *host;		/* RIG_BYTES of host memory */
	uint64_t host_address;
	uint32_t words;			/* written to the push buffer in all */
	uint32_t start;			/* first of the entry that is being written */
	uint32_t put;
	uint32_t ticket;		/* last one that was given out */
};

const struct gdrcopy_emu_entry *channel_entry(void);
void *channel_pages(size_t size);	/* host memory, zeroed */

void rig_open(struct rig *rig, int device);
void rig_close(struct rig *rig);
void rig_open_queue(struct rig *rig, unsigned engine);	/* SET_OBJECT is not sent */
void rig_close_queue(struct rig *rig);

/* Words of the next entry. */
void rig_word(struct rig *rig, uint32_t word);
void rig_methods(struct rig *rig, unsigned subchannel, uint32_t method, unsigned count, ...);
void rig_set_object(struct rig *rig);
void rig_copy(struct rig *rig, uint64_t destination, uint64_t source, uint32_t length,
	      uint32_t launch);
void rig_target(struct rig *rig, uint64_t address, uint32_t payload);	/* the engine's semaphore */
void rig_release(struct rig *rig, uint64_t address, uint32_t payload, uint32_t execute);

/* Ends the entry, and tells the channel. */
void rig_entry(struct rig *rig);
void rig_raw_entry(struct rig *rig, uint64_t entry);
void rig_knock(struct rig *rig);

/* All in one: a copy, and a ticket by the host engine that waits for it. */
uint32_t rig_submit(struct rig *rig, uint64_t destination, uint64_t source, uint32_t length);

/* Whether the ticket came: within two seconds, on a channel that lives. */
bool rig_wait(const struct rig *rig, uint32_t ticket);
/* The channel's error, for which it waits as long, or 0. */
unsigned rig_error(const struct rig *rig);
void rig_sleep_us(unsigned us);

#endif
