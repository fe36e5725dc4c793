/* SPDX-License-Identifier: MIT */
/* Keeps the first reason that a test gives and ends its process. */
#include "verdict.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct reason {
	atomic_bool taken;
	char text[400];
};

bool verdict_verbose;
static struct reason *reason;

void verdict_init(void)
{
	reason = mmap(NULL, sizeof(*reason), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (reason != MAP_FAILED)
		return;
	perror("mmap");
	exit(EXIT_FAILURE);
}

void verdict_reset(void)
{
	memset(reason->text, 0, sizeof(reason->text));
	atomic_store(&reason->taken, false);
}

const char *verdict_reason(void)
{
	return reason->text;
}

/*
 * What fails first explains the rest: when one process of a test gives up, the
 * others only notice that it went away.
 */
static void keep_reason(const char *text)
{
	if (!atomic_exchange(&reason->taken, true))
		snprintf(reason->text, sizeof(reason->text), "%s", text);
}

/* Without exit handlers: other threads may still run, or CUDA hang. */
_Noreturn static void end_process(enum verdict verdict)
{
	fflush(NULL);
	_exit(verdict);
}

void verdict_fail(const char *file, int line, const char *format, ...)
{
	const char *slash = strrchr(file, '/');
	char text[sizeof(reason->text)];
	va_list args;
	int length;

	length = snprintf(text, sizeof(text), "%s:%d: ", slash ? slash + 1 : file, line);
	va_start(args, format);
	vsnprintf(text + length, sizeof(text) - (size_t)length, format, args);
	va_end(args);
	keep_reason(text);
	end_process(VERDICT_FAILED);
}

void verdict_waive(const char *format, ...)
{
	char text[sizeof(reason->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	keep_reason(text);
	end_process(VERDICT_WAIVED);
}

void verdict_require_eq(long long actual, long long expected, const char *file, int line,
			const char *text)
{
	if (actual != expected)
		verdict_fail(file, line, "%s is %lld (0x%llx), expected %lld (0x%llx)", text,
			     actual, actual, expected, expected);
}

void verdict_require_ok(int error, const char *file, int line, const char *call)
{
	if (error)
		verdict_fail(file, line, "%s returned %d (%s)", call, error, strerror(error));
}

void verdict_require_error(int error, int expected, const char *file, int line,
			   const char *call)
{
	if (error != expected)
		verdict_fail(file, line, "%s returned %d (%s), expected %d (%s)", call, error,
			     strerror(error), expected, strerror(expected));
}

void verdict_debug(const char *format, ...)
{
	va_list args;

	if (!verdict_verbose)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
