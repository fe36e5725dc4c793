/* SPDX-License-Identifier: MIT */
/* Between the files of back end emu: its sessions and pins. */
#ifndef GDRI_BACKEND_EMU_SESSION_H
#define GDRI_BACKEND_EMU_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "backend/backend.h"

#include "../../../emu/gdrcopy_emu.h"

/*
 * A session keeps the emulated driver loaded, whatever the program does with
 * its own reference, so that unpin and close work until the end.  Its
 * descriptor is an empty file that only identifies it: the file's number is
 * compared at each pin and map, so that a descriptor which came from another
 * session or process is refused, as gdrdrv refuses it.
 */
struct emu_session {
	struct gdri_backend_session base;
	void *library;
	const struct gdrcopy_emu_entry *entry;
	int fd;
	dev_t device;
	ino_t inode;
	uint32_t pins;		/* made so far; numbers the next one */
};

/*
 * A pin holds the physical memory through the driver's reference count and
 * needs no descriptor or address range of its own, so that their number is
 * bounded by host memory alone.
 */
struct emu_pin {
	struct gdrcopy_emu_range range;
	uint64_t bar1;		/* bytes of the window that this pin occupies */
	bool cacheable;		/* reached over the coherent link */
};

static inline struct emu_session *session_of(struct gdri_backend_session *session)
{
	return (struct emu_session *)session;
}

/* A failure that GDRCOPY_EMU=fail=STEP asks for: a negative errno, logged, or 0. */
int gdri_emu_check_injected(const struct emu_session *session, const char *step);

/* Accounts for the pin's part of BAR1; -ENOMEM, logged. */
int gdri_emu_reserve_bar1(const struct emu_session *session, struct emu_pin *record, uint64_t size);

int gdri_emu_export_memory(struct gdri_backend_session *base, const struct gdri_pin *pin, int *fd);
int gdri_emu_import_memory(struct gdri_backend_session *base,
			   const struct gdri_backend_share *share, int fd, struct gdri_pin *pin);

#endif
