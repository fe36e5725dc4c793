/* SPDX-License-Identifier: MIT */
/* What the two files of one program, one for each interface, say to each other. */
#ifndef TESTS_API3_PAIR_PAIR_H
#define TESTS_API3_PAIR_PAIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The file of 2.6: a session and a mapping of its own on this memory. */
struct old_side {
	void *session;
	uint64_t handle;
	void *va;
};

int old_begin(struct old_side *side, uint64_t ptr, size_t size);
int old_write(const struct old_side *side, const void *host, size_t size);
int old_end(const struct old_side *side);

/* How many calls of 2.6 took a session or handle of version 3 for theirs. */
int old_accepts(void *session, uint64_t handle, const void *host);

#ifdef __cplusplus
}
#endif

#endif
