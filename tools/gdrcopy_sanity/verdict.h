/* SPDX-License-Identifier: MIT */
/* How a test ends: by returning, by a failed requirement, or by waiving itself. */
#ifndef SANITY_VERDICT_H
#define SANITY_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

enum verdict {
	VERDICT_PASSED = 0,
	VERDICT_FAILED = 1,
	VERDICT_WAIVED = 2	/* also the exit status of a test's process */
};

/*
 * Where the first reason of a test is kept, in memory that the runner shares
 * with the test's process and all of its children.
 */
void verdict_init(void);
void verdict_reset(void);
const char *verdict_reason(void);

/* Ends the calling process, from whatever thread, with the verdict. */
_Noreturn void verdict_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void verdict_waive(const char *format, ...) __attribute__((format(printf, 1, 2)));

void verdict_require_eq(long long actual, long long expected, const char *file, int line,
			const char *text);
void verdict_require_ok(int error, const char *file, int line, const char *call);
void verdict_require_error(int error, int expected, const char *file, int line,
			   const char *call);

/* Text on stderr under -v. */
extern bool verdict_verbose;
void verdict_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define FAIL(...) verdict_fail(__FILE__, __LINE__, __VA_ARGS__)
#define WAIVE(...) verdict_waive(__VA_ARGS__)
#define DEBUG(...) verdict_debug(__VA_ARGS__)
#define REQUIRE(condition)                                            \
	do {                                                          \
		if (!(condition))                                     \
			FAIL("not true: %s", #condition);             \
	} while (0)
#define REQUIRE_EQ(actual, expected)                                               \
	verdict_require_eq((long long)(actual), (long long)(expected), __FILE__, __LINE__, \
			   #actual)

/* Calls that return 0 or a positive errno. */
#define REQUIRE_OK(call) verdict_require_ok((call), __FILE__, __LINE__, #call)
#define REQUIRE_ERROR(call, error) \
	verdict_require_error((call), (error), __FILE__, __LINE__, #call)

#endif
