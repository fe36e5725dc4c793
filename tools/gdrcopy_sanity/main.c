/* SPDX-License-Identifier: MIT */
/* gdrcopy_sanity: does this library, on this GPU, keep the promises of the GDRCopy interface? */
#include "cmdline.h"
#include "machine.h"
#include "runner.h"
#include "summary.h"
#include "tests.h"
#include "verdict.h"

static void run_set(enum set set)
{
	struct outcome outcome;

	for (const struct test *test = test_sets[set]; test->name; test++) {
		if (!cmdline_selects(set, test))
			continue;
		summary_running(test->name);
		runner_run(test, cmdline.timeout_s, &outcome);
		summary_outcome(test->name, &outcome);
	}
}

int main(int argc, char **argv)
{
	cmdline_parse(argc, argv);
	verdict_init();
	machine_probe(cmdline.ordinal, cmdline.timeout_s);
	summary_begin();
	for (int set = 0; set < SET_COUNT; set++)
		run_set((enum set)set);
	return summary_end(cmdline.quiet);
}
