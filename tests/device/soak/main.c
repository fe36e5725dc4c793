/* SPDX-License-Identifier: MIT */
/*
 * Proves the DMA engine on a real GPU, byte for byte.
 *
 *	soak stale	looks for one stale byte: every engine, direction and size
 *	soak mixed	many threads on one engine object, every kind of copy
 *	soak spin	copies beside a kernel that never ends
 *	soak order	program order between the CPU's road and the engines'
 *
 * Options: see usage().  Exit status 0, or 1 when anything was wrong.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak/soak.h"

static const struct {
	const char *name;
	int (*run)(struct machine *machine, const struct options *options);
} modes[] = {
	{ "stale", soak_stale },
	{ "mixed", soak_mixed },
	{ "spin", soak_spin },
	{ "order", soak_order },
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static _Noreturn void usage(void)
{
	fprintf(stderr,
		"usage: soak stale|mixed|spin|order [OPTION]...\n"
		"  --port rm|emu          a real GPU (default), or an emulated one\n"
		"  --threads N            mixed: 8; order: 4\n"
		"  --copies N             mixed, order (rounds): 1000000; spin: 10000 of each\n"
		"stale:\n"
		"  --seconds N            most; default 300\n"
		"  --copies-small N       1 B to 4 KiB; default 10000000 by engine and way\n"
		"  --copies-64k N         default 1000000\n"
		"  --copies-1m N          default 100000\n"
		"  --completion host|flushed|unsafe\n"
		"                         unsafe: must find stale bytes\n"
		"  --engine N|widest      this one alone; default: all at once\n"
		"  --way to|from|within   this one alone\n"
		"  --counters FILE        goes on from these, and adds to them\n"
		"  --no-load              no copies by CUDA beside\n");
	exit(2);
}

static unsigned find_word(const char *word, const char *const *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	usage();
}

static uint64_t parse_number(const char *text)
{
	char *end;
	const uint64_t value = strtoull(text, &end, 10);

	if (end == text || *end)
		usage();
	return value;
}

static const struct option long_options[] = {
	{ "port", required_argument, NULL, 'p' },
	{ "threads", required_argument, NULL, 't' },
	{ "copies", required_argument, NULL, 'n' },
	{ "rounds", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 's' },
	{ "copies-small", required_argument, NULL, '0' + CLASS_SMALL },
	{ "copies-64k", required_argument, NULL, '0' + CLASS_64K },
	{ "copies-1m", required_argument, NULL, '0' + CLASS_1M },
	{ "completion", required_argument, NULL, 'c' },
	{ "engine", required_argument, NULL, 'e' },
	{ "way", required_argument, NULL, 'w' },
	{ "counters", required_argument, NULL, 'f' },
	{ "no-load", no_argument, NULL, 'l' },
	{ NULL, 0, NULL, 0 }
};

static void parse_option(struct options *options, int option)
{
	static const char *const ports[] = { "rm", "emu" };

	switch (option) {
	case 'p':
		options->emulated = find_word(optarg, ports, 2) == 1;
		break;
	case 't':
		options->threads = (unsigned)parse_number(optarg);
		break;
	case 'n':
		options->rounds = parse_number(optarg);
		break;
	case 's':
		options->seconds = (double)parse_number(optarg);
		break;
	case 'c':
		options->completion = (enum gdri_dma_completion)
			find_word(optarg, completion_names, COMPLETIONS);
		break;
	case 'e':
		options->engine = strcmp(optarg, "widest") == 0 ? ENGINE_WIDEST :
				  (int)parse_number(optarg);
		break;
	case 'w':
		options->ways = 1u << find_word(optarg, way_names, WAYS);
		break;
	case 'f':
		options->counters = optarg;
		break;
	case 'l':
		options->with_load = false;
		break;
	case '0' + CLASS_SMALL:
	case '0' + CLASS_64K:
	case '0' + CLASS_1M:
		options->copies[option - '0'] = parse_number(optarg);
		break;
	default:
		usage();
	}
}

int main(int argc, char **argv)
{
	struct options options = {
		.with_load = true,
		.engine = ENGINE_ALL,
		.ways = (1u << WAYS) - 1,
		.seconds = 300,
		.copies = { 10000000, 1000000, 100000 },
	};
	static struct machine machine;
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(&options, option);
	if (optind != argc - 1)
		usage();
	for (unsigned i = 0; i < MODES; i++)
		if (strcmp(argv[optind], modes[i].name) == 0) {
			setvbuf(stdout, NULL, _IOLBF, 0);
			machine_open(&machine, options.emulated);
			return modes[i].run(&machine, &options);
		}
	usage();
}
