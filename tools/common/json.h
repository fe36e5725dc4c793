/* SPDX-License-Identifier: MIT */
/*
 * Writes one JSON text to stdout, when that was asked for.
 *
 * key is NULL inside arrays and for the outermost object.  Every call is
 * silent until json_enable, so that tools need no second path.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "stats.h"

void json_enable(void);
bool json_enabled(void);

void json_open_object(const char *key);
void json_open_array(const char *key);
void json_close(void);

void json_string(const char *key, const char *value);	/* NULL gives null */
void json_uint(const char *key, uint64_t value);
void json_double(const char *key, double value);
void json_bool(const char *key, bool value);
void json_hex(const char *key, uint64_t value);		/* "0x...": pointers */
void json_stats(const char *key, const struct stats *stats);

#endif
