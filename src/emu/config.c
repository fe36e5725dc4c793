/* SPDX-License-Identifier: MIT */
/* Reads GDRCOPY_EMU and counts down injected failures. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct emu_config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && *value <= max;
}

static bool parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	const char *unit;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno != 0)
		return false;
	if (*end != '\0') {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1] != '\0')
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (*value > UINT64_MAX >> shift >> 1)
		return false;
	*value <<= shift;
	return true;
}

/* CALL[:N[:RESULT]] */
static bool parse_failure(struct emu_config *out, const char *text)
{
	struct emu_failure *failure;
	size_t length = strcspn(text, ":");
	uint64_t result = 0;
	char nth[24] = "1";
	const char *rest;
	uint64_t number;

	if (out->failure_count == EMU_MAX_FAILURES)
		return false;
	failure = &out->failures[out->failure_count];
	if (length == 0 || length >= sizeof(failure->call))
		return false;
	memcpy(failure->call, text, length);
	failure->call[length] = '\0';
	if (text[length] == ':') {
		text += length + 1;
		length = strcspn(text, ":");
		if (length >= sizeof(nth))
			return false;
		memcpy(nth, text, length);
		nth[length] = '\0';
		rest = text + length;
		if (*rest == ':' && (!parse_number(rest + 1, 999, &result) || result == 0))
			return false;
	}
	if (strcmp(nth, "*") == 0)
		failure->nth = 0;
	else if (parse_number(nth, INT32_MAX, &number) && number > 0)
		failure->nth = number;
	else
		return false;
	failure->result = (int)result;
	out->failure_count++;
	return true;
}

/* A key without value, or with the value 0 or 1. */
static bool parse_switch(const char *value, bool *on)
{
	if (value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return false;
	*on = !value || *value == '1';
	return true;
}

static bool parse_int(const char *value, uint64_t max, int *number)
{
	uint64_t parsed;

	if (!value || !parse_number(value, max, &parsed))
		return false;
	*number = (int)parsed;
	return true;
}

/* MODE or MODE:N; fallback is N where it is left out, 0: it must not be. */
static bool parse_mode(const char *value, const char *mode, uint64_t fallback, uint64_t *number)
{
	size_t length = strlen(mode);

	if (strncmp(value, mode, length) != 0)
		return false;
	if (value[length] == '\0') {
		*number = fallback;
		return fallback > 0;
	}
	return value[length] == ':' && parse_number(value + length + 1, INT32_MAX, number) &&
	       *number > 0;
}

static bool parse_dma(struct emu_dma_config *out, const char *value)
{
	if (strcmp(value, "0") == 0 || strcmp(value, "1") == 0) {
		out->absent = *value == '0';
	} else if (strcmp(value, "busy") == 0) {
		out->limited = true;
		out->channels = 0;
	} else if (parse_mode(value, "busy", 0, &out->channels)) {
		out->limited = true;
	} else if (strcmp(value, "early") == 0) {
		out->early = true;
	} else if (strcmp(value, "unconfirmed") == 0) {
		out->unconfirmed = true;
	} else if (strcmp(value, "small") == 0) {
		out->small = true;
	} else {
		return parse_mode(value, "hang", 1, &out->hang_at) ||
		       parse_mode(value, "die", 1, &out->die_at) ||
		       parse_mode(value, "delay", 0, &out->delay_us);
	}
	return true;
}

static bool parse_key(struct emu_config *out, const char *key, const char *value)
{
	bool on;

	if (strcmp(key, "devices") == 0)
		return parse_int(value, EMU_MAX_DEVICES, &out->devices);
	if (strcmp(key, "driver") == 0)
		return parse_int(value, 99990, &out->driver_version);
	if (strcmp(key, "mem") == 0)
		return value && parse_size(value, &out->memory) && out->memory > 0;
	if (strcmp(key, "bar1") == 0)
		return value && parse_size(value, &out->bar1);
	if (strcmp(key, "coherent") == 0)
		return parse_switch(value, &out->coherent);
	if (strcmp(key, "exclusive") == 0)
		return parse_switch(value, &out->exclusive);
	if (strcmp(key, "wc") == 0)
		return parse_switch(value, &out->write_combining);
	if (strcmp(key, "dma") == 0)
		return value && parse_dma(&out->dma, value);
	if (strcmp(key, "fail") == 0)
		return value && parse_failure(out, value);
	if (strcmp(key, "provider") == 0 && value &&
	    (strcmp(value, "bar") == 0 || strcmp(value, "memfd") == 0)) {
		out->bar_memory = strcmp(value, "bar") == 0;
		return true;
	}
	if (strcmp(key, "no-peer") == 0 && parse_switch(value, &on)) {
		out->peer = !on;
		return true;
	}
	if (strcmp(key, "no-rdma") == 0 && parse_switch(value, &on)) {
		out->rdma = !on;
		return true;
	}
	return false;
}

static bool parse_list(struct emu_config *out, const char *text)
{
	char item[160];
	size_t length;
	char *value;

	for (; *text != '\0'; text += text[length] == ',' ? length + 1 : length) {
		length = strcspn(text, ",");
		if (length == 0)
			continue;
		snprintf(item, sizeof(item), "%.*s", (int)length, text);
		value = strchr(item, '=');
		if (value)
			*value++ = '\0';
		if (length >= sizeof(item) || !parse_key(out, item, value)) {
			snprintf(out->error, sizeof(out->error),
				 "GDRCOPY_EMU: \"%.*s\" is not understood", (int)length, text);
			return false;
		}
	}
	return true;
}

bool emu_config_parse(struct emu_config *out, const char *devices, const char *text)
{
	*out = (struct emu_config){
		.devices = 1,
		.driver_version = 13000,
		.memory = 16ull << 30,
		.bar1 = 256ull << 30,
		.peer = true,
		.rdma = true,
		.write_combining = true,
	};
	if (devices && !parse_int(devices, EMU_MAX_DEVICES, &out->devices)) {
		snprintf(out->error, sizeof(out->error),
			 "GDRCOPY_EMU_DEVICES: \"%s\" is not a number from 0 to %d", devices,
			 EMU_MAX_DEVICES);
		return false;
	}
	return !text || parse_list(out, text);
}

static void read_environment(void)
{
	emu_config_parse(&config, secure_getenv("GDRCOPY_EMU_DEVICES"),
			 secure_getenv("GDRCOPY_EMU"));
}

struct emu_config *emu_config_get(void)
{
	pthread_once(&once, read_environment);
	return &config;
}

/* Length of name without a suffix _vN. */
static size_t plain_length(const char *name)
{
	size_t length = strlen(name);

	if (length > 3 && isdigit((unsigned char)name[length - 1]) &&
	    strncmp(name + length - 3, "_v", 2) == 0)
		return length - 3;
	return length;
}

bool emu_config_injected(const char *name, int fallback, int *result)
{
	struct emu_config *current = emu_config_get();
	size_t length = plain_length(name);
	bool hit = false;

	for (int i = 0; i < current->failure_count; i++) {
		struct emu_failure *failure = &current->failures[i];
		unsigned long seen;

		if (strlen(failure->call) != length || strncmp(failure->call, name, length) != 0)
			continue;
		seen = __atomic_add_fetch(&failure->seen, 1, __ATOMIC_RELAXED);
		if (hit || (failure->nth != 0 && failure->nth != seen))
			continue;
		*result = failure->result != 0 ? failure->result : fallback;
		hit = true;
	}
	return hit;
}
