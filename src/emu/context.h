/* SPDX-License-Identifier: MIT */
/* Contexts and what is current in a thread. */
#ifndef EMU_CONTEXT_H
#define EMU_CONTEXT_H

#include "emu.h"

/*
 * A context is never given back to the host's allocator, so that a stale
 * handle is recognised and not followed into other memory.
 */
struct CUctx_st {
	struct CUctx_st *next;		/* all contexts of the process */
	CUdevice device;
	unsigned flags;
	unsigned api_version;
	unsigned retained;		/* primary: number of retains */
	unsigned peers;			/* devices that this context may access */
	bool primary;
	bool alive;
	CUresult failure;		/* of a kernel: sticks, as on a real GPU */
	struct CUstream_st *streams;	/* guarded by the engine's lock */
	struct CUstream_st *default_stream;
};

/* The thread's current context; INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or what stuck. */
CUresult emu_context_current(CUcontext *ctx);

/* Whether ctx is a live context; the caller holds the lock. */
bool emu_context_valid(CUcontext ctx);

#define EMU_ENTER_CONTEXT(ctx)                                   \
	do {                                                     \
		CUresult current_ = emu_enter(__func__);         \
		if (current_ == CUDA_SUCCESS)                    \
			current_ = emu_context_current(ctx);     \
		if (current_ != CUDA_SUCCESS)                    \
			return current_;                         \
	} while (0)

#endif
