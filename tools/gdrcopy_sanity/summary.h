/* SPDX-License-Identifier: MIT */
/* What gdrcopy_sanity prints: the lines that scripts parse, or JSON. */
#ifndef SANITY_SUMMARY_H
#define SANITY_SUMMARY_H

#include <stdbool.h>

#include "runner.h"

void summary_begin(void);
void summary_running(const char *name);
void summary_outcome(const char *name, const struct outcome *outcome);

/* Prints the end and returns the program's exit status. */
int summary_end(bool quiet);

#endif
