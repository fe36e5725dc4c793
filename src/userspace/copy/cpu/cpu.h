/* SPDX-License-Identifier: MIT */
/* What each architecture's folder tells select.c: its routines and which are best. */
#ifndef GDRI_COPY_CPU_H
#define GDRI_COPY_CPU_H

#include "copy/engine.h"

/* One routine family, by the name that GDRCOPY_COPY knows. */
struct gdri_copy_routine {
	const char *name;
	unsigned needs;		/* feature bits of this architecture; 0: every CPU has it */
	gdri_copy_fn store;	/* to write-combined memory */
	gdri_copy_fn load;	/* from it; NULL: only stores, take the best load */
};

/* One per build; lists end with NULL. */
struct gdri_copy_cpu {
	/* The feature bits that this CPU and its kernel have enabled. */
	unsigned (*detect)(void);
	const struct gdri_copy_routine *const *routines;
	/* Best first; the first that the CPU can run is taken.  The last needs nothing. */
	const struct gdri_copy_routine *const *store_order;
	const struct gdri_copy_routine *const *load_order;
	/* Ordinary cached accesses and a full fence. */
	gdri_copy_fn cached_store;
	gdri_copy_fn cached_load;
};

extern const struct gdri_copy_cpu gdri_copy_cpu;

#endif
