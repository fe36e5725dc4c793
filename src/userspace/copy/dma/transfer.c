/* SPDX-License-Identifier: MIT */
/* Copies between host memory and a device: directly, or in pieces through bounce memory. */
#include "copy/dma/transfer.h"

#include <errno.h>

#include "copy/dma/stream.h"
#include "copy/dma/window.h"
#include "os/sys.h"

static int note_death(struct gdri_dma_device *device, enum gdri_dma_way way,
		      struct gdri_dma_target *target, int rc)
{
	return gdri_dma_device_died(device, way == GDRI_DMA_WAY_FROM ? NULL : target, rc);
}

int gdri_dma_run(struct gdri_dma_device *device, enum gdri_dma_way way,
		 struct gdri_dma_target *target, const struct gdri_dma_launch *launches,
		 unsigned count, unsigned flags, uint32_t *first)
{
	const int rc = gdri_dma_channel_submit(device->way[way], launches, count, flags, first);

	return __builtin_expect(rc != 0, 0) ? note_death(device, way, target, rc) : 0;
}

int gdri_dma_wait(struct gdri_dma_device *device, enum gdri_dma_way way,
		  struct gdri_dma_target *target, uint32_t ticket)
{
	const int rc = gdri_dma_channel_wait(device->way[way], ticket);

	return __builtin_expect(rc != 0, 0) ? note_death(device, way, target, rc) : 0;
}

int gdri_dma_copy_straight(struct gdri_dma_device *device, enum gdri_dma_way way,
			   struct gdri_dma_target *target, uint64_t dst, uint64_t src,
			   uint64_t size, unsigned flags)
{
	struct gdri_dma_launch launches[GDRI_DMA_BATCH];
	const uint64_t most = device->dma->options.launch_bytes;
	uint32_t first = 0;
	unsigned count = 0;
	int rc;

	while (size > 0) {
		for (count = 0; size > 0 && count < GDRI_DMA_BATCH; count++) {
			const uint64_t piece = size < most ? size : most;

			launches[count] = (struct gdri_dma_launch){ src, dst, piece };
			src += piece;
			dst += piece;
			size -= piece;
		}
		rc = gdri_dma_run(device, way, target, launches, count, flags, &first);
		if (rc != 0)
			return rc;
	}
	return gdri_dma_wait(device, way, target, first + count - 1);
}

int gdri_dma_take_chunk(struct gdri_dma_device *device, bool may_wait, int *chunk)
{
	uint64_t now, end = 0;
	int rc;

	for (unsigned turn = 1;; turn++) {
		*chunk = gdri_dma_bounce_take(&device->bounce);
		if (*chunk >= 0)
			return 0;
		if (!may_wait)
			return -EAGAIN;
		/* Chunks of a lost channel never come back. */
		rc = atomic_load_explicit(&device->refused, memory_order_relaxed);
		if (rc != 0)
			return rc;
		gdri_dma_relax();
		if (turn % 256 != 0)
			continue;
		/*
		 * Nor do those of copies that a signal handler left by longjmp.  A
		 * channel that died is noticed before this.
		 */
		now = gdri_dma_now_ns();
		end = end ? end : now + 2 * device->dma->options.timeout_ns;
		if (now > end)
			return -EBUSY;
		sched_yield();
	}
}

/* A part of a copy, in a chunk. */
struct piece {
	int chunk;
	uint32_t ticket;
	size_t offset;		/* in the copy */
	size_t size;
};

/* A copy through bounce memory.  Pieces head to tail - 1 are with the engine. */
struct passage {
	struct gdri_dma_device *device;
	struct gdri_dma_target *target;
	enum gdri_dma_way way;
	gdri_dma_copy_fn empty;
	uint64_t address;	/* of the device's side */
	size_t size;
	size_t started;		/* bytes that have their piece */
	unsigned head, tail;
	struct piece piece[GDRI_DMA_DEPTH];
};

static struct piece *piece_at(struct passage *passage, unsigned n)
{
	return &passage->piece[n % GDRI_DMA_DEPTH];
}

static uint8_t *piece_memory(const struct passage *passage, const struct piece *piece)
{
	return gdri_dma_bounce_at(&passage->device->bounce, piece->chunk);
}

static bool can_start(const struct passage *passage)
{
	return passage->started < passage->size &&
	       passage->tail - passage->head < passage->device->dma->options.depth;
}

