/* SPDX-License-Identifier: MIT */
/* Formats log lines and writes each with one call, so that threads do not mix. */
#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/cancel.h"

static const char *const prefixes[] = {
	[GDRI_LOG_DEBUG] = "DBG:  ",
	[GDRI_LOG_INFO] = "INFO: ",
	[GDRI_LOG_WARN] = "WARN: ",
	[GDRI_LOG_ERROR] = "ERR:  ",
};

void gdri_core_log(const struct gdri_log *log, enum gdri_log_level level, const char *format, ...)
{
	GDRI_OS_NO_CANCEL;	/* callers are inside gates and locks */
	const int saved_errno = errno;
	char line[512];
	size_t used, room;
	va_list args;
	int length;

	if (level < log->level || level >= GDRI_LOG_OFF)
		return;
	used = strlen(strcpy(line, prefixes[level]));
	room = sizeof(line) - used - 1;
	va_start(args, format);
	length = vsnprintf(line + used, room, format, args);
	va_end(args);
	if (length > 0)
		used += (size_t)length < room ? (size_t)length : room - 1;
	line[used++] = '\n';
	/* A log that cannot be written is not worth an error. */
	if (write(STDERR_FILENO, line, used) < 0)
		errno = saved_errno;
	errno = saved_errno;
}
