/* SPDX-License-Identifier: MIT */
/* Version 3's copies: which road each takes. */
#include "core/buffer.h"

#include <errno.h>

#include "copy/cpu/fence.h"

#define STAGE ((size_t)16 << 10)

/* Inside the gate of the buffer; slot as gdri_gate_enter_quickly gives it. */
struct visit {
	struct gdri_region *region;
	struct gdri_gate_slot *slot;
};

/* Who is not inside yet may not read the session: it may be closing. */
static __attribute__((cold, noinline)) int refuse(const char *call, const char *what, int rc)
{
	struct gdri_log log = gdri_core_config_log();

	gdri_error(&log, "%s: the %s %s", call, what,
		   rc == -EACCES ? "belongs to the parent of this process; open and pin here" :
				   "is not a live one (closed or unpinned already, or invented)");
	return rc == -EACCES ? rc : -EBADF;
}

static void leave(const struct visit *visit)
{
	gdri_gate_leave_quickly(&visit->region->copies, visit->slot);
}

/*
 * A copy passes the gate of its buffer and not that of its session, which costs
 * locked instructions: a session is not freed before its buffers are.  Inside
 * the gate region->context is alive, and only then is it compared.
 */
static inline int enter(uint64_t session, uint64_t handle, const char *call, struct visit *visit)
{
	struct gdri_record *record;
	void *context, *object;
	int rc;

	rc = gdri_core_handle_lookup(session, GDRI_RECORD_SESSION_V3, &record, &context);
	if (__builtin_expect(rc != 0, 0))
		return refuse(call, "session", rc);
	rc = gdri_core_handle_lookup(handle, GDRI_RECORD_REGION_V3, &record, &object);
	if (__builtin_expect(rc != 0, 0))
		return refuse(call, "handle", rc);
	visit->region = object;
	if (__builtin_expect(!gdri_gate_enter_quickly(gdri_core_table_slots(),
						      &visit->region->copies, record->generation,
						      &visit->slot), 0))
		return refuse(call, "handle", -EBADF);
	if (__builtin_expect(visit->region->context == context, 1))
		return 0;
	leave(visit);
	return refuse(call, "handle", -EBADF);
}

static int check_range(const struct gdri_context *context, const struct gdri_buffer *buffer,
		       const char *call, uint64_t offset, size_t size)
{
	if (__builtin_expect(offset <= buffer->length && size <= buffer->length - offset, 1))
		return 0;
	gdri_error(&context->config.log, "%s: %zu bytes at offset %llu leave the buffer of %llu bytes",
		   call, size, (unsigned long long)offset, (unsigned long long)buffer->length);
	return -EINVAL;
}

static int check_host(const struct gdri_context *context, const char *call, const void *host,
		      size_t size)
{
	if (__builtin_expect(host != NULL || size == 0, 1))
		return 0;
	gdri_error(&context->config.log, "%s: the host pointer is NULL; give host memory of %zu "
		   "bytes", call, size);
	return -EINVAL;
}

static inline unsigned char *window_at(const struct gdri_region *region, uint64_t offset)
{
	return region->base + region->buffer.skew + offset;
}

/*
 * The plan of a copy between host and device: the engines from the crossover on
 * that holds for this kind of host memory, and wherever there is no window.  A
 * thread without a slot may be a signal handler (core/region_copy.c).
 */
static bool plan_engine(const struct visit *visit, bool reads, uint64_t offset, const void *host,
			size_t size)
{
	const struct gdri_region *region = visit->region;
	const struct gdri_dma_road *road = &region->road;
	const size_t pageable = reads ? road->from_min : road->to_min;
	const size_t registered = reads ? road->from_min_registered : road->to_min_registered;

	if (!road->target || !visit->slot)
		return false;
	if (!region->mapping.base)
		return true;
	if (size < pageable && size < registered)
		return false;
	if (size < pageable && !gdri_core_dma_is_registered(region->context, host, size))
		return false;
	if (size >= pageable && size < registered &&
	    gdri_core_dma_is_registered(region->context, host, size))
		return false;
	return gdri_core_dma_takes(road, region->buffer.skew + offset, host, size);
}

