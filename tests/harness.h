/* SPDX-License-Identifier: MIT */
/*
 * What every test program shares: cases that pass, fail or are skipped.
 *
 * A program names its cases in a table and returns harness_run().  Each case
 * prints one line: "ok NAME", "not ok NAME" or "skip NAME: reason"; run.sh
 * counts those lines.  Exit status: 0 passed, 1 failed, 77 all skipped.
 * Arguments select cases by name; -l lists them.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct harness_case {
	const char *name;
	void (*run)(void);
};

int harness_run(const struct harness_case *cases, size_t count, int argc, char **argv);

#define HARNESS_MAIN(cases)                                                               \
	int main(int argc, char **argv)                                                   \
	{                                                                                 \
		return harness_run(cases, sizeof(cases) / sizeof((cases)[0]), argc, argv); \
	}

/* Each case goes on after a failed CHECK; REQUIRE ends the case at once. */
#define CHECK(condition) harness_check((condition), __FILE__, __LINE__, #condition)
#define REQUIRE(condition)                                                 \
	do {                                                               \
		if (!harness_check((condition), __FILE__, __LINE__, #condition)) \
			harness_abandon();                                 \
	} while (0)
#define CHECK_EQ(actual, expected)                                                 \
	harness_check_eq((long long)(actual), (long long)(expected), __FILE__, __LINE__, \
			 #actual " == " #expected)
#define REQUIRE_EQ(actual, expected)                        \
	do {                                                \
		if (!CHECK_EQ(actual, expected))            \
			harness_abandon();                  \
	} while (0)
#define SKIP(...) harness_skip(__VA_ARGS__)

bool harness_check(bool condition, const char *file, int line, const char *text);
bool harness_check_eq(long long actual, long long expected, const char *file, int line,
		      const char *text);
_Noreturn void harness_abandon(void);
_Noreturn void harness_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Open descriptors of this process, and bytes of its mappings: for leak checks. */
int harness_count_fds(void);
size_t harness_count_maps(void);

/*
 * Runs body(arg) in a forked child and returns its wait status, so that a
 * crash, a signal or an exit can be asserted.  The child's alarm is 60 s.
 */
int harness_fork(void (*body)(void *), void *arg);

#endif
