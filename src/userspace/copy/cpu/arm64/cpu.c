/* SPDX-License-Identifier: MIT */
/* The routines of arm64 by name, and the rules that choose among them. */
#include "copy/cpu/cpu.h"

#include "copy/cpu/arm64/routines.h"
#include "copy/cpu/generic/plain.h"

static const struct gdri_copy_routine neon = {
	.name = "neon",
	.needs = GDRI_COPY_ARM64_NEON,
	.store = gdri_copy_neon_store,
	.load = gdri_copy_neon_load,
};

#ifdef GDRI_COPY_HAVE_LS64
static const struct gdri_copy_routine ls64 = {
	.name = "ls64",
	.needs = GDRI_COPY_ARM64_LS64 | GDRI_COPY_ARM64_NEON,
	.store = gdri_copy_ls64_store,
	.load = gdri_copy_ls64_load,
};
#endif

static const struct gdri_copy_routine *const routines[] = {
	&gdri_copy_plain, &neon,
#ifdef GDRI_COPY_HAVE_LS64
	&ls64,
#endif
	NULL
};

/*
 * The rules.  To measure them, run for each NAME
 *
 *	GDRCOPY_COPY=NAME gdrcopy_copybw -s 65536
 *	GDRCOPY_COPY=NAME gdrcopy_copylat
 *
 * on a real GPU and put the winner first.  Not measured yet.  LS64 is there by
 * name only: its accesses fault on ordinary memory, which is what an emulated
 * mapping is.
 */
static const struct gdri_copy_routine *const order[] = { &neon, &gdri_copy_plain, NULL };

/* Every Linux that this library runs on keeps NEON enabled, so cached copies need no choice. */
const struct gdri_copy_cpu gdri_copy_cpu = {
	.detect = gdri_copy_arm64_detect,
	.routines = routines,
	.store_order = order,
	.load_order = order,
	.cached_store = gdri_copy_neon_cached_store,
	.cached_load = gdri_copy_neon_cached_load,
};
