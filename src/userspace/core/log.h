/* SPDX-License-Identifier: MIT */
/* Log lines on stderr; silent unless GDRCOPY_ENABLE_LOGGING is set. */
#ifndef GDRI_CORE_LOG_H
#define GDRI_CORE_LOG_H

/* Values of GDRCOPY_LOG_LEVEL. */
enum gdri_log_level {
	GDRI_LOG_DEBUG = 1,
	GDRI_LOG_INFO = 2,
	GDRI_LOG_WARN = 3,
	GDRI_LOG_ERROR = 4,
	GDRI_LOG_OFF = 5
};

/* Which lines come out; part of the settings of a session. */
struct gdri_log {
	enum gdri_log_level level;
};

/*
 * Writes one line with the level's prefix and keeps errno.  The function that
 * decides an error logs it, once; callers pass it on in silence.
 */
void gdri_core_log(const struct gdri_log *log, enum gdri_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define gdri_error(log, ...) gdri_core_log(log, GDRI_LOG_ERROR, __VA_ARGS__)
#define gdri_warn(log, ...) gdri_core_log(log, GDRI_LOG_WARN, __VA_ARGS__)
#define gdri_info(log, ...) gdri_core_log(log, GDRI_LOG_INFO, __VA_ARGS__)
#define gdri_debug(log, ...) gdri_core_log(log, GDRI_LOG_DEBUG, __VA_ARGS__)

#endif