/*
 * Nothing overlaps with the transfer of a read's first piece and of a write's last one.
 * So a read begins with a small piece and doubles, and a write ends in halves.
 * A rest that is not worth a launch joins the piece before it.
 */
static size_t next_size(const struct passage *passage)
{
	const struct gdri_dma_options *options = &passage->device->dma->options;
	const bool reads = passage->way == GDRI_DMA_WAY_FROM;
	const size_t edge = reads ? options->read_edge : options->write_edge;
	const size_t left = passage->size - passage->started;
	size_t size = reads ? passage->started + edge : left / 2;

	if (size < edge)
		size = edge;
	if (size > options->chunk_bytes)
		size = options->chunk_bytes;
	if (left <= options->chunk_bytes && left < size + edge / 2)
		size = left;
	return size < left ? size : left;
}

/* Takes a chunk for the next piece; the pieces before it are counted already. */
static int start_piece(struct passage *passage)
{
	struct piece *piece = piece_at(passage, passage->tail);
	const bool holds_none = passage->tail == passage->head;
	int rc;

	rc = gdri_dma_take_chunk(passage->device, holds_none, &piece->chunk);
	if (rc != 0)
		return rc;
	piece->offset = passage->started;
	piece->size = next_size(passage);
	passage->started += piece->size;
	passage->tail++;
	return 0;
}

static struct gdri_dma_launch make_launch(const struct passage *passage, const struct piece *piece)
{
	const uint64_t device_side = passage->address + piece->offset;
	const uint64_t host_side = passage->device->bounce_address +
				   (uint64_t)piece->chunk * passage->device->bounce.chunk;

	if (passage->way == GDRI_DMA_WAY_FROM)
		return (struct gdri_dma_launch){ device_side, host_side, piece->size };
	return (struct gdri_dma_launch){ host_side, device_side, piece->size };
}

/* Sends the last `count` pieces in one submission. */
static int send_pieces(struct passage *passage, unsigned count)
{
	struct gdri_dma_launch launches[GDRI_DMA_BATCH];
	const unsigned first = passage->tail - count;
	uint32_t ticket;
	int rc;

	for (unsigned i = 0; i < count; i++)
		launches[i] = make_launch(passage, piece_at(passage, first + i));
	rc = gdri_dma_run(passage->device, passage->way, passage->target, launches, count, 0,
			  &ticket);
	for (unsigned i = 0; rc == 0 && i < count; i++)
		piece_at(passage, first + i)->ticket = ticket + i;
	return rc;
}

static void give_piece(struct passage *passage)
{
	gdri_dma_bounce_give(&passage->device->bounce,
			     piece_at(passage, passage->head++)->chunk);
}

/* After a failure.  What a channel may still write to is never given back. */
static int give_up(struct passage *passage, int rc)
{
	while (rc != -EOWNERDEAD && passage->head != passage->tail)
		give_piece(passage);
	return rc;
}

/* As many reads as fit, but the very first alone, so that the engine begins with it at once. */
static int send_reads(struct passage *passage)
{
	const unsigned before = passage->tail;
	const unsigned most = passage->started == 0 ? 1 : GDRI_DMA_BATCH;
	int rc = 0;

	while (rc == 0 && can_start(passage) && passage->tail - before < most)
		rc = start_piece(passage);
	if (rc != 0 && rc != -EAGAIN)
		return rc;
	return passage->tail == before ? 0 : send_pieces(passage, passage->tail - before);
}

static int read_oldest(struct passage *passage, uint8_t *host)
{
	const struct piece *piece = piece_at(passage, passage->head);
	int rc;

	rc = gdri_dma_wait(passage->device, passage->way, passage->target, piece->ticket);
	if (rc != 0)
		return rc;
	passage->empty(host + piece->offset, piece_memory(passage, piece), piece->size);
	give_piece(passage);
	return 0;
}

/* The engine fills chunks while the CPU empties the oldest one. */
static int read_through(struct passage *passage, uint8_t *host)
{
	const unsigned half = passage->device->dma->options.depth / 2;
	int rc = send_reads(passage);

	while (rc == 0 && (passage->started < passage->size || passage->head != passage->tail)) {
		if (passage->tail - passage->head <= half)
			rc = send_reads(passage);
		if (rc == 0)
			rc = read_oldest(passage, host);
	}
	return give_up(passage, rc);
}

