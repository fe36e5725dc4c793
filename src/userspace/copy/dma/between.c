/* SPDX-License-Identifier: MIT */
/* Copies between two places in device memory: inside a device, to a peer, or through the host. */
#include <errno.h>

#include "copy/dma/transfer.h"

/* One copy from device memory to device memory. */
struct journey {
	struct gdri_dma_target *dst, *src;
	uint64_t dst_offset, src_offset;
	uint64_t size;
	/*
	 * The distance from source to destination where the two overlap, else 0.
	 * backward: the destination lies higher, and pieces go from the end.
	 */
	uint64_t distance;
	bool backward;
};

/*
 * Where the two sides are, in terms that they share; false: they have no memory
 * in common.  CUDA's addresses tell, since two pins of one allocation may come with
 * objects of their own.
 */
static bool find_places(const struct journey *journey, uint64_t *to, uint64_t *from)
{
	const struct gdri_dma_memory *dst = &journey->dst->memory, *src = &journey->src->memory;
	const bool by_va = dst->va && src->va;

	*to = (by_va ? dst->va : dst->offset) + journey->dst_offset;
	*from = (by_va ? src->va : src->offset) + journey->src_offset;
	return dst->device == src->device && (by_va || dst->object == src->object);
}

/* false: there is nothing to do. */
static bool plan_journey(struct journey *journey)
{
	uint64_t to, from, distance;

	if (journey->size == 0)
		return false;
	if (!find_places(journey, &to, &from))
		return true;
	distance = to > from ? to - from : from - to;
	if (distance < journey->size) {
		journey->distance = distance;
		journey->backward = to > from;
	}
	return distance != 0;
}

/* The n bytes that come after `done` ones in the journey's order: their offset. */
static uint64_t offset_of(const struct journey *journey, uint64_t done, uint64_t n)
{
	return journey->backward ? journey->size - done - n : done;
}

/*
 * Inside one device, overlapping.  A piece no longer than the distance does not
 * overlap itself, and in the right order no piece is overwritten before it is
 * read.  Where that would make the pieces short they go through scratch memory
 * of the device instead.  All threads share it: both launches of a piece are in
 * one submission, so no other launch comes between them, and a channel
 * does one after the other.
 */
static int move_overlapping(const struct journey *journey)
{
	struct gdri_dma_device *device = journey->dst->device;
	const uint64_t to = journey->dst->view.address + journey->dst_offset;
	const uint64_t from = journey->src->view.address + journey->src_offset;
	const uint64_t scratch = device->scratch_address;
	const bool detour = journey->distance < GDRI_DMA_SCRATCH_BYTES;
	const uint64_t most = detour ? GDRI_DMA_SCRATCH_BYTES : journey->distance;
	struct gdri_dma_launch launches[GDRI_DMA_BATCH];
	unsigned count = 0;
	uint32_t first = 0;
	uint64_t n, offset;
	int rc;

	for (uint64_t done = 0; done < journey->size; done += n) {
		n = journey->size - done < most ? journey->size - done : most;
		if (n > device->dma->options.launch_bytes)
			n = device->dma->options.launch_bytes;
		offset = offset_of(journey, done, n);
		if (detour)
			launches[count++] = (struct gdri_dma_launch){ from + offset, scratch, n };
		launches[count++] = (struct gdri_dma_launch){
			detour ? scratch : from + offset, to + offset, n
		};
		if (count < GDRI_DMA_BATCH && done + n < journey->size)
			continue;
		rc = gdri_dma_run(device, GDRI_DMA_WAY_BETWEEN, journey->dst, launches, count,
				  GDRI_DMA_NON_PIPELINED, &first);
		if (rc != 0)
			return rc;
		first += count - 1;
		count = 0;
	}
	return gdri_dma_wait(device, GDRI_DMA_WAY_BETWEEN, journey->dst, first);
}

static int copy_inside(const struct journey *journey)
{
	const uint64_t to = journey->dst->view.address + journey->dst_offset;
	const uint64_t from = journey->src->view.address + journey->src_offset;

	if (journey->distance != 0)
		return move_overlapping(journey);
	return gdri_dma_copy_straight(journey->dst->device, GDRI_DMA_WAY_BETWEEN, journey->dst,
				      to, from, journey->size, 0);
}

/* The target as another device sees it, or NULL: it does not. */
static const struct gdri_dma_view *see_peer(struct gdri_dma_target *target,
					    struct gdri_dma_device *device)
{
	struct gdri_dma_peer *peer = &target->peer[device->index];
	struct gdri_dma *dma = device->dma;
	int state = atomic_load_explicit(&peer->state, memory_order_acquire);

