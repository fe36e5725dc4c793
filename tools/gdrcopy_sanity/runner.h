/* SPDX-License-Identifier: MIT */
/* Runs one test and says how it ended. */
#ifndef SANITY_RUNNER_H
#define SANITY_RUNNER_H

#include "tests.h"
#include "verdict.h"

struct outcome {
	enum verdict verdict;
	double seconds;
	char reason[512];	/* empty for a passed test */
};

void runner_run(const struct test *test, unsigned timeout_s, struct outcome *outcome);

#endif
