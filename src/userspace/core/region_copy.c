/* SPDX-License-Identifier: MIT */
/* The hot path: finds the mapping of a handle, checks the range, calls the routine. */
#include "core/region.h"

#include <errno.h>

#include "copy/cpu/fence.h"
#include "copy/cpu/words.h"

static __attribute__((cold, noinline)) int refuse_handle(const char *call, int rc)
{
	struct gdri_log log = gdri_core_config_log();

	gdri_error(&log, "%s: %s", call,
		   rc == -EACCES ? "the handle belongs to the parent of this process; pin again here" :
				   "the handle is not mapped (never, not any more, or unpinned)");
	return rc;
}

/* Still inside the gate, so the region may be read. */
static __attribute__((cold, noinline)) int refuse_range(const struct gdri_region *region,
							struct gdri_gate_slot *slot,
							const char *call, const void *host,
							const void *device, size_t size)
{
	const struct gdri_log *log = &region->context->config.log;
	struct gdri_region *entered = (struct gdri_region *)region;

	if (host)
		gdri_error(log, "%s: %zu bytes at %p leave the mapping of %zu bytes at %p "
			   "(host and device pointer swapped?)",
			   call, size, device, region->length, (void *)region->base);
	else
		gdri_error(log, "%s: the host pointer is NULL; give host memory of %zu bytes",
			   call, size);
	gdri_gate_leave_quickly(&entered->copies, slot);
	return -EINVAL;
}

static inline bool range_is_inside(const struct gdri_region *region, const void *device,
				   size_t size)
{
	const uintptr_t offset = (uintptr_t)device - (uintptr_t)region->base;

	return offset <= region->length && size <= region->length - offset;
}

/* 0 with the region's gate passed, or an error that has been logged. */
static inline int enter(uint64_t handle, const char *call, const void *device, const void *host,
			size_t size, struct gdri_region **region, struct gdri_gate_slot **slot)
{
	struct gdri_record *record;
	void *object;
	int rc;

	rc = gdri_core_handle_lookup(handle, GDRI_RECORD_REGION, &record, &object);
	if (__builtin_expect(rc != 0, 0))
		return refuse_handle(call, rc);
	*region = object;
	if (__builtin_expect(!gdri_gate_enter_quickly(gdri_core_table_slots(), &(*region)->copies,
						      record->generation, slot), 0))
		return refuse_handle(call, -EINVAL);
	if (__builtin_expect(size != 0 && (!host || !range_is_inside(*region, device, size)), 0))
		return refuse_range(*region, *slot, call, host, device, size);
	return 0;
}

static inline uint64_t offset_of(const struct gdri_region *region, const void *device)
{
	return (uint64_t)((const unsigned char *)device - region->base);
}

/*
 * A thread that has no slot may be a signal handler that interrupted a copy, and
 * with it a submission: it would wait for a lock that its own thread holds.
 */
static bool may_use_dma(const struct gdri_gate_slot *slot)
{
	return slot != NULL;
}

/* 1: by the CPU; otherwise the result.  Out of line, so that small copies stay small. */
static __attribute__((noinline)) int write_by_dma(const struct gdri_region *region,
						  const void *device, const void *host,
						  size_t size)
{
	const struct gdri_dma_road *road = &region->road;
	const uint64_t offset = offset_of(region, device);

	return gdri_core_dma_takes(road, offset, host, size) ?
	       gdri_core_dma_write(road, offset, host, size) : 1;
}

static __attribute__((noinline)) int read_by_dma(const struct gdri_region *region, void *host,
						 const void *device, size_t size)
{
	const struct gdri_dma_road *road = &region->road;
	const uint64_t offset = offset_of(region, device);

	return gdri_core_dma_takes(road, offset, host, size) ?
	       gdri_core_dma_read(road, offset, host, size) : 1;
}

/*
 * The opening of a write-combined mapping that device lies in, with the word
 * that begins there; false: none, or the general way will tell.  Not inside the
 * gate: another thread may be replacing what is read here, and only as long as
 * the gate keeps its key is it true.
 */
static inline bool glance_at_word(const struct gdri_table_view *view, uint64_t handle,
				  const void *device, const void *host, size_t size,
				  const struct gdri_region **found, uint64_t *key)
{
	const struct gdri_record *record;
	const struct gdri_region *region;

	if (__builtin_expect(!view || !host || ((uintptr_t)device & (size - 1)) != 0, 0))
		return false;
	record = gdri_core_handle_glance(view, handle, GDRI_RECORD_REGION);
	if (__builtin_expect(!record, 0))
		return false;
	region = atomic_load_explicit(&record->object, memory_order_acquire);
	if (__builtin_expect(!region || !gdri_gate_peek(&region->copies, record->generation, key),
			     0))
		return false;
	*found = region;
	/* Mappings begin and end at pages, so an aligned word lies in one as a whole. */
	return __builtin_expect((uintptr_t)device -
				(uintptr_t)__atomic_load_n(&region->base, __ATOMIC_RELAXED) <
				__atomic_load_n(&region->word_length, __ATOMIC_RELAXED), 1);
}

