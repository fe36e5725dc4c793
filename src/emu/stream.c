/* SPDX-License-Identifier: MIT */
/* Runs operations in the order that streams, the default stream and events ask for. */
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * One lock and one condition serve all streams: an emulator has few of them,
 * and every completion may let any other stream go on.
 */
static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t engine_changed = PTHREAD_COND_INITIALIZER;
static uint64_t last_order;

static bool completed(const struct CUstream_st *stream, uint64_t order)
{
	return !stream->head || stream->head->order > order;
}

static bool is_default(const struct CUstream_st *stream)
{
	return stream == stream->ctx->default_stream;
}

/*
 * CUDA's legacy default stream: its operations wait for all earlier ones of
 * the context's blocking streams, and theirs wait for its earlier ones.
 */
static bool default_stream_allows(const struct CUstream_st *stream, uint64_t order)
{
	const struct CUstream_st *other;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return true;
	if (!is_default(stream))
		return completed(stream->ctx->default_stream, order);
	for (other = stream->ctx->streams; other; other = other->next)
		if (other != stream && !(other->flags & CU_STREAM_NON_BLOCKING) &&
		    !completed(other, order))
			return false;
	return true;
}

static bool can_run(const struct CUstream_st *stream, const struct emu_op *op)
{
	if (stream->head != op || op->running)
		return false;
	if (op->wait_stream && !completed(op->wait_stream, op->wait_order))
		return false;
	return default_stream_allows(stream, op->order);
}

static void free_stream(struct CUstream_st *stream)
{
	struct CUstream_st **link = &stream->ctx->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	free(stream);
}

static void drop_stream(struct CUstream_st *stream)
{
	if (--stream->refs == 0)
		free_stream(stream);
}

/* Runs the first operation of the stream; called and left with the lock held. */
static void run_head(struct CUstream_st *stream)
{
	struct emu_op *op = stream->head;

	op->running = true;
	pthread_mutex_unlock(&engine_lock);
	if (op->run)
		op->run(op);
	pthread_mutex_lock(&engine_lock);
	stream->head = op->next;
	if (!stream->head)
		stream->tail = &stream->head;
	pthread_cond_broadcast(&engine_changed);
	if (op->wait_stream)
		drop_stream(op->wait_stream);
	pthread_mutex_unlock(&engine_lock);
	op->destroy(op);
	pthread_mutex_lock(&engine_lock);
}

static void *serve(void *arg)
{
	struct CUstream_st *stream = arg;

	pthread_mutex_lock(&engine_lock);
	while (stream->head) {
		if (can_run(stream, stream->head))
			run_head(stream);
		else
			pthread_cond_wait(&engine_changed, &engine_lock);
	}
	stream->has_thread = false;
	drop_stream(stream);
	pthread_cond_broadcast(&engine_changed);
	pthread_mutex_unlock(&engine_lock);
	return NULL;
}

static CUresult start_thread(struct CUstream_st *stream)
{
	pthread_t thread;

	if (stream->has_thread)
		return CUDA_SUCCESS;
	if (pthread_create(&thread, NULL, serve, stream) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_detach(thread);
	stream->has_thread = true;
	stream->refs++;
	return CUDA_SUCCESS;
}

static void append(struct CUstream_st *stream, struct emu_op *op)
{
	op->order = stream->submitted = ++last_order;
	op->next = NULL;
	*stream->tail = op;
	stream->tail = &op->next;
}

CUresult emu_stream_submit(CUstream stream, struct emu_op *op, uint64_t *order)
{
	CUresult ret = CUDA_SUCCESS;
	bool in_thread = op->in_thread;

	pthread_mutex_lock(&engine_lock);
	/* With a thread in place nothing can be stuck, so it is started first. */
	if (in_thread || stream->head || op->wait_stream ||
	    !default_stream_allows(stream, last_order + 1)) {
		in_thread = true;
		ret = start_thread(stream);
	}
	if (ret != CUDA_SUCCESS) {
		if (op->wait_stream)
			drop_stream(op->wait_stream);
		pthread_mutex_unlock(&engine_lock);
		op->destroy(op);
		return ret;
	}
	append(stream, op);
	if (order)
		*order = op->order;
	if (in_thread)
		pthread_cond_broadcast(&engine_changed);
	else
		run_head(stream);
	pthread_mutex_unlock(&engine_lock);
	return CUDA_SUCCESS;
}

void emu_stream_wait(CUstream stream, uint64_t order)
{
	pthread_mutex_lock(&engine_lock);
	while (!completed(stream, order))
		pthread_cond_wait(&engine_changed, &engine_lock);
	pthread_mutex_unlock(&engine_lock);
}

bool emu_stream_reached(CUstream stream, uint64_t order)
{
	bool reached;

	pthread_mutex_lock(&engine_lock);
	reached = completed(stream, order);
	pthread_mutex_unlock(&engine_lock);
	return reached;
}

/* Waits until no stream of the context has work; the lock is held. */
static void drain(CUcontext ctx)
{
	struct CUstream_st *stream = ctx->streams;

	while (stream) {
		if (stream->head) {
			pthread_cond_wait(&engine_changed, &engine_lock);
			stream = ctx->streams;
		} else {
			stream = stream->next;
		}
	}
}

void emu_stream_wait_context(CUcontext ctx)
{
	pthread_mutex_lock(&engine_lock);
	drain(ctx);
	pthread_mutex_unlock(&engine_lock);
}

static struct CUstream_st *new_stream(CUcontext ctx, unsigned flags)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->ctx = ctx;
	stream->flags = flags;
	stream->refs = 1;
	stream->tail = &stream->head;
	pthread_mutex_lock(&engine_lock);
	stream->next = ctx->streams;
	ctx->streams = stream;
	pthread_mutex_unlock(&engine_lock);
	return stream;
}

