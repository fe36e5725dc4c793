/* SPDX-License-Identifier: MIT */
/* Prints results, warnings, failures and progress. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stats.h"

static const char *tool_name = "gdrcopy";
static bool json_only;
static bool progress_shown;
static uint64_t start_ns;

void report_start(const char *tool, bool json)
{
	tool_name = tool;
	json_only = json;
	start_ns = clock_ns();
	setvbuf(stdout, NULL, _IOLBF, 0);
}

void say(const char *format, ...)
{
	va_list args;

	progress_end();
	if (json_only)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

static void complain(const char *kind, const char *format, va_list args)
{
	progress_end();
	fflush(stdout);
	fprintf(stderr, "%s: %s", tool_name, kind);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain("warning: ", format, args);
	va_end(args);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain("", format, args);
	va_end(args);
	exit(TOOL_FAILED);
}

void fail_with(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain("", format, args);
	va_end(args);
	exit(status);
}

int report_finish(void)
{
	progress_end();
	if (fflush(stdout) || ferror(stdout))
		fail("cannot write to standard output");
	return TOOL_OK;
}

void progress(const char *format, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO) || clock_ns() - start_ns < 1000000000)
		return;
	va_start(args, format);
	fputs("\r\033[K", stderr);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
	progress_shown = true;
}

void progress_end(void)
{
	if (!progress_shown)
		return;
	fputs("\r\033[K", stderr);
	progress_shown = false;
}
