/* SPDX-License-Identifier: MIT */
/* Streams: queues of operations that keep CUDA's order. */
#ifndef EMU_STREAM_H
#define EMU_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "context.h"

/*
 * One operation.  It runs when it is the first of its stream and the rules of
 * the default stream and of events allow.  Short ones run inside the call that
 * submits them when nothing is ahead of them; kernels and waiting ones run in
 * a thread that lives as long as the stream has work.
 */
struct emu_op {
	void (*run)(struct emu_op *op);		/* may be NULL; outside all locks */
	void (*destroy)(struct emu_op *op);	/* frees op and what it holds; outside all locks */
	bool in_thread;				/* never inside the submitting call */
	struct CUstream_st *wait_stream;	/* not before this (referenced) stream ... */
	uint64_t wait_order;			/* ... has completed everything up to here */

	/* Owned by stream.c. */
	struct emu_op *next;
	uint64_t order;
	bool running;
};

struct CUstream_st {
	struct CUstream_st *next;	/* streams of the context */
	CUcontext ctx;
	unsigned flags;
	unsigned refs;			/* handle, events and waiting operations */
	bool destroyed;
	bool has_thread;
	struct emu_op *head, **tail;
	uint64_t submitted;		/* order of the newest operation */
};

/* Turns a handle into a referenced stream of the current context. */
CUresult emu_stream_get(CUstream handle, CUstream *stream);
void emu_stream_hold(CUstream stream);
void emu_stream_put(CUstream stream);

/*
 * Queues op or runs it.  Takes ownership of op, also on failure.  *order, if
 * asked for, is what emu_stream_wait() and emu_stream_reached() take.
 */
CUresult emu_stream_submit(CUstream stream, struct emu_op *op, uint64_t *order);

/* Until everything up to order has completed. */
void emu_stream_wait(CUstream stream, uint64_t order);
bool emu_stream_reached(CUstream stream, uint64_t order);

/* Everything of the context, or of all contexts on a device, has completed. */
void emu_stream_wait_context(CUcontext ctx);

/* Makes the default stream; takes all streams down after their work is done. */
CUresult emu_stream_start_context(CUcontext ctx);
void emu_stream_stop_context(CUcontext ctx);

#endif
