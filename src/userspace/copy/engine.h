/* SPDX-License-Identifier: MIT */
/* How bytes move between host memory and a mapping. */
#ifndef GDRI_COPY_ENGINE_H
#define GDRI_COPY_ENGINE_H

#include <stddef.h>
#include <stdbool.h>

#include "core/log.h"
#include "gdrapi.h"

/*
 * Copies size bytes; any alignment of either side; nothing happens to either
 * side when size is 0.  Each byte of the mapping's side is accessed once, in
 * naturally aligned accesses, and none outside the range; 1, 2, 4 or 8 bytes at
 * a mapping address that is a multiple of the size are one access.  The host's
 * side is not touched outside the range either.  The ranges do not overlap.
 *
 * Fences are included.  Stores to a mapping are handed to the bus before the
 * function returns, ahead of the caller's later stores.  Loads from a mapping
 * begin after the caller's earlier loads and are complete at the return.  On
 * cached mappings a full fence closes either direction.
 *
 * No system call, no lock, no allocation.
 */
typedef void (*gdri_copy_fn)(void *dst, const void *src, size_t size);

/* One choice of routines for this process; lives in a session. */
struct gdri_copy_engine {
	const char *store_name;	/* routines for write-combined memory, by GDRCOPY_COPY's names */
	const char *load_name;
	gdri_copy_fn to_mapping[GDR_MAPPING_TYPE_MAX];	/* [NONE] is never called */
	gdri_copy_fn from_mapping[GDR_MAPPING_TYPE_MAX];
};

/*
 * Chooses routines for this CPU, or the one that GDRCOPY_COPY names.  A name
 * that this CPU or build cannot run is logged and the choice falls back to
 * the automatic one; one that has stores alone gets the automatic loads.  The
 * function never fails.  NULL or "" forces nothing.
 */
void gdri_copy_engine_select(const char *forced, const struct gdri_log *log,
			     struct gdri_copy_engine *engine);

/*
 * For tests and gdrcopy_info: the i-th routine family of this build, NULL past
 * the end; *usable says whether this CPU can run it.
 */
const char *gdri_copy_routine_name(unsigned i, bool *usable);

#endif
