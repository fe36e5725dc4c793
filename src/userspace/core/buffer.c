/* SPDX-License-Identifier: MIT */
/* Version 3's buffers: their life. */
#include "core/buffer.h"

#include <errno.h>
#include <stdlib.h>

#include "core/buffer_parts.h"

struct gdri_buffer_session *gdri_core_buffer_session(struct gdri_context *context)
{
	pthread_mutex_lock(&context->lock);
	if (!context->buffers)
		context->buffers = calloc(1, sizeof(*context->buffers));
	if (context->buffers && !context->buffers->has_cuda)
		context->buffers->has_cuda = gdri_os_cuda_load(&context->buffers->cuda) == 0;
	pthread_mutex_unlock(&context->lock);
	return context->buffers;
}

static const struct gdri_log *log_of(const struct gdri_context *context)
{
	return &context->config.log;
}

static int check_shape(const struct gdri_context *context, uint64_t addr, size_t size,
		       uint32_t flags)
{
	if (flags & ~(uint32_t)(GDRI_BUFFER_SYNC | GDRI_BUFFER_UNALIGNED)) {
		gdri_error(log_of(context), "pin: unknown flags %#x; give GDR_PIN_BUFFER_*", flags);
		return -EINVAL;
	}
	if (addr == 0 || size == 0 || size > UINT64_MAX - addr) {
		gdri_error(log_of(context), "pin: address %#llx with size %zu is not a range; give "
			   "a GPU address and its size in bytes", (unsigned long long)addr, size);
		return -EINVAL;
	}
	if (!(flags & GDRI_BUFFER_UNALIGNED) && size % GDRI_BUFFER_GRANULE != 0) {
		gdri_error(log_of(context), "pin: size %zu is not a multiple of %u; round it up, or "
			   "give GDR_PIN_BUFFER_UNALIGNED", size, GDRI_BUFFER_GRANULE);
		return -EINVAL;
	}
	return 0;
}

int gdri_core_buffer_check_device(const struct gdri_context *context, const char *call, int device)
{
	const struct gdri_buffer_session *session = context->buffers;
	int count = 0;

	if (!session->has_cuda) {
		gdri_error(log_of(context), "%s: no libcuda.so.1; install the CUDA driver library", call);
		return -EINVAL;
	}
	if (session->cuda.device_get_count(&count) != GDRI_CU_SUCCESS) {
		gdri_error(log_of(context), "%s: CUDA is not initialised in this process; call cuInit or "
			   "allocate GPU memory first", call);
		return -EINVAL;
	}
	if (device < 0 || device >= count) {
		gdri_error(log_of(context), "%s: device %d does not exist; this process sees %d "
			   "(CUDA_VISIBLE_DEVICES)", call, device, count);
		return -EINVAL;
	}
	return 0;
}

/* An attribute that the driver may not know counts as 0. */
static uint64_t ask(const struct gdri_cuda *cuda, int attribute, uint64_t addr)
{
	uint64_t value = 0;

	return cuda->pointer_get_attribute(&value, attribute, addr) == GDRI_CU_SUCCESS ? value : 0;
}

/*
 * Kinds of device memory that no back end pins.  Asked first, since managed
 * memory may be in the host's at this moment.
 */
static int check_kind(const struct gdri_context *context, const struct gdri_cuda *cuda,
		      uint64_t addr)
{
	const char *kind = (uint8_t)ask(cuda, GDRI_CU_POINTER_IS_MANAGED, addr) ? "managed memory" :
			   ask(cuda, GDRI_CU_POINTER_MEMPOOL_HANDLE, addr) ?
			   "memory of a stream-ordered pool" : NULL;

	if (!kind)
		return 0;
	gdri_error(log_of(context), "pin: %#llx is %s, which cannot be pinned; use cudaMalloc",
		   (unsigned long long)addr, kind);
	return -EOPNOTSUPP;
}

