/* SPDX-License-Identifier: MIT */
/* cuMemcpy and cuMemset, at once or in a stream. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "stream.h"

/*
 * A copy is cut where an allocation of either side ends; the pieces hold the
 * memory that they touch, so a buffer may be freed while its copy waits in a
 * stream.
 */
struct piece {
	struct emu_span dst, src;
};

struct transfer {
	struct emu_op op;
	unsigned width;		/* memset: size of the pattern; 0: a copy */
	uint32_t pattern;
	size_t count, capacity;
	struct piece *pieces;
	bool pageable;
};

/* Which sides must be memory that CUDA knows. */
enum {
	DST_KNOWN = 1,
	SRC_KNOWN = 2
};

static void release_pieces(struct transfer *transfer)
{
	emu_lock();
	for (size_t i = 0; i < transfer->count; i++) {
		if (transfer->pieces[i].dst.block)
			emu_block_put(transfer->pieces[i].dst.block);
		if (transfer->pieces[i].src.block)
			emu_block_put(transfer->pieces[i].src.block);
	}
	emu_unlock();
}

static void destroy_transfer(struct emu_op *op)
{
	struct transfer *transfer = (struct transfer *)op;

	release_pieces(transfer);
	free(transfer->pieces);
	free(transfer);
}

static void fill(uint8_t *dst, size_t size, uint32_t pattern, unsigned width)
{
	if (width == 1)
		memset(dst, (int)pattern, size);
	for (size_t i = 0; width == 2 && i < size / 2; i++)
		((uint16_t *)(void *)dst)[i] = (uint16_t)pattern;
	for (size_t i = 0; width == 4 && i < size / 4; i++)
		((uint32_t *)(void *)dst)[i] = pattern;
}

static void run_transfer(struct emu_op *op)
{
	struct transfer *transfer = (struct transfer *)op;

	for (size_t i = 0; i < transfer->count; i++) {
		const struct piece *piece = &transfer->pieces[i];

		if (transfer->width > 0)
			fill(piece->dst.cpu, piece->dst.size, transfer->pattern, transfer->width);
		else
			memmove(piece->dst.cpu, piece->src.cpu, piece->dst.size);
	}
}

static struct piece *add_piece(struct transfer *transfer)
{
	size_t larger = transfer->capacity * 2 + 1;
	struct piece *pieces;

	if (transfer->count == transfer->capacity) {
		pieces = realloc(transfer->pieces, larger * sizeof(*pieces));
		if (!pieces)
			return NULL;
		transfer->pieces = pieces;
		transfer->capacity = larger;
	}
	pieces = &transfer->pieces[transfer->count++];
	*pieces = (struct piece){ 0 };
	return pieces;
}

/* The next piece; *size is what is left and becomes the piece's size. */
static CUresult plan_piece(struct transfer *transfer, uint64_t dst, uint64_t src, unsigned known,
			   size_t *size)
{
	struct piece *piece = add_piece(transfer);
	CUresult ret;

	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret = emu_span_get(dst, *size, true, &piece->dst);
	if (ret == CUDA_SUCCESS && transfer->width == 0)
		ret = emu_span_get(src, piece->dst.size, false, &piece->src);
	if (ret != CUDA_SUCCESS)
		return ret;
	if (transfer->width == 0 && piece->src.size < piece->dst.size)
		piece->dst.size = piece->src.size;
	if ((piece->dst.pageable && (known & DST_KNOWN)) ||
	    (piece->src.pageable && (known & SRC_KNOWN)))
		return CUDA_ERROR_INVALID_VALUE;
	transfer->pageable |= piece->dst.pageable || piece->src.pageable;
	*size = piece->dst.size;
	return CUDA_SUCCESS;
}

static CUresult plan(struct transfer *transfer, uint64_t dst, uint64_t src, size_t size,
		     unsigned known)
{
	CUresult ret = CUDA_SUCCESS;

	emu_lock();
	while (size > 0 && ret == CUDA_SUCCESS) {
		size_t step = size;

		ret = plan_piece(transfer, dst, src, known, &step);
		dst += step;
		src += step;
		size -= step;
	}
	emu_unlock();
	return ret;
}

/*
 * A copy from or to memory that CUDA does not know is complete when the call
 * returns, also in a stream: the program may reuse the memory at once.
 */
