/* SPDX-License-Identifier: MIT */
/* What a tool prints: results on stdout, one line of failure on stderr, progress on a terminal. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>

/* Exit statuses; 77 is what test runners take as "skipped". */
enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 1, TOOL_UNSUPPORTED = 77 };

/*
 * json: stdout belongs to one JSON object, and say() is silent.  Otherwise
 * stdout is made line buffered, so that pipes see results as they come.
 */
void report_start(const char *tool, bool json);

/* A piece of human-readable output. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line on stderr: something that the figures suffer from. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line on stderr and the end, with status TOOL_FAILED or the given one. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail_with(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The status to exit with: a failure when stdout did not take everything. */
int report_finish(void);

/*
 * Progress of a long sweep: a line on stderr that overwrites itself, shown
 * only on a terminal and once a second has passed since report_start.
 * progress_end wipes it.
 */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void);

#endif