static int check_memory(const struct gdri_context *context, const struct gdri_cuda *cuda,
			uint64_t addr, size_t size, int device)
{
	const struct gdri_log *log = log_of(context);
	uint64_t start, length;
	int ordinal = -1;
	uint32_t type = 0;
	int rc;

	rc = check_kind(context, cuda, addr);
	if (rc)
		return rc;
	if (cuda->pointer_get_attribute(&ordinal, GDRI_CU_POINTER_DEVICE_ORDINAL, addr) ||
	    cuda->pointer_get_attribute(&type, GDRI_CU_POINTER_MEMORY_TYPE, addr) ||
	    type != GDRI_CU_MEMORY_TYPE_DEVICE) {
		gdri_error(log, "pin: %#llx is not GPU memory of this process (host memory, or freed?); "
			   "give a pointer of cudaMalloc", (unsigned long long)addr);
		return -EINVAL;
	}
	if (ordinal != device) {
		gdri_error(log, "pin: %#llx is memory of device %d, not of device %d",
			   (unsigned long long)addr, ordinal, device);
		return -EINVAL;
	}
	start = ask(cuda, GDRI_CU_POINTER_RANGE_START_ADDR, addr);
	length = ask(cuda, GDRI_CU_POINTER_RANGE_SIZE, addr);
	if (length != 0 && (addr < start || addr - start > length ||
			    size > length - (addr - start))) {
		gdri_error(log, "pin: %zu bytes at %#llx leave their allocation of %llu bytes at "
			   "%#llx", size, (unsigned long long)addr, (unsigned long long)length,
			   (unsigned long long)start);
		return -EINVAL;
	}
	return 0;
}

static int set_sync(const struct gdri_context *context, const struct gdri_cuda *cuda,
		    uint64_t addr)
{
	const unsigned on = 1;
	int result = cuda->pointer_set_attribute ?
		     cuda->pointer_set_attribute(&on, GDRI_CU_POINTER_SYNC_MEMOPS, addr) : -1;

	if (result == GDRI_CU_SUCCESS)
		return 0;
	gdri_error(log_of(context), "pin: GDR_PIN_BUFFER_SYNC: CUDA error %d; memory of cuMemCreate "
		   "has no such attribute, pin it without the flag", result);
	return -EOPNOTSUPP;
}

/*
 * Everything about the range was checked, so what a back end still refuses is a
 * kind of memory that it cannot pin, such as another process's.
 */
static int pin_region(struct gdri_context *context, uint64_t addr, size_t size, uint64_t *handle)
{
	const uint64_t skew = context->backend->ops->id == GDRI_BACKEND_GDRDRV ?
			      addr % GDRI_GPU_PAGE_SIZE : 0;
	/* The module maps only what was pinned from the beginning of a page. */
	int rc = gdri_core_region_pin(context, addr - skew, size + skew, 0, 0, 0, handle);

	return rc == -EINVAL ? -EOPNOTSUPP : rc;
}

int gdri_core_buffer_lock(struct gdri_context *context, uint64_t handle, const char *call,
			  struct gdri_region **region)
{
	const int rc = gdri_core_region_lock(context, handle, call, region);

	return rc == -EINVAL ? -EBADF : rc;
}

int gdri_core_buffer_open(struct gdri_context *context, uint64_t handle, const char *call,
			  const struct gdri_buffer *buffer)
{
	struct gdri_region *region;
	int rc = gdri_core_buffer_lock(context, handle, call, &region);

	/* Nobody else knows the handle yet, but a program may invent it. */
	if (rc)
		return rc;
	region->buffer = *buffer;
	region->buffer.skew = buffer->addr - region->pin.va;
	if (gdri_core_region_open(context, region))
		gdri_info(log_of(context), "%s: no window for the CPU; copies go by the engines", call);
	pthread_mutex_unlock(&region->lock);
	return 0;
}

int gdri_core_buffer_pin(struct gdri_context *context, uint64_t addr, size_t size, uint32_t flags,
			 int device, uint64_t *handle)
{
	struct gdri_buffer_session *session = gdri_core_buffer_session(context);
	struct gdri_buffer buffer = {
		.addr = addr, .length = size, .flags = flags, .device = device
	};
	uint64_t made;
	int rc;

	if (!session)
		return -ENOMEM;
	rc = check_shape(context, addr, size, flags);
	if (rc == 0)
		rc = gdri_core_buffer_check_device(context, "pin", device);
	if (rc == 0)
		rc = check_memory(context, &session->cuda, addr, size, device);
	if (rc == 0 && (flags & GDRI_BUFFER_SYNC))
		rc = set_sync(context, &session->cuda, addr);
	if (rc == 0)
		rc = pin_region(context, addr, size, &made);
	if (rc)
		return rc;
	buffer.id = ask(&session->cuda, GDRI_CU_POINTER_BUFFER_ID, addr);
	rc = gdri_core_buffer_open(context, made, "pin", &buffer);
	if (rc == 0)
		*handle = made;
	return rc;
}

