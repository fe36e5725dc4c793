/* SPDX-License-Identifier: MIT */
/* Parses the command line from a table that also writes the help. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdrapi.h"
#include "json.h"
#include "report.h"
#include "versions.h"

enum { OPTION_BIND = 1000, OPTION_JSON, OPTION_VERSION };

#define MAX_OPTIONS 24

static const struct option_spec memory_options[] = {
	{ 'd', "device", "GPU", "CUDA ordinal of the GPU (default 0)" },
	{ 'a', "alloc", "FN", "cuMemAlloc (default) or cuMemCreate" },
	{ 'M', "mapping", "TYPE", "default, wc, cache or device: fail unless mapped so" },
	{ OPTION_BIND, "bind", NULL, "run on the CPUs of the GPU's NUMA node" },
	{ 0 }
};

static const struct option_spec general_options[] = {
	{ OPTION_JSON, "json", NULL, "print one JSON object instead of text" },
	{ OPTION_VERSION, "version", NULL, "print versions and exit" },
	{ 'h', "help", NULL, "print this text and exit" },
	{ 0 }
};

static void print_help_lines(const struct option_spec *option)
{
	char left[64];

	for (; option->letter; option++) {
		char letter[8] = "    ";

		if (option->letter < 256)
			snprintf(letter, sizeof(letter), "-%c, ", option->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
			 option->argument ? " " : "", option->argument ? option->argument : "");
		printf("  %-26s %s\n", left, option->help);
	}
}

_Noreturn static void print_help(const struct tool_spec *spec)
{
	printf("Usage: %s [options]%s%s\n%s\n\n", spec->name, spec->arguments ? " " : "",
	       spec->arguments ? spec->arguments : "", spec->summary);
	print_help_lines(spec->options);
	if (!spec->no_memory)
		print_help_lines(memory_options);
	print_help_lines(general_options);
	exit(TOOL_OK);
}

/* The tables in getopt's two shapes. */
struct getopt_tables {
	char letters[3 * MAX_OPTIONS + 2];
	struct option names[MAX_OPTIONS + 1];
	size_t count;
};

static void add_options(struct getopt_tables *tables, const struct option_spec *option)
{
	for (; option->letter && tables->count < MAX_OPTIONS; option++) {
		struct option *name = &tables->names[tables->count++];
		size_t end = strlen(tables->letters);

		name->name = option->name;
		name->has_arg = option->argument ? required_argument : no_argument;
		name->val = option->letter;
		if (option->letter < 256)
			snprintf(tables->letters + end, sizeof(tables->letters) - end, "%c%s",
				 option->letter, option->argument ? ":" : "");
	}
}

static void take_common(struct common_options *common, int letter, const char *argument)
{
	/* The order of gdr_map_flags_t. */
	static const char *const mappings[] = { "default", "wc", "cache", "device", NULL };
	static const char *const allocs[] = { "cuMemAlloc", "cuMemCreate", NULL };

	if (letter == 'd')
		common->device = (int)options_number("-d", argument, 0, 1023);
	else if (letter == 'a')
		common->alloc = (enum gpu_alloc)options_choice("-a", argument, allocs);
	else if (letter == 'M')
		common->map_flags = options_choice("-M", argument, mappings);
	else if (letter == OPTION_BIND)
		common->bind = true;
	else if (letter == OPTION_JSON)
		common->json = true;
}

static bool is_listed(const struct option_spec *option, int letter)
{
	for (; option->letter; option++)
		if (option->letter == letter)
			return true;
	return false;
}

struct common_options options_parse(const struct tool_spec *spec, int argc, char **argv)
{
	struct common_options common = { .map_flags = GDR_MAP_FLAG_DEFAULT };
	struct getopt_tables tables = { .letters = "" };
	int letter;

	report_start(spec->name, false);
	add_options(&tables, spec->options);
	if (!spec->no_memory)
		add_options(&tables, memory_options);
	add_options(&tables, general_options);

	while ((letter = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		if (letter == 'h')
			print_help(spec);
		if (letter == OPTION_VERSION) {
			versions_print(spec->name);
			exit(TOOL_OK);
		}
		if (letter == '?')	/* getopt has said which */
			exit(TOOL_USAGE);
		if (is_listed(spec->options, letter))
			spec->take(letter, optarg);
		else
			take_common(&common, letter, optarg);
	}
	if (optind < argc && !spec->arguments)
		fail_with(TOOL_USAGE, "unexpected argument '%s': see --help", argv[optind]);
	report_start(spec->name, common.json);
	if (common.json)
		json_enable();
	return common;
}

static unsigned suffix_shift(const char *end)
{
	static const char suffixes[] = "KMG";
	const char *found;

	if (*end == '\0')
		return 0;
	found = strchr(suffixes, *end);
	if (!found || end[1] != '\0')
		return 64;
	return 10 * (unsigned)(found - suffixes + 1);
}

uint64_t options_number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	unsigned shift;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	shift = suffix_shift(end);
	/* strtoull takes a sign and leading blanks, which mean nothing here. */
	if (text[0] < '0' || text[0] > '9' || shift == 64)
		fail_with(TOOL_USAGE, "%s takes a number, not '%s'", name, text);
	if (errno || value > UINT64_MAX >> shift || value << shift < min || value << shift > max)
		fail_with(TOOL_USAGE, "%s %s is out of range: %llu to %llu", name, text,
			  (unsigned long long)min, (unsigned long long)max);
	return value << shift;
}

int options_choice(const char *name, const char *text, const char *const *choices)
{
	char list[128] = "";

	for (int i = 0; choices[i]; i++)
		if (strcmp(text, choices[i]) == 0)
			return i;
	for (int i = 0; choices[i]; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 i ? ", " : "", choices[i]);
	fail_with(TOOL_USAGE, "%s '%s' is none of: %s", name, text, list);
}