static int finish_oldest(struct passage *passage)
{
	const int rc = gdri_dma_wait(passage->device, passage->way, passage->target,
				     piece_at(passage, passage->head)->ticket);

	if (rc == 0)
		give_piece(passage);
	return rc;
}

static int write_next(struct passage *passage, const uint8_t *host)
{
	const struct piece *piece = piece_at(passage, passage->tail);
	int rc = start_piece(passage);

	if (rc == -EAGAIN)
		return finish_oldest(passage);
	if (rc != 0)
		return rc;
	passage->device->dma->options.fill(piece_memory(passage, piece), host + piece->offset,
					   piece->size);
	return send_pieces(passage, 1);
}

/* The CPU fills the next chunk while the engine sends the others. */
static int write_through(struct passage *passage, const uint8_t *host)
{
	int rc = 0;

	while (rc == 0 && (passage->started < passage->size || passage->head != passage->tail))
		rc = can_start(passage) ? write_next(passage, host) : finish_oldest(passage);
	return give_up(passage, rc);
}

static struct passage make_passage(struct gdri_dma_target *target, enum gdri_dma_way way,
				   uint64_t offset, size_t size)
{
	const struct gdri_dma_options *options = &target->device->dma->options;

	return (struct passage){
		.device = target->device,
		.target = target,
		.way = way,
		.empty = size < GDRI_DMA_STREAM_FROM ? options->empty : options->empty_large,
		.address = target->view.address + offset,
		.size = size,
	};
}

/* -ENOENT: not registered.  Otherwise the copy is over. */
static int copy_directly(struct gdri_dma_target *target, enum gdri_dma_way way, uint64_t offset,
			 const void *host, size_t size)
{
	struct gdri_dma_device *device = target->device;
	const uint64_t address = target->view.address + offset;
	struct gdri_dma_range *range;
	uint64_t host_address;
	int rc;

	rc = gdri_dma_hostmem_hold(&device->dma->hostmem, device->index, host, size, &range,
				   &host_address);
	if (rc != 0)
		return rc;
	if (way == GDRI_DMA_WAY_FROM)
		rc = gdri_dma_copy_straight(device, way, target, host_address, address, size, 0);
	else
		rc = gdri_dma_copy_straight(device, way, target, address, host_address, size, 0);
	gdri_dma_hostmem_release(range);
	return rc;
}

int gdri_dma_to_device(struct gdri_dma_target *target, uint64_t offset, const void *host,
		       size_t size)
{
	struct passage passage;
	int rc;

	if (size == 0)
		return 0;
	rc = gdri_dma_target_check(target);
	if (rc != 0)
		return rc;
	rc = copy_directly(target, GDRI_DMA_WAY_TO, offset, host, size);
	if (rc != -ENOENT)
		return rc;
	passage = make_passage(target, GDRI_DMA_WAY_TO, offset, size);
	return write_through(&passage, host);
}

static int read_bounced(struct gdri_dma_target *target, uint64_t offset, uint8_t *host, size_t size)
{
	struct passage passage;

	if (size == 0)
		return 0;
	passage = make_passage(target, GDRI_DMA_WAY_FROM, offset, size);
	return read_through(&passage, host);
}

/* The whole pages are pinned and read straight; bounce memory takes the ends, and what is left. */
static int read_large(struct gdri_dma_target *target, uint64_t offset, uint8_t *host, size_t size)
{
	const size_t page = gdri_os_page_size();
	const size_t head = -(uintptr_t)host & (page - 1);
	size_t done;
	int rc;

	if (size < head + page)
		return read_bounced(target, offset, host, size);
	rc = read_bounced(target, offset, host, head);
	if (rc == 0)
		rc = gdri_dma_read_windows(target, target->view.address + offset + head,
					   host + head, (size - head) & ~(page - 1), &done);
	if (rc)
		return rc;
	done += head;
	return read_bounced(target, offset + done, host + done, size - done);
}

int gdri_dma_from_device(struct gdri_dma_target *target, uint64_t offset, void *host, size_t size)
{
	int rc;

	if (size == 0)
		return 0;
	rc = gdri_dma_target_check(target);
	if (rc != 0)
		return rc;
	rc = copy_directly(target, GDRI_DMA_WAY_FROM, offset, host, size);
	if (rc != -ENOENT)
		return rc;
	return size < target->device->dma->options.pin_from ?
	       read_bounced(target, offset, host, size) : read_large(target, offset, host, size);
}
