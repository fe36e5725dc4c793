/* SPDX-License-Identifier: MIT */
/* The life of a pinned range: pin, map, unmap, unpin. */
#include "core/region.h"

#include <errno.h>
#include <stdint.h>

#include "os/sys.h"

#define NOT_A_HANDLE "%s: the handle is not a live pin of this session (unpinned already, or invented)"

/* Rounding out to GPU pages must not wrap either. */
static bool range_is_sane(uint64_t addr, size_t size)
{
	return addr != 0 && size != 0 &&
	       addr <= UINT64_MAX - GDRI_GPU_PAGE_SIZE &&
	       size <= UINT64_MAX - GDRI_GPU_PAGE_SIZE - addr;
}

static void link_region(struct gdri_context *context, struct gdri_region *region)
{
	pthread_mutex_lock(&context->lock);
	region->previous = NULL;
	region->next = context->regions;
	if (region->next)
		region->next->previous = region;
	context->regions = region;
	pthread_mutex_unlock(&context->lock);
}

static void unlink_region(struct gdri_context *context, struct gdri_region *region)
{
	pthread_mutex_lock(&context->lock);
	if (region->previous)
		region->previous->next = region->next;
	else
		context->regions = region->next;
	if (region->next)
		region->next->previous = region->previous;
	pthread_mutex_unlock(&context->lock);
}

static struct gdri_region *alloc_region(void)
{
	struct gdri_region *region;

	gdri_core_table_lock();
	region = gdri_core_region_alloc(sizeof(*region));
	if (region) {
		region->record = gdri_core_record_alloc();
		if (!region->record) {
			gdri_core_region_free(region);
			region = NULL;
		}
	}
	gdri_core_table_unlock();
	/* A zeroed mutex is an initialised one; it is never destroyed, since late callers try it. */
	return region;
}

static void free_region(struct gdri_region *region)
{
	gdri_core_table_lock();
	gdri_core_record_free(region->record);
	gdri_core_region_free(region);
	gdri_core_table_unlock();
}

/* Its pin is filled; from here on its handle is good. */
static void publish_region(struct gdri_context *context, struct gdri_region *region,
			   uint64_t *handle)
{
	pthread_mutex_lock(&region->lock);
	region->generation++;
	region->pinned = true;
	region->mapped = false;
	region->context = context;
	region->record->region.driver_handle = region->pin.driver_handle;
	link_region(context, region);
	gdri_core_record_publish(region->record, context->region_kind, region,
				 region->generation);
	*handle = (uint64_t)(uintptr_t)region->record;
	pthread_mutex_unlock(&region->lock);
}

int gdri_core_region_pin(struct gdri_context *context, uint64_t addr, size_t size, uint32_t flags,
			 uint64_t p2p_token, uint32_t va_space, uint64_t *handle)
{
	const struct gdri_log *log = &context->config.log;
	struct gdri_region *region;
	int rc;

	if (!range_is_sane(addr, size)) {
		gdri_error(log, "pin: address %#llx with size %zu is not a range; "
			   "give a GPU address and its size in bytes",
			   (unsigned long long)addr, size);
		return -EINVAL;
	}
	region = alloc_region();
	if (!region) {
		gdri_error(log, "pin: no memory for one more handle");
		return -ENOMEM;
	}
	rc = context->backend->ops->pin(context->backend, addr, size, flags, p2p_token, va_space,
					&region->pin);
	if (rc) {
		free_region(region);
		return rc;
	}
	publish_region(context, region, handle);
	return 0;
}

int gdri_core_region_import(struct gdri_context *context, const struct gdri_backend_share *share,
			    int fd, uint64_t *handle)
{
	struct gdri_region *region = alloc_region();
	int rc;

	if (!region) {
		gdri_error(&context->config.log, "import: no memory for one more handle");
		return -ENOMEM;
	}
	rc = context->backend->ops->import_memory(context->backend, share, fd, &region->pin);
	if (rc) {
		free_region(region);
		return rc;
	}
	publish_region(context, region, handle);
	return 0;
}

int gdri_core_region_lock(struct gdri_context *context, uint64_t handle, const char *call,
			  struct gdri_region **locked)
{
	struct gdri_region *region;
	struct gdri_record *record;
	void *object;
	int rc;

