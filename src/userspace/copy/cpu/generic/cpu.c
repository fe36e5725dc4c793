/* SPDX-License-Identifier: MIT */
/* Architectures without routines of their own (POWER): plain words. */
#include "copy/cpu/cpu.h"

#include "copy/cpu/generic/plain.h"

static unsigned detect(void)
{
	return 0;
}

static const struct gdri_copy_routine *const routines[] = { &gdri_copy_plain, NULL };

const struct gdri_copy_cpu gdri_copy_cpu = {
	.detect = detect,
	.routines = routines,
	.store_order = routines,
	.load_order = routines,
	.cached_store = gdri_copy_plain_cached_store,
	.cached_load = gdri_copy_plain_cached_load,
};