static int refuse_road(const struct gdri_context *context, const char *call)
{
	gdri_error(&context->config.log, "%s: the buffer has neither a window for the CPU (BAR1 was "
		   "full) nor a copy engine; unpin other buffers and pin again", call);
	return -EOPNOTSUPP;
}

static int write_inside(struct gdri_context *context, const struct visit *visit, uint64_t offset,
			const void *host, size_t size)
{
	const struct gdri_region *region = visit->region;
	int rc = 1;

	if (plan_engine(visit, false, offset, host, size))
		rc = gdri_core_dma_write(&region->road, region->buffer.skew + offset, host, size);
	if (rc <= 0)
		return rc;
	if (!region->mapping.base)
		return refuse_road(context, "copy_from_host");
	region->to_mapping(window_at(region, offset), host, size);
	return 0;
}

static int read_inside(struct gdri_context *context, const struct visit *visit, uint64_t offset,
		       void *host, size_t size)
{
	const struct gdri_region *region = visit->region;
	int rc = 1;

	if (plan_engine(visit, true, offset, host, size))
		rc = gdri_core_dma_read(&region->road, region->buffer.skew + offset, host, size);
	if (rc <= 0)
		return rc;
	if (!region->mapping.base)
		return refuse_road(context, "copy_to_host");
	region->from_mapping(host, window_at(region, offset), size);
	return 0;
}

int gdri_core_buffer_write(uint64_t session, uint64_t handle, uint64_t offset, const void *host,
			   size_t size)
{
	struct gdri_context *context;
	struct visit visit;
	int rc = enter(session, handle, "copy_from_host", &visit);

	if (rc)
		return rc;
	context = visit.region->context;
	rc = check_range(context, &visit.region->buffer, "copy_from_host", offset, size);
	if (rc == 0)
		rc = check_host(context, "copy_from_host", host, size);
	if (rc == 0 && size != 0)
		rc = write_inside(context, &visit, offset, host, size);
	leave(&visit);
	return rc;
}

int gdri_core_buffer_read(uint64_t session, uint64_t handle, uint64_t offset, void *host,
			  size_t size)
{
	struct gdri_context *context;
	struct visit visit;
	int rc = enter(session, handle, "copy_to_host", &visit);

	if (rc)
		return rc;
	context = visit.region->context;
	rc = check_range(context, &visit.region->buffer, "copy_to_host", offset, size);
	if (rc == 0)
		rc = check_host(context, "copy_to_host", host, size);
	if (rc == 0 && size != 0)
		rc = read_inside(context, &visit, offset, host, size);
	leave(&visit);
	return rc;
}

/* One copy between two buffers. */
struct transfer {
	const struct gdri_region *src, *dst;
	uint64_t src_offset, dst_offset;
	size_t size;
};

static bool is_granular(const struct transfer *transfer)
{
	const uint32_t flags = transfer->src->buffer.flags & transfer->dst->buffer.flags;

	return flags & GDRI_BUFFER_UNALIGNED ||
	       (transfer->src_offset | transfer->dst_offset | transfer->size) %
	       GDRI_BUFFER_GRANULE == 0;
}

static int check_transfer(struct gdri_context *context, const struct transfer *transfer)
{
	int rc = check_range(context, &transfer->src->buffer, "copy_to_device: source",
			     transfer->src_offset, transfer->size);

	if (rc == 0)
		rc = check_range(context, &transfer->dst->buffer, "copy_to_device: destination",
				 transfer->dst_offset, transfer->size);
	if (rc == 0 && !is_granular(transfer)) {
		gdri_error(&context->config.log, "copy_to_device: offsets and length are multiples of "
			   "%u, unless both buffers are pinned with GDR_PIN_BUFFER_UNALIGNED",
			   GDRI_BUFFER_GRANULE);
		rc = -EINVAL;
	}
	return rc;
}

/*
 * By the CPU, through both windows and a piece of its stack.  A destination that
 * lies above an overlapping source is filled from its end, as memmove does; the
 * GPU addresses tell, also for two pins of one allocation.
 */