	rc = gdri_core_handle_lookup(handle, context->region_kind, &record, &object);
	if (rc == 0) {
		region = object;
		pthread_mutex_lock(&region->lock);
		if (region->pinned && region->generation == record->generation &&
		    region->record == record && region->context == context) {
			*locked = region;
			return 0;
		}
		pthread_mutex_unlock(&region->lock);
		rc = -EINVAL;
	}
	gdri_error(&context->config.log, NOT_A_HANDLE, call);
	return rc;
}

/* So that a copy can tell whether its host side is device memory of any session. */
static int note_mapping(const struct gdri_region *region, bool present)
{
	struct gdri_intervals *mapped = gdri_core_table_mapped();
	int rc = 0;

	gdri_core_table_lock();
	if (present)
		rc = gdri_core_intervals_add(mapped, region->mapping.base, region->mapping.length);
	else
		gdri_core_intervals_remove(mapped, region->mapping.base);
	gdri_core_table_unlock();
	return rc;
}

static int unmap_locked(struct gdri_context *context, struct gdri_region *region)
{
	gdri_gate_close(&region->copies, region->generation);
	gdri_core_gate_drain(&region->copies, gdri_core_table_slots());
	region->mapped = false;
	region->record->region.mapping_type = GDR_MAPPING_TYPE_NONE;
	gdri_core_dma_detach(region);
	/* A buffer of version 3 may have no window. */
	if (!region->mapping.base)
		return 0;
	note_mapping(region, false);
	return context->backend->ops->unmap(context->backend, &region->pin, &region->mapping);
}

/* Ends with the lock released and the region free, whatever the back end answers. */
static int unpin_locked(struct gdri_context *context, struct gdri_region *region)
{
	int unmap_rc = region->mapped ? unmap_locked(context, region) : 0;
	int rc = context->backend->ops->unpin(context->backend, &region->pin);

	region->pinned = false;
	unlink_region(context, region);
	pthread_mutex_unlock(&region->lock);
	free_region(region);
	return unmap_rc ? unmap_rc : rc;
}

int gdri_core_region_unpin(struct gdri_context *context, uint64_t handle)
{
	struct gdri_region *region;
	int rc;

	rc = gdri_core_region_lock(context, handle, "unpin", &region);
	return rc ? rc : unpin_locked(context, region);
}

int gdri_core_region_release_all(struct gdri_context *context)
{
	int first_rc = 0;

	while (context->regions) {
		struct gdri_region *region = context->regions;
		int rc;

		pthread_mutex_lock(&region->lock);
		gdri_info(&context->config.log, "close: unpins what is left at %#llx",
			  (unsigned long long)region->pin.va);
		rc = unpin_locked(context, region);
		if (first_rc == 0)
			first_rc = rc;
	}
	return first_rc;
}

/* The size of a mapping in whole host pages, or a negative errno. */
static int check_map(const struct gdri_log *log, const struct gdri_region *region, int flags,
		     size_t *size)
{
	const size_t page = gdri_os_page_size();
	const uint64_t pinned = region->pin.size;

	if (flags < GDR_MAP_FLAG_DEFAULT || flags > GDR_MAP_FLAG_REQ_DEVICE_MAPPING) {
		gdri_error(log, "map: flags %d; give one of GDR_MAP_FLAG_*", flags);
		return -EINVAL;
	}
	if (region->mapped) {
		gdri_error(log, "map: mapped already; a pin has one mapping, unmap it first");
		return -EAGAIN;
	}
	if (region->pin.addr % GDRI_GPU_PAGE_SIZE != 0) {
		gdri_error(log, "map: the pinned address %#llx is not a multiple of 64 KiB; "
			   "pin from %#llx on",
			   (unsigned long long)region->pin.addr,
			   (unsigned long long)region->pin.va);
		return -EINVAL;
	}
	if (*size == 0 || *size > pinned || ((*size + page - 1) & ~(page - 1)) > pinned) {
		gdri_error(log, "map: size %zu; give 1 to %llu bytes, the pinned size", *size,
			   (unsigned long long)pinned);
		return -EINVAL;
	}
	*size = (*size + page - 1) & ~(page - 1);
	return 0;
}

