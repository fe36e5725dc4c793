/* SPDX-License-Identifier: MIT */
/* The command line of a tool: its own options and the ones that all tools share. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_buffer.h"

/* One option; letter is a character or, for long-only options, 256 and up. */
struct option_spec {
	int letter;
	const char *name;
	const char *argument;	/* shown in the help; NULL: a plain flag */
	const char *help;
};

/* -d, -a, -M, --bind and --json, as given or as their defaults. */
struct common_options {
	int device;
	enum gpu_alloc alloc;
	int map_flags;		/* gdr_map_flags_t */
	bool bind;
	bool json;
};

struct tool_spec {
	const char *name;		/* gdrcopy_copybw */
	const char *summary;		/* one sentence for --help */
	const struct option_spec *options;	/* ends with a zero letter */
	void (*take)(int letter, const char *argument);
	/* Of the usage line; NULL: the tool takes options alone.  argv[optind] is the first. */
	const char *arguments;
	bool no_memory;			/* the tool has no -d, -a, -M, --bind */
};

/*
 * Parses the command line, answers --help and --version, and ends the program
 * with one line on stderr when something is wrong with it.
 */
struct common_options options_parse(const struct tool_spec *spec, int argc, char **argv);

/*
 * A number, decimal or 0x..., at least min and at most max; sizes may end in
 * K, M or G (powers of 1024).  Anything else ends the program; name is the
 * option in the message.
 */
uint64_t options_number(const char *name, const char *text, uint64_t min, uint64_t max);

/* The index of text in choices, a NULL-terminated list; ends the program otherwise. */
int options_choice(const char *name, const char *text, const char *const *choices);

#endif
