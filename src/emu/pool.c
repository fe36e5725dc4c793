/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory: pools, cuMemAllocAsync and cuMemFreeAsync. */
#include <stdlib.h>

#include "memory.h"
#include "stream.h"

struct CUmemPoolHandle_st {
	struct CUmemPoolHandle_st *next;
	CUdevice device;
	size_t max_size;		/* 0: none */
	cuuint64_t threshold;
	int reuse[3];			/* the three CU_MEMPOOL_ATTR_REUSE switches */
	cuuint64_t used, used_high;
	bool is_default;
	bool destroyed;			/* lives on until its memory is freed */
};

static CUmemoryPool pools;
static CUmemoryPool default_pools[EMU_MAX_DEVICES];
static CUmemoryPool current_pools[EMU_MAX_DEVICES];

/* All helpers are called with the lock held. */
static CUmemoryPool create_pool(CUdevice device, size_t max_size)
{
	CUmemoryPool pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->device = device;
	pool->max_size = max_size;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

static void destroy_pool(CUmemoryPool pool)
{
	CUmemoryPool *link = &pools;

	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	free(pool);
}

static CUmemoryPool default_pool(CUdevice device)
{
	if (!default_pools[device]) {
		default_pools[device] = create_pool(device, 0);
		if (default_pools[device])
			default_pools[device]->is_default = true;
	}
	return default_pools[device];
}

static CUmemoryPool current_pool(CUdevice device)
{
	return current_pools[device] ? current_pools[device] : default_pool(device);
}

static bool pool_valid(CUmemoryPool pool)
{
	for (CUmemoryPool p = pools; p; p = p->next)
		if (p == pool)
			return !p->destroyed;
	return false;
}

void emu_pool_freed(CUmemoryPool pool, uint64_t size)
{
	pool->used -= size;
	if (pool->destroyed && pool->used == 0)
		destroy_pool(pool);
}

static CUresult allocate(CUcontext ctx, CUmemoryPool pool, size_t size, CUdeviceptr *ptr)
{
	CUresult ret;

	if (pool->max_size != 0 && size > pool->max_size - pool->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret = emu_memory_allocate(ctx, pool->device, EMU_POOL, pool, size, ptr);
	if (ret != CUDA_SUCCESS)
		return ret;
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice device, CUmemoryPool (*get)(CUdevice))
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	emu_lock();
	*pool = get(device);
	emu_unlock();
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EMU_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	EMU_ENTER();
	return get_pool(pool, device, default_pool);
}

EMU_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	EMU_ENTER();
	return get_pool(pool, device, current_pool);
}

EMU_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	bool valid;

	EMU_ENTER();
	if (!emu_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	emu_lock();
	valid = pool_valid(pool) && pool->device == device;
	if (valid)
		current_pools[device] = pool;
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	EMU_ENTER();
	if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE || props->usage != 0 ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!emu_device_valid(props->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	emu_lock();
	*pool = create_pool(props->location.id, props->maxSize);
	emu_unlock();
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EMU_API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	bool valid;

	EMU_ENTER();
	emu_lock();
	valid = pool_valid(pool) && !pool->is_default;
	if (valid) {
		if (current_pools[pool->device] == pool)
			current_pools[pool->device] = NULL;
		pool->destroyed = true;
		if (pool->used == 0)
			destroy_pool(pool);
	}
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Pools keep nothing back, so there is nothing to trim. */
EMU_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	bool valid;

	EMU_ENTER();
	(void)keep;
	emu_lock();
	valid = pool_valid(pool);
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - 1] = *(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_high = pool->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

EMU_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				       void *value)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	EMU_ENTER();
	emu_lock();
	if (value && pool_valid(pool))
		ret = set_attribute(pool, attribute, value);
	emu_unlock();
	return ret;
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attribute - 1];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

EMU_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				       void *value)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	EMU_ENTER();
	emu_lock();
	if (value && pool_valid(pool))
		ret = get_attribute(pool, attribute, value);
	emu_unlock();
	return ret;
}

/* Every device that is a peer can reach pool memory already. */
EMU_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
	CUresult ret = CUDA_SUCCESS;

	EMU_ENTER();
	if (!access || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	if (!pool_valid(pool))
		ret = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && ret == CUDA_SUCCESS; i++) {
		if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    !emu_device_valid(access[i].location.id))
			ret = CUDA_ERROR_INVALID_DEVICE;
		else if (access[i].location.id != pool->device && !emu_config_get()->peer)
			ret = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	}
	emu_unlock();
	return ret;
}

/*
 * Memory is handed out at once: what is freed in a stream becomes available
 * when the free has run, so that no earlier work can still use it.
 */
EMU_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
					 CUstream handle)
{
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!ptr || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	emu_lock();
	ret = pool_valid(pool) ? allocate(stream->ctx, pool, size, ptr) : CUDA_ERROR_INVALID_VALUE;
	emu_unlock();
	emu_stream_put(stream);
	return ret;
}

EMU_API CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream handle)
{
	CUmemoryPool pool;
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	if (!ptr || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	emu_lock();
	pool = current_pool(stream->ctx->device);
	ret = pool ? allocate(stream->ctx, pool, size, ptr) : CUDA_ERROR_OUT_OF_MEMORY;
	emu_unlock();
	emu_stream_put(stream);
	return ret;
}

struct free_op {
	struct emu_op op;
	CUdeviceptr ptr;
};

static void run_free(struct emu_op *op)
{
	struct emu_alloc *alloc;

	emu_lock();
	alloc = emu_alloc_find(((struct free_op *)op)->ptr);
	if (alloc && alloc->freeing)
		emu_alloc_remove(alloc);
	emu_unlock();
}

static void destroy_free(struct emu_op *op)
{
	free(op);
}

/* Marks the allocation, so that it is freed once. */
static bool begin_free(CUdeviceptr ptr)
{
	struct emu_alloc *alloc;
	bool found;

	emu_lock();
	alloc = emu_alloc_find(ptr);
	found = alloc && alloc->va == ptr && !alloc->freeing &&
		(alloc->kind == EMU_POOL || alloc->kind == EMU_MALLOC);
	if (found)
		alloc->freeing = true;
	emu_unlock();
	return found;
}

EMU_API CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream handle)
{
	struct free_op *op;
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	op = calloc(1, sizeof(*op));
	if (!op) {
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!begin_free(ptr)) {
		free(op);
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		op->op.run = run_free;
		op->op.destroy = destroy_free;
		op->ptr = ptr;
		ret = emu_stream_submit(stream, &op->op, NULL);
	}
	emu_stream_put(stream);
	return ret;
}
