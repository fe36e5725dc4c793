/* SPDX-License-Identifier: MIT */
/* Picks the back end of a session: the one asked for, or the first that opens. */
#include "backend/backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "os/cuda.h"

/* The order of trial.  emu is found by name only, so a broken machine never looks healthy. */
static const struct gdri_backend_ops *const backends[GDRI_BACKEND_COUNT] = {
	[GDRI_BACKEND_GDRDRV] = &gdri_backend_gdrdrv,
	[GDRI_BACKEND_DMABUF] = &gdri_backend_dmabuf,
	[GDRI_BACKEND_NVRM] = &gdri_backend_nvrm,
	[GDRI_BACKEND_EMU] = &gdri_backend_emu,
};

void gdri_backend_reason(struct gdri_reason *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
}

static bool is_tried(const struct gdri_config *config, int id)
{
	if (config->backend == GDRI_BACKEND_AUTO)
		return id != GDRI_BACKEND_EMU;
	return (int)config->backend == id;
}

static void log_reasons(const struct gdri_config *config, const struct gdri_reason *why)
{
	for (int id = 0; id < GDRI_BACKEND_COUNT; id++)
		if (is_tried(config, id))
			gdri_error(&config->log, "gdr_open: %s: %s", backends[id]->name,
				   why[id].text);
}

/* Keeps libcuda loaded between back ends that each load it for themselves. */
struct cuda_hold {
	struct gdri_cuda cuda;
	bool loaded;
};

/* The kernel module needs no CUDA; a machine that has it is spared the millisecond. */
static void hold_cuda(struct cuda_hold *hold, int id)
{
	if (!hold->loaded && id != GDRI_BACKEND_GDRDRV)
		hold->loaded = gdri_os_cuda_load(&hold->cuda) == 0;
}

int gdri_backend_open(const struct gdri_config *config, struct gdri_backend_session **session,
		      int *fd)
{
	struct gdri_reason why[GDRI_BACKEND_COUNT] = { 0 };
	struct cuda_hold hold = { 0 };
	int rc = -ENODEV;

	if (config->backend_unknown) {
		gdri_error(&config->log,
			   "gdr_open: GDRCOPY_BACKEND=%s is none of gdrdrv, dmabuf, nvrm, emu, auto",
			   config->backend_name);
		return -ENODEV;
	}
	for (int id = 0; id < GDRI_BACKEND_COUNT && rc; id++) {
		if (!is_tried(config, id))
			continue;
		hold_cuda(&hold, id);
		rc = backends[id]->open(config, session, fd, &why[id]);
		if (rc)
			gdri_debug(&config->log, "gdr_open: %s does not open: %s",
				   backends[id]->name, why[id].text);
	}
	if (hold.loaded)
		gdri_os_cuda_unload(&hold.cuda);
	if (rc)
		log_reasons(config, why);
	return rc ? -ENODEV : 0;
}