static void copy_by_cpu(const struct transfer *transfer)
{
	unsigned char stage[STAGE] __attribute__((aligned(64)));
	const struct gdri_region *src = transfer->src, *dst = transfer->dst;
	const bool backward = dst->buffer.device == src->buffer.device &&
			      dst->buffer.addr + transfer->dst_offset >
			      src->buffer.addr + transfer->src_offset;

	for (size_t done = 0; done < transfer->size; ) {
		const size_t left = transfer->size - done;
		const size_t piece = left < STAGE ? left : STAGE;
		const size_t at = backward ? left - piece : done;

		src->from_mapping(stage, window_at(src, transfer->src_offset + at), piece);
		dst->to_mapping(window_at(dst, transfer->dst_offset + at), stage, piece);
		done += piece;
	}
}

static int refuse_staging(const struct gdri_context *context, const struct transfer *transfer)
{
	gdri_error(&context->config.log, "copy_to_device: devices %d and %d do not reach each other, "
		   "and GDRCOPY_STRICT_P2P=1 or GDRCOPY_ROUTE=peer forbids the way through host "
		   "memory", transfer->src->buffer.device, transfer->dst->buffer.device);
	return -EOPNOTSUPP;
}

/*
 * The plan of a copy between buffers: a few lines are read and written by the
 * CPU before an engine has begun.
 */
static bool plan_cpu(const struct transfer *transfer)
{
	return transfer->size < transfer->src->road.from_min && transfer->src->mapping.base &&
	       transfer->dst->mapping.base;
}

static int copy_inside(struct gdri_context *context, const struct transfer *transfer,
		       bool may_use_engine)
{
	const struct gdri_config *config = &context->config;
	const bool across = transfer->src->buffer.device != transfer->dst->buffer.device;
	const bool strict = across && (config->strict_p2p || config->route == GDRI_ROUTE_PEER);
	int rc = 1;

	if (may_use_engine && (strict || !plan_cpu(transfer)))
		rc = gdri_core_dma_between(&transfer->dst->road,
					   transfer->dst->buffer.skew + transfer->dst_offset,
					   &transfer->src->road,
					   transfer->src->buffer.skew + transfer->src_offset,
					   transfer->size,
					   strict ? GDRI_ROUTE_PEER : config->route);
	if (strict && (rc == 1 || rc == -EOPNOTSUPP))
		return refuse_staging(context, transfer);
	if (rc != 1 && rc != -EOPNOTSUPP)
		return rc;
	if (!transfer->src->mapping.base || !transfer->dst->mapping.base)
		return refuse_road(context, "copy_to_device");
	copy_by_cpu(transfer);
	return 0;
}

int gdri_core_buffer_copy(uint64_t session, uint64_t src, uint64_t dst, uint64_t src_offset,
			  uint64_t dst_offset, size_t size)
{
	struct gdri_context *context;
	struct visit from, to;
	struct transfer transfer;
	int rc = enter(session, src, "copy_to_device", &from);

	if (rc)
		return rc;
	context = from.region->context;
	rc = enter(session, dst, "copy_to_device", &to);
	if (rc) {
		leave(&from);
		return rc;
	}
	transfer = (struct transfer){ from.region, to.region, src_offset, dst_offset, size };
	rc = check_transfer(context, &transfer);
	if (rc == 0 && size != 0)
		rc = copy_inside(context, &transfer, from.slot != NULL);
	leave(&to);
	leave(&from);
	return rc;
}

/*
 * A load brings home what was stored to its device before.  Device numbers
 * beyond the mask are loaded from each time, which is only slower.
 */
int gdri_core_buffer_flush(struct gdri_context *context)
{
	uint64_t done = 0;

	/* Out of the CPU's own buffers first. */
	gdri_fence_stores_posted();
	pthread_mutex_lock(&context->lock);
	for (struct gdri_region *region = context->regions; region; region = region->next) {
		const uint64_t bit = region->buffer.device < 64 ?
				     UINT64_C(1) << region->buffer.device : 0;
		uint32_t word;

		if (done & bit || !gdri_gate_enter(&region->copies, region->generation))
			continue;
		if (region->mapping.base) {
			region->from_mapping(&word, region->mapping.base, sizeof(word));
			done |= bit;
		}
		gdri_gate_leave(&region->copies);
	}
	pthread_mutex_unlock(&context->lock);
	return 0;
}
