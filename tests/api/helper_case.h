/* SPDX-License-Identifier: MIT */
/*
 * Cases of the API tests.  Each runs in a forked process of its own: settings
 * of one never reach another, a crash is one failure, and the sanitizers'
 * checks at exit see each case by itself.  The emulated GPU is chosen for all.
 */
#ifndef TESTS_API_HELPER_CASE_H
#define TESTS_API_HELPER_CASE_H

#include "harness.h"

struct api_case {
	const char *name;
	void (*run)(void);
	const char *settings;	/* NULL or "NAME=VALUE NAME=VALUE..." */
};

int api_main(const struct api_case *cases, size_t count, int argc, char **argv);

#define API_MAIN(cases)                                                                 \
	int main(int argc, char **argv)                                                 \
	{                                                                               \
		return api_main(cases, sizeof(cases) / sizeof((cases)[0]), argc, argv); \
	}

/* Rounds of a loop: fewer of them under sanitizers and valgrind. */
int api_rounds(int plain);

/* ThreadSanitizer and friends reserve address space and intercept calls. */
bool api_is_sanitized(void);

/* harness_count_maps, or always 0 where mappings are not the program's alone. */
size_t api_count_maps(void);

/* Sends stderr into a file, and gives back what the library wrote there. */
void api_capture_begin(void);
const char *api_capture_end(int *lines);

/*
 * The call must answer expected and, with logging on, say so in one line that
 * begins with "ERR:  " and contains hint.
 */
#define CHECK_REFUSED(call, expected, hint)                                         \
	do {                                                                        \
		int refused_rc, refused_lines;                                      \
		const char *refused_text;                                           \
										    \
		api_capture_begin();                                                \
		refused_rc = (call);                                                \
		refused_text = api_capture_end(&refused_lines);                     \
		api_check_refused(refused_rc, expected, refused_lines, refused_text, \
				  hint, __FILE__, __LINE__, #call);                 \
	} while (0)

void api_check_refused(int rc, int expected, int lines, const char *text, const char *hint,
		       const char *file, int line, const char *call);

#endif
