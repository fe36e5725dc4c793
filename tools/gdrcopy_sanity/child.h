/* SPDX-License-Identifier: MIT */
/* Runs a function in a process of its own and makes sure that it ends. */
#ifndef SANITY_CHILD_H
#define SANITY_CHILD_H

#include <stdbool.h>

struct child_end {
	int status;		/* as from waitpid */
	bool timed_out;
	double seconds;
};

/*
 * Forks; the child leads a process group, calls body and exits with 0 when
 * that returns.  Once it has ended, or timeout_s are over, everything left in
 * its group is killed.  0 or a positive errno when no child could be made.
 */
int child_run(void (*body)(const void *arg), const void *arg, unsigned timeout_s,
	      struct child_end *end);

#endif