static CUresult submit(struct transfer *transfer, CUstream handle, bool wait)
{
	uint64_t order;
	CUstream stream;
	CUresult ret = emu_stream_get(handle, &stream);

	if (ret != CUDA_SUCCESS) {
		destroy_transfer(&transfer->op);
		return ret;
	}
	wait |= transfer->pageable;
	ret = emu_stream_submit(stream, &transfer->op, &order);
	if (ret == CUDA_SUCCESS && wait)
		emu_stream_wait(stream, order);
	emu_stream_put(stream);
	return ret;
}

static CUresult start(uint64_t dst, uint64_t src, size_t size, unsigned known, uint32_t pattern,
		      unsigned width, CUstream stream, bool wait)
{
	struct transfer *transfer;
	CUresult ret;

	transfer = calloc(1, sizeof(*transfer));
	if (!transfer)
		return CUDA_ERROR_OUT_OF_MEMORY;
	transfer->op.run = run_transfer;
	transfer->op.destroy = destroy_transfer;
	transfer->pattern = pattern;
	transfer->width = width;
	ret = plan(transfer, dst, src, size, known);
	if (ret != CUDA_SUCCESS) {
		destroy_transfer(&transfer->op);
		return ret;
	}
	return submit(transfer, stream, wait);
}

static CUresult copy(uint64_t dst, uint64_t src, size_t size, unsigned known, CUstream stream,
		     bool wait)
{
	CUcontext ctx;
	CUresult ret = emu_context_current(&ctx);

	if (ret != CUDA_SUCCESS || size == 0)
		return ret;
	if (dst == 0 || src == 0 || dst + size < dst || src + size < src)
		return CUDA_ERROR_INVALID_VALUE;
	return start(dst, src, size, known, 0, 0, stream, wait);
}

static CUresult set(uint64_t dst, uint32_t pattern, unsigned width, size_t count,
		    CUstream stream, bool wait)
{
	CUcontext ctx;
	CUresult ret = emu_context_current(&ctx);

	if (ret != CUDA_SUCCESS || count == 0)
		return ret;
	if (dst == 0 || dst % width != 0 || count > SIZE_MAX / width || dst + count * width < dst)
		return CUDA_ERROR_INVALID_VALUE;
	return start(dst, 0, count * width, DST_KNOWN, pattern, width, stream, wait);
}

EMU_API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	EMU_ENTER();
	return copy(dst, src, size, 0, NULL, true);
}

EMU_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	EMU_ENTER();
	return copy(dst, src, size, 0, stream, false);
}

EMU_API CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	EMU_ENTER();
	return copy(dst, (uintptr_t)src, size, DST_KNOWN, NULL, true);
}

EMU_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size,
				      CUstream stream)
{
	EMU_ENTER();
	return copy(dst, (uintptr_t)src, size, DST_KNOWN, stream, false);
}

EMU_API CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	EMU_ENTER();
	return copy((uintptr_t)dst, src, size, SRC_KNOWN, NULL, true);
}

EMU_API CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	EMU_ENTER();
	return copy((uintptr_t)dst, src, size, SRC_KNOWN, stream, false);
}

EMU_API CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	EMU_ENTER();
	return copy(dst, src, size, DST_KNOWN | SRC_KNOWN, NULL, true);
}

EMU_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size,
				      CUstream stream)
{
	EMU_ENTER();
	return copy(dst, src, size, DST_KNOWN | SRC_KNOWN, stream, false);
}

static CUresult check_contexts(CUcontext dst, CUcontext src)
{
	bool valid;

	emu_lock();
	valid = emu_context_valid(dst) && emu_context_valid(src);
	emu_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EMU_API CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
			      CUcontext src_ctx, size_t size)
{
	EMU_ENTER();
	if (check_contexts(dst_ctx, src_ctx) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(dst, src, size, DST_KNOWN | SRC_KNOWN, NULL, true);
}

EMU_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
				   CUcontext src_ctx, size_t size, CUstream stream)
{
	EMU_ENTER();
	if (check_contexts(dst_ctx, src_ctx) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(dst, src, size, DST_KNOWN | SRC_KNOWN, stream, false);
}

EMU_API CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
	EMU_ENTER();
	return set(dst, value, 1, count, NULL, true);
}

EMU_API CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count)
{
	EMU_ENTER();
	return set(dst, value, 2, count, NULL, true);
}

EMU_API CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count)
{
	EMU_ENTER();
	return set(dst, value, 4, count, NULL, true);
}

EMU_API CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
				 CUstream stream)
{
	EMU_ENTER();
	return set(dst, value, 1, count, stream, false);
}

EMU_API CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
				  CUstream stream)
{
	EMU_ENTER();
	return set(dst, value, 2, count, stream, false);
}

EMU_API CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
	EMU_ENTER();
	return set(dst, value, 4, count, stream, false);
}
