/* SPDX-License-Identifier: MIT */
/*
 * Judges a trace of memory accesses: a planned list of copies lies spread over
 * one range that stands in for a mapping, and of each access to that range it
 * is known where it begins and how long it is.
 */
#ifndef TESTS_COPY_HELPER_JUDGE_H
#define TESTS_COPY_HELPER_JUDGE_H

#include "copy/engine.h"

#include <stdint.h>

/* What a routine can do wrong. */
enum judge_fault {
	JUDGE_OUTSIDE,		/* touches a byte that belongs to no copy */
	JUDGE_TWICE,		/* touches a byte again */
	JUDGE_MISSED,		/* leaves a byte out */
	JUDGE_SPLIT,		/* an aligned 1, 2, 4 or 8 bytes take more than one access */
	JUDGE_UNALIGNED,	/* an access is not aligned to its own size */
	JUDGE_TOO_WIDE,		/* an access is wider than the mapping's type allows */
	JUDGE_WRONG_KIND,	/* loads where it may only store, or the reverse */
	JUDGE_FAULTS
};

struct judge_copy {
	size_t offset;		/* in the range */
	size_t host_offset;	/* in the host's buffer */
	size_t size;
	unsigned accesses;
};

struct judge {
	struct judge_copy *copies;	/* in order of offset, with gaps between */
	size_t count;
	size_t length;			/* of the whole range */
	uintptr_t base;			/* where it lies, in the traced program */
	bool store;			/* the accesses that the copies may make */
	size_t widest;
	unsigned char *touched;		/* one per byte of the range */
	unsigned long faults[JUDGE_FAULTS];
};

/*
 * Every size up to max_size at every offset within 64 bytes; then sizes around
 * the powers of two from 512 up to max_power, fewer of the large ones.
 */
void judge_plan(struct judge *judge, size_t max_size, size_t max_power);
void judge_free(struct judge *judge);

/* One access; those that do not meet the range are ignored. */
void judge_access(struct judge *judge, bool store, uintptr_t address, size_t size);

/* After the last one: counts what was left out or split, prints and returns the faults. */
unsigned long judge_finish(struct judge *judge, const char *name);

/* Performs the copies between the range and a host buffer that judge_host_size() fits. */
void judge_run(const struct judge *judge, gdri_copy_fn copy, char *mapping, char *host);
size_t judge_host_size(const struct judge *judge);

/*
 * A routine by name: those of GDRCOPY_COPY (write-combined mappings), "auto",
 * "device" and "caching", and the planted bad ones.  NULL: this CPU cannot run it.
 */
gdri_copy_fn judge_find_routine(const char *name, bool store);

/* A routine that a judge must catch, and at what. */
struct judge_planted {
	const char *name;
	gdri_copy_fn copy;
	enum judge_fault fault;
};
extern const struct judge_planted judge_planted[];
extern const unsigned judge_planted_count;

#endif