	if (__builtin_expect(state == GDRI_DMA_PEER_UNKNOWN, 0)) {
		pthread_mutex_lock(&dma->lock);
		state = atomic_load(&peer->state);
		if (state == GDRI_DMA_PEER_UNKNOWN) {
			state = dma->port->ops->map_memory(device->space, &target->memory,
							   &peer->view) == 0 ?
				GDRI_DMA_PEER_MAPPED : GDRI_DMA_PEER_NONE;
			atomic_store(&peer->state, state);
		}
		pthread_mutex_unlock(&dma->lock);
	}
	return state == GDRI_DMA_PEER_MAPPED ? &peer->view : NULL;
}

/*
 * The source's device writes to the other one: posted writes need no answer, as
 * reads would.  Where it does not see the destination, the destination's device
 * reads.  The doorbell orders what the program stored through a mapping of the
 * device that works; the other one's is settled by a read.
 */
static int copy_to_peer(const struct journey *journey)
{
	struct gdri_dma_device *near = journey->src->device, *far = journey->dst->device;
	const struct gdri_dma_view *view = see_peer(journey->dst, near);

	if (view) {
		gdri_dma_device_settle(far);
		return gdri_dma_copy_straight(near, GDRI_DMA_WAY_BETWEEN, journey->dst,
					      view->address + journey->dst_offset,
					      journey->src->view.address + journey->src_offset,
					      journey->size, GDRI_DMA_FLUSH);
	}
	view = see_peer(journey->src, far);
	if (!view)
		return -EOPNOTSUPP;
	gdri_dma_device_settle(near);
	return gdri_dma_copy_straight(far, GDRI_DMA_WAY_BETWEEN, journey->dst,
				      journey->dst->view.address + journey->dst_offset,
				      view->address + journey->src_offset, journey->size,
				      GDRI_DMA_FLUSH);
}

/* A piece in a chunk of bounce memory: read from the source, then written. */
struct stage {
	int chunk;
	uint32_t ticket;	/* of the read, and later of the write */
	uint64_t offset;
	uint64_t size;
};

/*
 * A staged copy.  Pieces head to turned - 1 are on their way to the
 * destination, turned to tail - 1 on their way from the source.
 */
struct relay {
	const struct journey *journey;
	struct gdri_dma_device *owner;	/* of the bounce memory */
	uint64_t src_side, dst_side;	/* its address for the source's and destination's device */
	uint64_t started;
	unsigned head, turned, tail;
	struct stage stage[GDRI_DMA_DEPTH];
};

static struct stage *stage_at(struct relay *relay, unsigned n)
{
	return &relay->stage[n % GDRI_DMA_DEPTH];
}

static int start_stage(struct relay *relay)
{
	const struct journey *journey = relay->journey;
	struct gdri_dma_device *device = journey->src->device;
	struct stage *stage = stage_at(relay, relay->tail);
	const uint64_t left = journey->size - relay->started;
	const uint64_t most = relay->owner->bounce.chunk;
	struct gdri_dma_launch launch;
	int rc;

	rc = gdri_dma_take_chunk(relay->owner, relay->tail == relay->head, &stage->chunk);
	if (rc != 0)
		return rc;
	stage->size = left < most ? left : most;
	stage->offset = offset_of(journey, relay->started, stage->size);
	relay->started += stage->size;
	relay->tail++;
	launch.src = journey->src->view.address + journey->src_offset + stage->offset;
	launch.dst = relay->src_side + (uint64_t)stage->chunk * most;
	launch.size = stage->size;
	return gdri_dma_run(device, GDRI_DMA_WAY_FROM, journey->src, &launch, 1, 0,
			    &stage->ticket);
}

/* The oldest piece that was read goes on to the destination. */
static int turn_stage(struct relay *relay)
{
	const struct journey *journey = relay->journey;
	struct stage *stage = stage_at(relay, relay->turned);
	struct gdri_dma_launch launch;
	int rc;

	rc = gdri_dma_wait(journey->src->device, GDRI_DMA_WAY_FROM, journey->src, stage->ticket);
	if (rc != 0)
		return rc;
	relay->turned++;
	launch.src = relay->dst_side + (uint64_t)stage->chunk * relay->owner->bounce.chunk;
	launch.dst = journey->dst->view.address + journey->dst_offset + stage->offset;
	launch.size = stage->size;
	return gdri_dma_run(journey->dst->device, GDRI_DMA_WAY_TO, journey->dst, &launch, 1, 0,
			    &stage->ticket);
}

static int finish_stage(struct relay *relay)
{
	const struct journey *journey = relay->journey;
	struct stage *stage = stage_at(relay, relay->head);
	int rc;

	rc = gdri_dma_wait(journey->dst->device, GDRI_DMA_WAY_TO, journey->dst, stage->ticket);
	if (rc == 0) {
		gdri_dma_bounce_give(&relay->owner->bounce, stage->chunk);
		relay->head++;
	}
	return rc;
}

