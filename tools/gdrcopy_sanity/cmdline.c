/* SPDX-License-Identifier: MIT */
/* The command line of gdrcopy_sanity. */
#include "cmdline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/report.h"
#include "verdict.h"

struct cmdline cmdline = { .timeout_s = 180 };

enum long_only {
	OPTION_CLASSIC = 256,
	OPTION_TIMEOUT
};

static const struct option_spec option_table[] = {
	{ 'l', "list", NULL, "list the tests and exit" },
	{ 'v', "verbose", NULL, "a line per test; details and reasons on stderr" },
	{ 's', "no-summary", NULL, "print no summary" },
	{ 't', "test", "NAME", "run only this test; may be repeated" },
	{ 'd', "device", "GPU", "CUDA ordinal of the GPU (default 0)" },
	{ 'e', "extended", NULL, "also run the extended test" },
	{ OPTION_CLASSIC, "classic", NULL, "only the tests that GDRCopy 2.6 has" },
	{ OPTION_TIMEOUT, "timeout", "SECONDS", "after which a test has failed (default 180)" },
	{ 0 }
};

_Noreturn static void print_list(void)
{
	static const char *const titles[SET_COUNT] = {
		[SET_CLASSIC] = "List of all available tests:",
		[SET_EXTENDED] = "List of all available extended tests:",
		[SET_PLUS] = "List of all available tests beyond GDRCopy 2.6:"
	};

	for (int set = 0; set < SET_COUNT; set++) {
		printf("%s%s\n", set ? "\n" : "", titles[set]);
		for (const struct test *test = test_sets[set]; test->name; test++)
			printf("    %s\n", test->name);
	}
	exit(EXIT_SUCCESS);
}

static bool test_exists(const char *name)
{
	for (int set = 0; set < SET_COUNT; set++)
		for (const struct test *test = test_sets[set]; test->name; test++)
			if (strcmp(test->name, name) == 0)
				return true;
	return false;
}

static void add_name(const char *name)
{
	if (!test_exists(name))
		fail_with(TOOL_USAGE, "there is no test '%s': -l lists them", name);
	if (cmdline.named_count == CMDLINE_MAX_NAMED)
		fail_with(TOOL_USAGE, "more than %d tests are named", CMDLINE_MAX_NAMED);
	cmdline.named[cmdline.named_count++] = name;
}

static void take_option(int letter, const char *argument)
{
	if (letter == 'l')
		print_list();
	else if (letter == 'v')
		verdict_verbose = true;
	else if (letter == 's')
		cmdline.quiet = true;
	else if (letter == 't')
		add_name(argument);
	else if (letter == 'd')
		cmdline.ordinal = (int)options_number("-d", argument, 0, 1023);
	else if (letter == 'e')
		cmdline.extended = true;
	else if (letter == OPTION_CLASSIC)
		cmdline.classic = true;
	else if (letter == OPTION_TIMEOUT)
		cmdline.timeout_s = (unsigned)options_number("--timeout", argument, 1, 86400);
}

void cmdline_parse(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdrcopy_sanity",
		.summary = "Runs the conformance tests of the GDRCopy interface on one GPU.",
		.options = option_table,
		.take = take_option,
		.no_memory = true
	};

	options_parse(&spec, argc, argv);
}

bool cmdline_selects(enum set set, const struct test *test)
{
	if (cmdline.named_count == 0)
		return set == SET_CLASSIC || (set == SET_EXTENDED && cmdline.extended) ||
		       (set == SET_PLUS && !cmdline.classic);
	for (unsigned i = 0; i < cmdline.named_count; i++)
		if (strcmp(cmdline.named[i], test->name) == 0)
			return true;
	return false;
}