CUresult emu_stream_start_context(CUcontext ctx)
{
	ctx->default_stream = new_stream(ctx, CU_STREAM_DEFAULT);
	return ctx->default_stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void emu_stream_stop_context(CUcontext ctx)
{
	struct CUstream_st *stream, *next;

	pthread_mutex_lock(&engine_lock);
	drain(ctx);
	for (stream = ctx->streams; stream; stream = next) {
		next = stream->next;
		if (stream->destroyed)
			continue;
		stream->destroyed = true;
		drop_stream(stream);
	}
	pthread_mutex_unlock(&engine_lock);
}

CUresult emu_stream_get(CUstream handle, CUstream *stream)
{
	struct CUstream_st *found;
	CUcontext ctx;
	CUresult ret = emu_context_current(&ctx);

	if (ret != CUDA_SUCCESS)
		return ret;
	if (handle == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&engine_lock);
	if (!handle || handle == CU_STREAM_LEGACY)
		handle = ctx->default_stream;
	for (found = ctx->streams; found && found != handle; found = found->next)
		continue;
	if (!found || found->destroyed)
		ret = CUDA_ERROR_INVALID_HANDLE;
	else
		found->refs++;
	pthread_mutex_unlock(&engine_lock);
	if (ret == CUDA_SUCCESS)
		*stream = found;
	return ret;
}

void emu_stream_hold(CUstream stream)
{
	pthread_mutex_lock(&engine_lock);
	stream->refs++;
	pthread_mutex_unlock(&engine_lock);
}

void emu_stream_put(CUstream stream)
{
	pthread_mutex_lock(&engine_lock);
	drop_stream(stream);
	pthread_mutex_unlock(&engine_lock);
}

EMU_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	(void)priority;		/* clamped to the range 0 to 0, as CUDA does */
	if (!stream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	*stream = new_stream(ctx, flags);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EMU_API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	EMU_ENTER();
	return cuStreamCreateWithPriority(stream, flags, 0);
}

EMU_API CUresult cuStreamDestroy_v2(CUstream handle)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!handle || handle == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_HANDLE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	pthread_mutex_lock(&engine_lock);
	if (is_default(stream) || stream->destroyed) {
		ret = CUDA_ERROR_INVALID_HANDLE;
	} else {
		stream->destroyed = true;
		stream->refs--;		/* not the last: this call has one */
	}
	drop_stream(stream);
	pthread_mutex_unlock(&engine_lock);
	return ret;
}

EMU_API CUresult cuStreamSynchronize(CUstream handle)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	/* Waiting for the default stream waits for the blocking ones, as its work would. */
	pthread_mutex_lock(&engine_lock);
	while (!completed(stream, stream->submitted) ||
	       (is_default(stream) && !default_stream_allows(stream, last_order)))
		pthread_cond_wait(&engine_changed, &engine_lock);
	pthread_mutex_unlock(&engine_lock);
	ret = __atomic_load_n(&stream->ctx->failure, __ATOMIC_ACQUIRE);
	emu_stream_put(stream);
	return ret;
}

EMU_API CUresult cuStreamQuery(CUstream handle)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	pthread_mutex_lock(&engine_lock);
	if (!completed(stream, stream->submitted) ||
	    (is_default(stream) && !default_stream_allows(stream, last_order)))
		ret = CUDA_ERROR_NOT_READY;
	drop_stream(stream);
	pthread_mutex_unlock(&engine_lock);
	return ret;
}

EMU_API CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	*ctx = stream->ctx;
	emu_stream_put(stream);
	return CUDA_SUCCESS;
}

EMU_API CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	*flags = stream->flags;
	emu_stream_put(stream);
	return CUDA_SUCCESS;
}

EMU_API CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	*priority = 0;
	emu_stream_put(stream);
	return CUDA_SUCCESS;
}

struct host_call {
	struct emu_op op;
	CUhostFn fn;
	void *user_data;
};

static void run_host_call(struct emu_op *op)
{
	struct host_call *call = (struct host_call *)op;

	call->fn(call->user_data);
}

static void destroy_host_call(struct emu_op *op)
{
	free(op);
}

EMU_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *user_data)
{
	struct host_call *call;
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	call = calloc(1, sizeof(*call));
	if (call) {
		call->op.run = run_host_call;
		call->op.destroy = destroy_host_call;
		call->op.in_thread = true;
		call->fn = fn;
		call->user_data = user_data;
		ret = emu_stream_submit(stream, &call->op, NULL);
	} else {
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	emu_stream_put(stream);
	return ret;
}
