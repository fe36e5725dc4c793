/* SPDX-License-Identifier: MIT */
/* The command line of gdrcopy_sanity. */
#ifndef SANITY_CMDLINE_H
#define SANITY_CMDLINE_H

#include <stdbool.h>

#include "tests.h"

#define CMDLINE_MAX_NAMED 128

struct cmdline {
	bool quiet;		/* no summary */
	bool extended;
	bool classic;
	int ordinal;
	unsigned timeout_s;
	const char *named[CMDLINE_MAX_NAMED];	/* -t; none: all */
	unsigned named_count;
};

extern struct cmdline cmdline;

/* Ends the program after -h and -l, and with status 1 on a bad command line. */
void cmdline_parse(int argc, char **argv);

bool cmdline_selects(enum set set, const struct test *test);

#endif
