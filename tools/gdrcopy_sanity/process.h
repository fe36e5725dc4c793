/* SPDX-License-Identifier: MIT */
/* What this process holds open, for tests that look for leaks. */
#ifndef SANITY_PROCESS_H
#define SANITY_PROCESS_H

#include <stdbool.h>

#define PROCESS_MAX_FDS 1024

struct process_fds {
	bool open[PROCESS_MAX_FDS];
	int count;
};

void process_list_fds(struct process_fds *fds);
int process_count_fds(void);

/* Lines of /proc/self/maps. */
int process_count_maps(void);

struct process_state {
	int fds;
	int maps;
};

void process_remember(struct process_state *state);

/* Fails the test when a descriptor, or more than slack mappings, came up since. */
void process_require_same(const struct process_state *state, int slack, const char *after);

#endif
