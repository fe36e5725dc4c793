/* SPDX-License-Identifier: MIT */
/* Memory objects as descriptors for other processes: a part of a memfd, claimed by a lock. */
#ifndef EMU_SHARE_H
#define EMU_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcopy_emu.h"

/*
 * A descriptor opens the memfd that has the object anew, stands at the object's
 * offset, and holds a read lock (F_OFD_SETLK) on the object's bytes.  The lock
 * goes with the last duplicate of the descriptor in any process, so it is at once
 * the proof of what is named and the claim that keeps the bytes.
 */
int emu_share_export(const struct gdrcopy_emu_range *range, int *fd);
int emu_share_import(int fd, int device, uint64_t size, struct gdrcopy_emu_range *range);

/* Whether a descriptor claims a part of the range; fd itself claims nothing. */
bool emu_share_is_claimed(int fd, uint64_t offset, uint64_t size);

#endif
