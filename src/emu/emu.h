/* SPDX-License-Identifier: MIT */
/* What every entry point of the emulated driver begins with. */
#ifndef EMU_H
#define EMU_H

#include <stdbool.h>

#include "config.h"
#include "cuda.h"

#define EMU_API __attribute__((visibility("default")))

/*
 * One lock covers devices, contexts and memory; it is never held while bytes
 * move or kernels run.  The queues of streams have their own (stream.c); it is
 * taken inside this one, never the other way round.
 */
void emu_lock(void);
void emu_unlock(void);

/*
 * CUDA_SUCCESS when cuInit succeeded in this very process and no failure is
 * injected for the call.  In the child of a process that had initialised,
 * everything answers NOT_INITIALIZED, as the real driver does.
 */
CUresult emu_enter(const char *call);
bool emu_ready(void);

#define EMU_ENTER()                                         \
	do {                                                \
		CUresult entered_ = emu_enter(__func__);    \
		if (entered_ != CUDA_SUCCESS)               \
			return entered_;                    \
	} while (0)

static inline bool emu_device_valid(CUdevice device)
{
	return device >= 0 && device < emu_config_get()->devices;
}

/* What the host's errno means in CUDA's terms. */
CUresult emu_result(int negative_errno);

#endif