/* An explicit request is met or fails (interface facts 4.1). */
static int map_as_asked(struct gdri_context *context, struct gdri_region *region, size_t size,
			int flags)
{
	int rc;

	rc = context->backend->ops->map(context->backend, &region->pin, size, flags,
					&region->mapping);
	if (rc)
		return rc;
	if (flags != GDR_MAP_FLAG_DEFAULT && (int)region->mapping.type != flags) {
		gdri_error(&context->config.log,
			   "map: asked for mapping type %d, the platform gives %d", flags,
			   (int)region->mapping.type);
		rc = -EINVAL;
	} else {
		rc = note_mapping(region, true);
		if (rc)
			gdri_error(&context->config.log, "map: no memory for one more mapping");
	}
	if (rc)
		context->backend->ops->unmap(context->backend, &region->pin, &region->mapping);
	return rc;
}

static void open_to_copies(struct gdri_context *context, struct gdri_region *region)
{
	const struct gdri_mapping *mapping = &region->mapping;

	__atomic_store_n(&region->base, mapping->base, __ATOMIC_RELAXED);
	region->length = mapping->length;
	region->to_mapping = context->engine.to_mapping[mapping->type];
	region->from_mapping = context->engine.from_mapping[mapping->type];
	__atomic_store_n(&region->word_length,
			 mapping->type == GDR_MAPPING_TYPE_WC && mapping->is_populated ?
			 mapping->length : 0,
			 __ATOMIC_RELAXED);
	gdri_core_dma_attach(context, region);
	region->mapped = true;
	region->record->region.mapping_type = mapping->type;
	gdri_gate_open(&region->copies, region->generation);
}

int gdri_core_region_open(struct gdri_context *context, struct gdri_region *region)
{
	int rc = map_as_asked(context, region, region->pin.size, GDR_MAP_FLAG_DEFAULT);

	if (rc)
		region->mapping = (struct gdri_mapping){ .type = GDR_MAPPING_TYPE_NONE };
	open_to_copies(context, region);
	return rc;
}

int gdri_core_region_map(struct gdri_context *context, uint64_t handle, size_t size, int flags,
			 void **va)
{
	struct gdri_region *region;
	int rc;

	rc = gdri_core_region_lock(context, handle, "map", &region);
	if (rc)
		return rc;
	rc = check_map(&context->config.log, region, flags, &size);
	if (rc == 0)
		rc = map_as_asked(context, region, size, flags);
	if (rc == 0) {
		open_to_copies(context, region);
		*va = region->base;
	}
	pthread_mutex_unlock(&region->lock);
	return rc;
}

int gdri_core_region_unmap(struct gdri_context *context, uint64_t handle, const void *va,
			   size_t size)
{
	const struct gdri_log *log = &context->config.log;
	struct gdri_region *region;
	int rc;

	rc = gdri_core_region_lock(context, handle, "unmap", &region);
	if (rc)
		return rc;
	if (!region->mapped || va != region->mapping.base) {
		gdri_error(log, "unmap: %p is not the mapping of this handle (%s)", va,
			   region->mapped ? "give the pointer that gdr_map gave" : "not mapped");
		rc = -EINVAL;
	} else {
		if (size > region->mapping.length)
			gdri_warn(log, "unmap: size %zu is more than was mapped (%zu)", size,
				  region->mapping.length);
		rc = unmap_locked(context, region);
	}
	pthread_mutex_unlock(&region->lock);
	return rc;
}

int gdri_core_region_get_info(struct gdri_context *context, uint64_t handle,
			      struct gdri_region_info *info)
{
	struct gdri_region *region;
	int rc;

	rc = gdri_core_region_lock(context, handle, "get_info", &region);
	if (rc)
		return rc;
	rc = context->backend->ops->refresh(context->backend, &region->pin);
	if (rc == 0)
		*info = (struct gdri_region_info){
			.va = region->pin.va,
			.size = region->pin.size,
			.page_size = region->pin.page_size,
			.tm_cycles = region->pin.tm_cycles,
			.tsc_khz = region->pin.tsc_khz,
			.mapping_type = region->mapped ? region->mapping.type :
							 GDR_MAPPING_TYPE_NONE,
		};
	pthread_mutex_unlock(&region->lock);
	return rc;
}

int gdri_core_region_get_callback_flag(struct gdri_context *context, uint64_t handle, int *flag)
{
	struct gdri_region *region;
	int rc;

	rc = gdri_core_region_lock(context, handle, "get_callback_flag", &region);
	if (rc)
		return rc;
	rc = context->backend->ops->get_callback_flag(context->backend, &region->pin, flag);
	pthread_mutex_unlock(&region->lock);
	return rc;
}
