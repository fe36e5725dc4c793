/* SPDX-License-Identifier: MIT */
/* Reads the library's environment variables. */
#include "core/config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const backend_names[GDRI_BACKEND_COUNT] = {
	[GDRI_BACKEND_GDRDRV] = "gdrdrv",
	[GDRI_BACKEND_DMABUF] = "dmabuf",
	[GDRI_BACKEND_NVRM] = "nvrm",
	[GDRI_BACKEND_EMU] = "emu",
};

/* secure_getenv: a set-user-ID program takes no orders from its caller. */
static const char *read_variable(const char *name)
{
	return secure_getenv(name);
}

static void read_string(const char *name, char *out, size_t size)
{
	const char *text = read_variable(name);

	snprintf(out, size, "%s", text ? text : "");
}

static bool is_level(const char *text)
{
	return text[0] >= '1' && text[0] <= '4' && text[1] == '\0';
}

struct gdri_log gdri_core_config_log(void)
{
	struct gdri_log log = { .level = GDRI_LOG_OFF };
	const char *level;

	if (!read_variable("GDRCOPY_ENABLE_LOGGING"))
		return log;
	level = read_variable("GDRCOPY_LOG_LEVEL");
	log.level = GDRI_LOG_ERROR;
	if (level && is_level(level))
		log.level = (enum gdri_log_level)(level[0] - '0');
	return log;
}

/* An error, since the level that is used instead shows nothing less. */
static void check_level(const struct gdri_log *log)
{
	const char *level = read_variable("GDRCOPY_LOG_LEVEL");

	if (level && !is_level(level))
		gdri_error(log, "GDRCOPY_LOG_LEVEL=%s is not 1 (debug) to 4 (error); using 4",
			   level);
}

static void read_backend(struct gdri_config *config)
{
	const char *dmabuf = read_variable("GDRCOPY_USE_DMABUF_MMAP");

	config->backend = GDRI_BACKEND_AUTO;
	read_string("GDRCOPY_BACKEND", config->backend_name, sizeof(config->backend_name));
	if (config->backend_name[0] == '\0' || strcmp(config->backend_name, "auto") == 0) {
		if (dmabuf && strcmp(dmabuf, "1") == 0)
			config->backend = GDRI_BACKEND_DMABUF;
		return;
	}
	for (int id = 0; id < GDRI_BACKEND_COUNT; id++) {
		if (strcmp(config->backend_name, backend_names[id]) == 0) {
			config->backend = (enum gdri_backend_id)id;
			return;
		}
	}
	config->backend_unknown = true;
}

/* Bytes, with K, M or G for powers of 1024; false when that is not all of text. */
static bool parse_size(const char *text, size_t *size)
{
	char *end;
	unsigned long long value;
	unsigned shift = 0;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 0);
	switch (*end) {
	case 'G': case 'g':
		shift += 10;
		/* fall through */
	case 'M': case 'm':
		shift += 10;
		/* fall through */
	case 'K': case 'k':
		shift += 10;
		end++;
	}
	if (errno || *end || value > SIZE_MAX >> shift)
		return false;
	*size = (size_t)value << shift;
	return true;
}

static void read_dma(struct gdri_config *config)
{
	const char *text = read_variable("GDRCOPY_DMA");

	config->dma = true;
	if (!text || text[0] == '\0' || strcmp(text, "1") == 0)
		return;
	if (strcmp(text, "0") == 0)
		config->dma = false;
	else if (strncmp(text, "min=", 4) == 0 && parse_size(text + 4, &config->dma_min))
		config->dma_forced = true;
	else
		gdri_error(&config->log, "GDRCOPY_DMA=%s is not 0, 1 or min=SIZE; using 1", text);
}

static void read_calibration(struct gdri_config *config)
{
	const char *text = read_variable("GDRCOPY_CALIBRATION");

	config->calibrate = !text || strcmp(text, "0") != 0;
	if (text && text[0] != '\0' && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		gdri_error(&config->log, "GDRCOPY_CALIBRATION=%s is not 0 or 1; using 1", text);
}

static void read_route(struct gdri_config *config)
{
	static const char *const names[] = {
		[GDRI_ROUTE_AUTO] = "auto",
		[GDRI_ROUTE_PEER] = "peer",
		[GDRI_ROUTE_STAGED] = "staged",
	};
	const char *strict = read_variable("GDRCOPY_STRICT_P2P");
	const char *text = read_variable("GDRCOPY_ROUTE");
	bool known = !text || text[0] == '\0';

	config->route = GDRI_ROUTE_AUTO;
	for (size_t i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		config->route = (enum gdri_route)i;
		known = true;
	}
	if (!known)
		gdri_error(&config->log, "GDRCOPY_ROUTE=%s is not auto, peer or staged; using auto",
			   text);
	config->strict_p2p = strict && strcmp(strict, "1") == 0;
	if (strict && strict[0] != '\0' && strcmp(strict, "0") != 0 && !config->strict_p2p)
		gdri_error(&config->log, "GDRCOPY_STRICT_P2P=%s is not 0 or 1; using 0", strict);
}

void gdri_core_config_read(struct gdri_config *config)
{
	memset(config, 0, sizeof(*config));
	config->log = gdri_core_config_log();
	check_level(&config->log);
	read_backend(config);
	read_string("GDRCOPY_COPY", config->copy_routine, sizeof(config->copy_routine));
	read_dma(config);
	read_calibration(config);
	read_route(config);
}
