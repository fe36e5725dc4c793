/* SPDX-License-Identifier: MIT */
/* Copies of 2.6, for a file that includes the header of version 3. */
#ifndef TESTS_API3_NOCUDA_OLD_H
#define TESTS_API3_NOCUDA_OLD_H

#include <stddef.h>
#include <stdint.h>

struct old {
	void *g;
	uint64_t handle;
	void *va;
	size_t size;
};

/* 0, or the error of the first call that failed. */
int old_begin(struct old *old, uint64_t ptr, size_t size);
int old_copy(const struct old *old, void *host, size_t size);
int old_end(const struct old *old);

#endif