/*
 * The same word by way of the thread's slot.  The fence makes every later store
 * wait until the device has acknowledged, so each push and each spilled register
 * of this way shows in a row of writes: 174 ns a write with the calls of the
 * general way, 135 for store and fence alone (H200).  So there is no call in
 * here, and nothing is stored but the word and the slot.
 */
static inline bool write_word(uint64_t handle, void *device, const void *host, size_t size)
{
	const struct gdri_table_view *view = atomic_load_explicit(&gdri_core_view,
								  memory_order_acquire);
	const struct gdri_region *region;
	struct gdri_gate_slot *slot;
	uint64_t key;

	if (!glance_at_word(view, handle, device, host, size, &region, &key))
		return false;
	slot = gdri_gate_enter_own_slot(view->slots, (struct gdri_gate *)&region->copies, key);
	if (__builtin_expect(!slot, 0))
		return false;
	switch (size) {
	case 1:
		gdri_copy_store8(device, host);
		break;
	case 2:
		gdri_copy_store16(device, host);
		break;
	case 4:
		gdri_copy_store32(device, host);
		break;
	default:
		gdri_copy_store64(device, host);
	}
	gdri_fence_stores_posted();
	gdri_gate_leave_own_slot(slot);
	return true;
}

static inline bool is_word(size_t size)
{
	return size == 4 || size == 8 || size == 1 || size == 2;
}

static __attribute__((noinline)) int copy_to(uint64_t handle, void *device, const void *host,
					     size_t size)
{
	struct gdri_region *region = NULL;
	struct gdri_gate_slot *slot = NULL;
	int rc;

	rc = enter(handle, "copy_to_mapping", device, host, size, &region, &slot);
	if (__builtin_expect(rc != 0, 0))
		return -rc;
	rc = 1;
	if (__builtin_expect(size >= region->road.to_min, 0) && may_use_dma(slot))
		rc = write_by_dma(region, device, host, size);
	if (rc > 0) {
		if (size != 0)
			region->to_mapping(device, host, size);
		rc = 0;
	}
	gdri_gate_leave_quickly(&region->copies, slot);
	return -rc;
}

/* Assembly jumps here, which link-time optimisation does not see. */
__attribute__((used)) int gdri_core_region_copy_announced(uint64_t handle, void *device,
							  const void *host, size_t size)
{
	if (is_word(size) && write_word(handle, device, host, size))
		return 0;
	return copy_to(handle, device, host, size);
}

#if GDRI_CORE_RSEQ
/*
 * Words go through a restartable sequence where there is one.  Each way out of
 * here is a jump: even a return address that is pushed waits in the queue
 * behind the last word's fence.
 */
int gdri_core_region_copy_to(uint64_t handle, void *device, const void *host, size_t size)
{
	const struct gdri_table_view *view = atomic_load_explicit(&gdri_core_view,
								  memory_order_acquire);
	const struct gdri_region *region;
	uint64_t key;

	if (!is_word(size))
		return copy_to(handle, device, host, size);
	if (!glance_at_word(view, handle, device, host, size, &region, &key))
		return gdri_core_region_copy_announced(handle, device, host, size);
	switch (size) {
	case 1:
		return gdri_core_rseq_store8(handle, device, host, 1, &region->copies.key, key);
	case 2:
		return gdri_core_rseq_store16(handle, device, host, 2, &region->copies.key, key);
	case 4:
		return gdri_core_rseq_store32(handle, device, host, 4, &region->copies.key, key);
	default:
		return gdri_core_rseq_store64(handle, device, host, 8, &region->copies.key, key);
	}
}
#else
int gdri_core_region_copy_to(uint64_t handle, void *device, const void *host, size_t size)
{
	return gdri_core_region_copy_announced(handle, device, host, size);
}
#endif

int gdri_core_region_copy_from(uint64_t handle, void *host, const void *device, size_t size)
{
	struct gdri_region *region = NULL;
	struct gdri_gate_slot *slot = NULL;
	int rc;

	rc = enter(handle, "copy_from_mapping", device, host, size, &region, &slot);
	if (__builtin_expect(rc != 0, 0))
		return -rc;
	rc = 1;
	if (__builtin_expect(size >= region->road.from_min, 0) && may_use_dma(slot))
		rc = read_by_dma(region, host, device, size);
	if (rc > 0) {
		if (size != 0)
			region->from_mapping(host, device, size);
		rc = 0;
	}
	gdri_gate_leave_quickly(&region->copies, slot);
	return -rc;
}