/*
 * One step: a new read while there is room, else a piece that was read turns
 * round, else the oldest write is waited for.  Half of the pieces are kept on
 * each side, so both devices are busy.
 */
static int step_relay(struct relay *relay)
{
	const unsigned depth = relay->owner->dma->options.depth;
	int rc;

	if (relay->started < relay->journey->size && relay->tail - relay->head < depth) {
		rc = start_stage(relay);
		if (rc != -EAGAIN)
			return rc;
	}
	if (relay->turned != relay->tail)
		return turn_stage(relay);
	return finish_stage(relay);
}

/*
 * After a failure on one side the other one's launches are still under way, and
 * neither chunks nor memory are the caller's before they are over.
 */
static int abandon_relay(struct relay *relay, int rc)
{
	const struct journey *journey = relay->journey;
	struct stage *stage;
	bool lost = rc == -EOWNERDEAD;
	int one;

	for (; relay->head != relay->tail; relay->head++) {
		stage = stage_at(relay, relay->head);
		if ((int)(relay->turned - relay->head) > 0)
			one = gdri_dma_wait(journey->dst->device, GDRI_DMA_WAY_TO, journey->dst,
					    stage->ticket);
		else
			one = gdri_dma_wait(journey->src->device, GDRI_DMA_WAY_FROM, journey->src,
					    stage->ticket);
		lost = lost || one == -EOWNERDEAD;
		if (!lost)
			gdri_dma_bounce_give(&relay->owner->bounce, stage->chunk);
	}
	return lost ? -EOWNERDEAD : rc;
}

/* The addresses of this device's bounce memory on both sides. */
static int reach_bounce(struct relay *relay, struct gdri_dma_device *owner)
{
	struct gdri_dma_hostmem *set = &owner->dma->hostmem;
	const size_t size = owner->dma->options.bounce_bytes;
	const struct journey *journey = relay->journey;
	struct gdri_dma_range *range;
	int rc;

	relay->owner = owner;
	rc = gdri_dma_hostmem_hold(set, journey->src->device->index, owner->bounce.base, size,
				   &range, &relay->src_side);
	if (rc != 0)
		return rc;
	gdri_dma_hostmem_release(range);
	rc = gdri_dma_hostmem_hold(set, journey->dst->device->index, owner->bounce.base, size,
				   &range, &relay->dst_side);
	if (rc == 0)
		gdri_dma_hostmem_release(range);
	return rc;
}

static int copy_staged(const struct journey *journey)
{
	struct relay relay = { .journey = journey };
	int rc;

	if (reach_bounce(&relay, journey->src->device) != 0 &&
	    reach_bounce(&relay, journey->dst->device) != 0)
		return -EOPNOTSUPP;
	do {
		rc = step_relay(&relay);
	} while (rc == 0 && (relay.started < journey->size || relay.head != relay.tail));
	return rc ? abandon_relay(&relay, rc) : 0;
}

static int travel(const struct journey *journey, enum gdri_dma_route_wish wish,
		  enum gdri_dma_route *route)
{
	const bool inside = journey->src->device == journey->dst->device;
	int rc;

	if (wish != GDRI_DMA_ROUTE_STAGED) {
		*route = inside ? GDRI_DMA_LOCAL : GDRI_DMA_PEER;
		rc = inside ? copy_inside(journey) : copy_to_peer(journey);
		if (rc != -EOPNOTSUPP || wish == GDRI_DMA_ROUTE_PEER)
			return rc;
	}
	*route = GDRI_DMA_STAGED;
	return copy_staged(journey);
}

int gdri_dma_between(struct gdri_dma_target *dst, uint64_t dst_offset,
		     struct gdri_dma_target *src, uint64_t src_offset, size_t size,
		     enum gdri_dma_route_wish wish, enum gdri_dma_route *route)
{
	struct journey journey = {
		.dst = dst,
		.src = src,
		.dst_offset = dst_offset,
		.src_offset = src_offset,
		.size = size,
	};
	enum gdri_dma_route taken = GDRI_DMA_LOCAL;
	int rc;

	rc = gdri_dma_target_check(src);
	if (rc == 0)
		rc = gdri_dma_target_check(dst);
	if (rc != 0)
		return rc;
	if (plan_journey(&journey))
		rc = travel(&journey, wish, &taken);
	/* Half of a move inside itself cannot be begun again. */
	if (journey.distance != 0 && (rc == -EIO || rc == -ETIMEDOUT || rc == -EBUSY))
		rc = -EOWNERDEAD;
	if (rc == 0)
		*route = taken;
	return rc;
}
