/* SPDX-License-Identifier: MIT */
/* Events: marks in a stream that others can wait for and that carry a time. */
#include <stdlib.h>
#include <time.h>

#include "stream.h"

struct CUevent_st {
	struct CUevent_st *next;
	unsigned flags;
	unsigned refs;			/* handle and pending records */
	bool destroyed;
	CUstream stream;		/* referenced; of the newest record, NULL: none */
	uint64_t order;
	int64_t time_ns;		/* when it last ran */
};

static CUevent events;

/* With the lock held. */
static bool event_valid(CUevent event)
{
	for (CUevent e = events; e; e = e->next)
		if (e == event)
			return !e->destroyed;
	return false;
}

static void drop_event(CUevent event)
{
	CUevent *link = &events;

	if (--event->refs > 0)
		return;
	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
	if (event->stream)
		emu_stream_put(event->stream);
	free(event);
}

EMU_API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	CUcontext ctx;
	CUevent created;

	EMU_ENTER_CONTEXT(&ctx);
	if (!event || (flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING |
					   CU_EVENT_INTERPROCESS)))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	created = calloc(1, sizeof(*created));
	if (!created)
		return CUDA_ERROR_OUT_OF_MEMORY;
	created->flags = flags;
	created->refs = 1;
	emu_lock();
	created->next = events;
	events = created;
	emu_unlock();
	*event = created;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuEventDestroy_v2(CUevent event)
{
	bool valid;

	EMU_ENTER();
	emu_lock();
	valid = event_valid(event);
	if (valid) {
		event->destroyed = true;
		drop_event(event);
	}
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

struct record_op {
	struct emu_op op;
	CUevent event;
};

static void run_record(struct emu_op *op)
{
	CUevent event = ((struct record_op *)op)->event;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	emu_lock();
	event->time_ns = now.tv_sec * 1000000000ll + now.tv_nsec;
	emu_unlock();
}

static void destroy_record(struct emu_op *op)
{
	emu_lock();
	drop_event(((struct record_op *)op)->event);
	emu_unlock();
	free(op);
}

static CUresult record(CUevent event, CUstream stream)
{
	struct record_op *op = calloc(1, sizeof(*op));
	CUstream previous;
	uint64_t order;
	bool valid;
	CUresult ret;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	emu_lock();
	valid = event_valid(event);
	if (valid)
		event->refs += 2;	/* the operation's and this function's */
	emu_unlock();
	if (!valid) {
		free(op);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	op->op.run = run_record;
	op->op.destroy = destroy_record;
	op->event = event;
	ret = emu_stream_submit(stream, &op->op, &order);
	emu_lock();
	if (ret == CUDA_SUCCESS) {
		previous = event->stream;
		emu_stream_hold(stream);
		event->stream = stream;
		event->order = order;
		if (previous)
			emu_stream_put(previous);
	}
	drop_event(event);
	emu_unlock();
	return ret;
}

EMU_API CUresult cuEventRecord(CUevent event, CUstream handle)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	ret = record(event, stream);
	emu_stream_put(stream);
	return ret;
}

/* The newest record of a valid event; *stream is referenced, NULL without one. */
static CUresult get_record(CUevent event, CUstream *stream, uint64_t *order)
{
	bool valid;

	emu_lock();
	valid = event_valid(event);
	if (valid) {
		*stream = event->stream;
		*order = event->order;
		if (*stream)
			emu_stream_hold(*stream);
	}
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuEventSynchronize(CUevent event)
{
	CUstream stream;
	uint64_t order;
	CUresult ret;

	EMU_ENTER();
	ret = get_record(event, &stream, &order);
	if (ret != CUDA_SUCCESS || !stream)
		return ret;
	emu_stream_wait(stream, order);
	emu_stream_put(stream);
	return CUDA_SUCCESS;
}

EMU_API CUresult cuEventQuery(CUevent event)
{
	CUstream stream;
	uint64_t order;
	CUresult ret;

	EMU_ENTER();
	ret = get_record(event, &stream, &order);
	if (ret != CUDA_SUCCESS || !stream)
		return ret;
	if (!emu_stream_reached(stream, order))
		ret = CUDA_ERROR_NOT_READY;
	emu_stream_put(stream);
	return ret;
}

static void destroy_wait(struct emu_op *op)
{
	free(op);
}

EMU_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
	CUstream stream, recorded = NULL;
	struct emu_op *op;
	uint64_t order;
	CUresult ret;

	EMU_ENTER();
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	ret = get_record(event, &recorded, &order);
	if (ret != CUDA_SUCCESS || !recorded)
		goto out;
	op = calloc(1, sizeof(*op));
	if (!op) {
		emu_stream_put(recorded);
		ret = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	op->destroy = destroy_wait;
	op->wait_stream = recorded;
	op->wait_order = order;
	ret = emu_stream_submit(stream, op, NULL);
out:
	emu_stream_put(stream);
	return ret;
}

/* When the event's newest record ran. */
static CUresult get_time(CUevent event, int64_t *time_ns)
{
	CUresult ret = CUDA_SUCCESS;

	emu_lock();
	if (!event_valid(event) || !event->stream || (event->flags & CU_EVENT_DISABLE_TIMING))
		ret = CUDA_ERROR_INVALID_HANDLE;
	else if (!emu_stream_reached(event->stream, event->order))
		ret = CUDA_ERROR_NOT_READY;
	else
		*time_ns = event->time_ns;
	emu_unlock();
	return ret;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	int64_t from, to;
	CUresult ret;

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	ret = get_time(start, &from);
	if (ret == CUDA_SUCCESS)
		ret = get_time(end, &to);
	if (ret == CUDA_SUCCESS)
		*ms = (float)((double)(to - from) / 1e6);
	return ret;
}

EMU_API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	EMU_ENTER();
	return elapsed(ms, start, end);
}

#undef cuEventElapsedTime
EMU_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	EMU_ENTER();
	return elapsed(ms, start, end);
}
