/* SPDX-License-Identifier: MIT */
/* gdr_bench: how long copies of the version 3 API take, beside every other road. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "common/report.h"
#include "pair.h"
#include "sweep.h"

enum { OPTION_SWEEP = 256, OPTION_CHECK, OPTION_CSV, OPTION_DIRECTION, OPTION_MIN, OPTION_MAX,
       OPTION_BIND };

#define SIZE_LIMIT ((size_t)1 << 30)	/* of a sweep, whose buffers are several */
#define ITERATIONS_LIMIT 10000000

static const struct option_spec option_table[] = {
	{ OPTION_SWEEP, "sweep", NULL, "time every road at sizes from 1 byte to 64 MiB" },
	{ OPTION_CHECK, "check", NULL, "sweep, and judge ours against the other roads" },
	{ OPTION_CSV, "csv", NULL, "sweep: print comma-separated rows instead of tables" },
	{ OPTION_DIRECTION, "direction", "LIST", "sweep: of h2d,d2h,d2d (default all)" },
	{ OPTION_MIN, "min", "BYTES", "sweep: smallest copy (default 1)" },
	{ OPTION_MAX, "max", "BYTES", "sweep: largest copy (default 64M)" },
	{ 'n', "iterations", "N", "sweep: rounds of each size, at most (default 1000)" },
	{ 'd', "device", "GPU", "sweep: CUDA ordinal of the GPU (default 0)" },
	{ OPTION_BIND, "bind", NULL, "run on the CPUs of the GPU's NUMA node" },
	{ 0 }
};

static bool sweep_asked;
static const char *sweep_option;	/* the last one given that needs a sweep */
static struct sweep_options sweep = {
	.directions = { true, true, true }, .min = 1, .max = (size_t)64 << 20, .iterations = 1000
};

/* A list like "d2h,d2d". */
static void take_directions(const char *list)
{
	static const char *const names[] = { "h2d", "d2h", "d2d", NULL };
	char text[64], *rest = text, *name;

	if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text))
		fail_with(TOOL_USAGE, "--direction takes a list of h2d, d2h, d2d");
	memset(sweep.directions, 0, sizeof(sweep.directions));
	while ((name = strsep(&rest, ",")))
		sweep.directions[options_choice("--direction", name, names)] = true;
}

static void take_option(int letter, const char *argument)
{
	switch (letter) {
	case OPTION_SWEEP:
		sweep_asked = true;
		return;
	case OPTION_CHECK:
		sweep_asked = sweep.check = true;
		return;
	case OPTION_BIND:
		sweep.bind = true;
		return;
	case OPTION_CSV:
		sweep.format = FORMAT_CSV;
		sweep_option = "--csv";
		return;
	case OPTION_DIRECTION:
		take_directions(argument);
		sweep_option = "--direction";
		return;
	case OPTION_MIN:
		sweep.min = options_number("--min", argument, 1, SIZE_LIMIT);
		sweep_option = "--min";
		return;
	case OPTION_MAX:
		sweep.max = options_number("--max", argument, 1, SIZE_LIMIT);
		sweep_option = "--max";
		return;
	case 'n':
		sweep.iterations = options_number("-n", argument, 1, ITERATIONS_LIMIT);
		sweep_option = "-n";
		return;
	case 'd':
		sweep.device = (int)options_number("-d", argument, 0, 1023);
		sweep_option = "-d";
	}
}

static void run_sweep(const struct common_options *common)
{
	if (common->json && sweep.format == FORMAT_CSV)
		fail_with(TOOL_USAGE, "--csv and --json are two formats: give one of them");
	if (sweep.min > sweep.max)
		fail_with(TOOL_USAGE, "--min %zu is above --max %zu: no size is left", sweep.min,
			  sweep.max);
	if (common->json)
		sweep.format = FORMAT_JSON;
	sweep_run(&sweep);
}

static void run_pair(char **arguments)
{
	struct pair_options pair = { .bind = sweep.bind };

	if (sweep_option)
		fail_with(TOOL_USAGE, "%s belongs to a sweep: add --sweep", sweep_option);
	pair.src = (int)options_number("SRC_DEV", arguments[0], 0, 1023);
	pair.dst = (int)options_number("DST_DEV", arguments[1], 0, 1023);
	pair.size = options_number("SIZE", arguments[2], 1, (size_t)1 << 40);
	pair.iterations = options_number("ITERS", arguments[3], 1, ITERATIONS_LIMIT);
	pair_run(&pair);
}

int main(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdr_bench",
		.summary = "Measures copies from one GPU buffer to another, or with --sweep every "
			   "road of a copy.",
		.options = option_table,
		.take = take_option,
		.arguments = "SRC_DEV DST_DEV SIZE ITERS | --sweep",
		.no_memory = true
	};
	struct common_options common = options_parse(&spec, argc, argv);
	int arguments = argc - optind;

	if (sweep_asked && arguments > 0)
		fail_with(TOOL_USAGE, "a sweep takes no '%s': see --help", argv[optind]);
	if (!sweep_asked && arguments != 4)
		fail_with(TOOL_USAGE, "%d arguments where SRC_DEV DST_DEV SIZE ITERS are needed "
			  "(or --sweep): see --help", arguments);
	if (sweep_asked)
		run_sweep(&common);
	else
		run_pair(argv + optind);
	return report_finish();
}