int gdri_core_buffer_unpin(struct gdri_context *context, uint64_t handle)
{
	struct gdri_region *region;
	int rc = gdri_core_buffer_lock(context, handle, "unpin", &region);

	if (rc)
		return rc;
	pthread_mutex_unlock(&region->lock);
	rc = gdri_core_region_unpin(context, handle);
	return rc == -EINVAL ? -EBADF : rc;
}

static int check_show(const struct gdri_context *context, const struct gdri_buffer *buffer,
		      size_t size)
{
	const bool any = buffer->flags & GDRI_BUFFER_UNALIGNED;

	if (size != 0 && size <= buffer->length && (any || size % GDRI_BUFFER_GRANULE == 0))
		return 0;
	gdri_error(log_of(context), "map: size %zu; give a multiple of %u from 1 to %llu, the pinned "
		   "size", size, any ? 1 : GDRI_BUFFER_GRANULE,
		   (unsigned long long)buffer->length);
	return -EINVAL;
}

static bool is_freed(const struct gdri_context *context, const struct gdri_buffer *buffer)
{
	uint64_t id = 0;

	if (buffer->imported)
		return false;
	return context->buffers->cuda.pointer_get_attribute(&id, GDRI_CU_POINTER_BUFFER_ID,
							    buffer->addr) != GDRI_CU_SUCCESS ||
	       id != buffer->id;
}

/* A program that loses its stores this way gets no error from any call. */
static bool warn_if_freed(const struct gdri_context *context, const char *call,
			  const struct gdri_buffer *buffer)
{
	if (!is_freed(context, buffer))
		return false;
	gdri_warn(log_of(context), "%s: the memory at %#llx was freed, or its address belongs to another "
		  "allocation by now; what is stored through this pin reaches nobody", call,
		  (unsigned long long)buffer->addr);
	return true;
}

int gdri_core_buffer_map(struct gdri_context *context, uint64_t handle, size_t size, void **va)
{
	struct gdri_region *region;
	int rc = gdri_core_buffer_lock(context, handle, "map", &region);

	if (rc)
		return rc;
	rc = check_show(context, &region->buffer, size);
	if (rc == 0 && region->buffer.shown) {
		gdri_error(log_of(context), "map: mapped already; a handle has one mapping");
		rc = -EBUSY;
	} else if (rc == 0 && !region->mapping.base) {
		gdri_error(log_of(context), "map: BAR1 had no room for a window when this was "
			   "pinned; unpin other buffers and pin again");
		rc = -ENOMEM;
	} else if (rc == 0) {
		warn_if_freed(context, "map", &region->buffer);
		region->buffer.shown = true;
		region->buffer.shown_size = size;
		*va = region->base + region->buffer.skew;
	}
	pthread_mutex_unlock(&region->lock);
	return rc;
}

int gdri_core_buffer_unmap(struct gdri_context *context, uint64_t handle, const void *va,
			   size_t size)
{
	struct gdri_region *region;
	int rc = gdri_core_buffer_lock(context, handle, "unmap", &region);

	if (rc)
		return rc;
	if (!region->buffer.shown || va != region->base + region->buffer.skew ||
	    size != region->buffer.shown_size) {
		gdri_error(log_of(context), "unmap: %zu bytes at %p are not the mapping of this "
			   "handle (%s)", size, va,
			   region->buffer.shown ? "give what gdr_map was given" : "not mapped");
		rc = -EINVAL;
	} else {
		region->buffer.shown = false;
	}
	pthread_mutex_unlock(&region->lock);
	return rc;
}

int gdri_core_buffer_get_info(struct gdri_context *context, uint64_t handle, bool ask_driver,
			      struct gdri_buffer_info *info)
{
	struct gdri_region *region;
	int revoked = 0;
	int rc = gdri_core_buffer_lock(context, handle, ask_driver ? "query" : "get_info", &region);

	if (rc)
		return rc;
	if (ask_driver)
		rc = context->backend->ops->get_callback_flag(context->backend, &region->pin,
							      &revoked);
	if (rc == 0)
		*info = (struct gdri_buffer_info){
			.buffer = region->buffer,
			.type = region->mapping.type,
			.has_engine = region->road.target != NULL,
			.read_min = region->road.from_min,
			.write_min = region->road.to_min,
			.freed = ask_driver && warn_if_freed(context, "query", &region->buffer),
			.revoked = revoked != 0,
		};
	pthread_mutex_unlock(&region->lock);
	return rc;
}
