/* SPDX-License-Identifier: MIT */
/* Creates, destroys and switches contexts. */
#include "context.h"

#include <stdlib.h>

#include "memory.h"
#include "stream.h"

#define STACK_DEPTH 64

static CUcontext contexts;
static CUcontext primaries[EMU_MAX_DEVICES];
static unsigned primary_flags[EMU_MAX_DEVICES];
static __thread CUcontext stack[STACK_DEPTH];
static __thread unsigned depth;

bool emu_context_valid(CUcontext ctx)
{
	for (CUcontext c = contexts; c; c = c->next)
		if (c == ctx)
			return c->alive;
	return false;
}

CUresult emu_context_current(CUcontext *ctx)
{
	CUcontext top = depth > 0 ? stack[depth - 1] : NULL;

	if (!top)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!__atomic_load_n(&top->alive, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ctx = top;
	return __atomic_load_n(&top->failure, __ATOMIC_ACQUIRE);
}

/* Locked by the caller. */
static CUresult create(CUdevice device, unsigned flags, unsigned version, CUcontext *out)
{
	CUcontext ctx = calloc(1, sizeof(*ctx));
	CUresult ret;

	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->device = device;
	ctx->flags = flags;
	ctx->api_version = version;
	ctx->alive = true;
	ret = emu_stream_start_context(ctx);
	if (ret != CUDA_SUCCESS) {
		free(ctx);
		return ret;
	}
	ctx->next = contexts;
	contexts = ctx;
	*out = ctx;
	return CUDA_SUCCESS;
}

/* Called without the lock, on a context that is not alive any more. */
static void dismantle(CUcontext ctx)
{
	emu_stream_stop_context(ctx);
	emu_memory_free_context(ctx);
}

static CUresult create_current(CUcontext *ctx, unsigned flags, CUdevice device, unsigned version)
{
	CUresult ret;

	if (!ctx || (flags & ~(unsigned)CU_CTX_FLAGS_MASK))
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	emu_lock();
	ret = create(device, flags, version, ctx);
	emu_unlock();
	if (ret == CUDA_SUCCESS)
		stack[depth++] = *ctx;
	return ret;
}

EMU_API CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice device)
{
	EMU_ENTER();
	return create_current(ctx, flags, device, 3020);
}

EMU_API CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *affinity, int count,
				unsigned flags, CUdevice device)
{
	EMU_ENTER();
	if (affinity || count != 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create_current(ctx, flags, device, 3020);
}

EMU_API CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned flags,
				CUdevice device)
{
	EMU_ENTER();
	if (params)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create_current(ctx, flags, device, 3020);
}

EMU_API CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	bool valid;

	EMU_ENTER();
	emu_lock();
	valid = emu_context_valid(ctx) && !ctx->primary;
	if (valid)
		__atomic_store_n(&ctx->alive, false, __ATOMIC_RELEASE);
	emu_unlock();
	if (!valid)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth > 0 && stack[depth - 1] == ctx)
		depth--;
	dismantle(ctx);
	return CUDA_SUCCESS;
}

static CUresult check_live(CUcontext ctx)
{
	bool valid;

	emu_lock();
	valid = emu_context_valid(ctx);
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EMU_API CUresult cuCtxSetCurrent(CUcontext ctx)
{
	EMU_ENTER();
	if (!ctx) {
		if (depth > 0)
			depth--;
		return CUDA_SUCCESS;
	}
	if (check_live(ctx) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == 0)
		depth = 1;
	stack[depth - 1] = ctx;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	EMU_ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = depth > 0 ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	EMU_ENTER();
	if (check_live(ctx) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	EMU_ENTER();
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetDevice(CUdevice *device)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ctx->device;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetFlags(unsigned *flags)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = ctx->flags;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
	EMU_ENTER();
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ctx) {
		CUresult ret = emu_context_current(&ctx);

		if (ret != CUDA_SUCCESS)
			return ret;
	} else if (check_live(ctx) != CUDA_SUCCESS) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*version = ctx->api_version;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSynchronize(void)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	emu_stream_wait_context(ctx);
	return __atomic_load_n(&ctx->failure, __ATOMIC_ACQUIRE);
}

EMU_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = 0;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	CUresult ret = CUDA_SUCCESS;
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	if (!emu_context_valid(peer) || peer == ctx)
		ret = CUDA_ERROR_INVALID_CONTEXT;
	else if (!emu_config_get()->peer || peer->device == ctx->device)
		ret = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	else if (ctx->peers & 1u << peer->device)
		ret = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	else
		ctx->peers |= 1u << peer->device;
	emu_unlock();
	return ret;
}

EMU_API CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	CUresult ret = CUDA_SUCCESS;
	CUcontext ctx;

	EMU_ENTER_CONTEXT(&ctx);
	emu_lock();
	if (!emu_context_valid(peer))
		ret = CUDA_ERROR_INVALID_CONTEXT;
	else if (!(ctx->peers & 1u << peer->device))
		ret = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	else
		ctx->peers &= ~(1u << peer->device);
	emu_unlock();
	return ret;
}

EMU_API CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	CUresult ret = CUDA_SUCCESS;

	EMU_ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	emu_lock();
	if (!primaries[device]) {
		ret = create(device, primary_flags[device], 3020, &primaries[device]);
		if (ret == CUDA_SUCCESS)
			primaries[device]->primary = true;
	}
	if (ret == CUDA_SUCCESS) {
		primaries[device]->retained++;
		*ctx = primaries[device];
	}
	emu_unlock();
	return ret;
}

/* Takes the primary context away, at the last release or by force. */
static CUresult drop_primary(CUdevice device, bool reset)
{
	CUresult ret = CUDA_SUCCESS;
	CUcontext gone = NULL;

	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	emu_lock();
	if (!primaries[device]) {
		ret = reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	} else if (reset || --primaries[device]->retained == 0) {
		gone = primaries[device];
		primaries[device] = NULL;
		__atomic_store_n(&gone->alive, false, __ATOMIC_RELEASE);
	}
	emu_unlock();
	if (gone)
		dismantle(gone);
	return ret;
}

EMU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	EMU_ENTER();
	return drop_primary(device, false);
}

EMU_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	EMU_ENTER();
	return drop_primary(device, true);
}

EMU_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	EMU_ENTER();
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	primary_flags[device] = flags;
	if (primaries[device])
		primaries[device]->flags = flags;
	emu_unlock();
	return CUDA_SUCCESS;
}

EMU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	EMU_ENTER();
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	*flags = primary_flags[device];
	*active = primaries[device] != NULL;
	emu_unlock();
	return CUDA_SUCCESS;
}
