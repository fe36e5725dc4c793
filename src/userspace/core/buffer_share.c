/* SPDX-License-Identifier: MIT */
/* Buffers of version 3 that one process exports and another imports. */
#include <errno.h>
#include <string.h>

#include "core/buffer_parts.h"
#include "rm/range.h"

#include "../../emu/gdrcopy_emu.h"

static const struct gdri_log *log_of(const struct gdri_context *context)
{
	return &context->config.log;
}

static int refuse_backend(const struct gdri_context *context, const char *call)
{
	gdri_error(log_of(context), "%s: back end %s cannot pass memory between processes; "
		   "GDRCOPY_BACKEND=nvrm can", call, context->backend->ops->name);
	return -EOPNOTSUPP;
}

static int find_uuid(const struct gdri_context *context, const char *call, int device,
		     unsigned char uuid[16])
{
	const struct gdri_cuda *cuda = &context->buffers->cuda;
	struct gdri_cu_uuid found;
	int handle = 0;

	if (!cuda->device_get_uuid || cuda->device_get(&handle, device) != GDRI_CU_SUCCESS ||
	    cuda->device_get_uuid(&found, handle) != GDRI_CU_SUCCESS) {
		gdri_error(log_of(context), "%s: CUDA tells no UUID of device %d", call, device);
		return -EOPNOTSUPP;
	}
	memcpy(uuid, found.bytes, sizeof(found.bytes));
	return 0;
}

/* Where the buffer lies in its memory object. */
static void find_place(const struct gdri_context *context, const struct gdri_region *region,
		       struct gdri_buffer_share *share)
{
	struct gdri_backend_memory memory = { .range = NULL };

	context->backend->ops->get_memory(context->backend, &region->pin, &memory);
	if (memory.emulated) {
		share->object_size = memory.emulated->object_size;
		share->offset = region->buffer.addr - memory.emulated->object_va;
	} else {
		share->object_size = memory.range->object_size;
		share->offset = memory.range->offset;
	}
	share->length = region->buffer.length;
	share->flags = region->buffer.flags & GDRI_BUFFER_UNALIGNED;
}

static int check_neighbours(const struct gdri_context *context, uint32_t flags,
			    const struct gdri_buffer_share *share)
{
	if (flags & GDRI_EXPORT_WHOLE_OBJECT ||
	    (share->offset == 0 && share->length == share->object_size))
		return 0;
	gdri_error(log_of(context), "export: the memory object has %llu bytes, the pin covers %llu at "
		   "offset %llu, and an importer reaches all; pin the whole, or give "
		   "GDR_EXPORT_WHOLE_OBJECT", (unsigned long long)share->object_size,
		   (unsigned long long)share->length, (unsigned long long)share->offset);
	return -EPERM;
}

static int export_locked(struct gdri_context *context, const struct gdri_region *region,
			 uint32_t flags, struct gdri_buffer_share *share, int *fd)
{
	int rc = find_uuid(context, "export", region->buffer.device, share->uuid);

	if (rc)
		return rc;
	find_place(context, region, share);
	rc = check_neighbours(context, flags, share);
	return rc ? rc : context->backend->ops->export_memory(context->backend, &region->pin, fd);
}

int gdri_core_buffer_export(struct gdri_context *context, uint64_t handle, uint32_t flags,
			    struct gdri_buffer_share *share, int *fd)
{
	struct gdri_buffer_share found;
	struct gdri_region *region;
	int rc;

	if (flags & ~(uint32_t)GDRI_EXPORT_WHOLE_OBJECT) {
		gdri_error(log_of(context), "export: unknown flags %#x; give 0 or "
			   "GDR_EXPORT_WHOLE_OBJECT", flags);
		return -EINVAL;
	}
	rc = gdri_core_buffer_lock(context, handle, "export", &region);
	if (rc)
		return rc;
	rc = context->backend->ops->export_memory ?
	     export_locked(context, region, flags, &found, fd) : refuse_backend(context, "export");
	pthread_mutex_unlock(&region->lock);
	if (rc == 0)
		*share = found;
	return rc;
}

static int check_share(const struct gdri_context *context, const struct gdri_buffer_share *share)
{
	if (share->flags & ~(uint32_t)GDRI_BUFFER_UNALIGNED || share->length == 0 ||
	    share->length > share->object_size ||
	    share->offset > share->object_size - share->length ||
	    share->object_size > GDRI_BACKEND_IMPORT_BASE ||
	    (!(share->flags & GDRI_BUFFER_UNALIGNED) &&
	     share->length % GDRI_BUFFER_GRANULE != 0)) {
		gdri_error(log_of(context), "import: %llu bytes at offset %llu of %llu with flags %#x are "
			   "nothing that gdr_export describes; pass its struct on unchanged",
			   (unsigned long long)share->length, (unsigned long long)share->offset,
			   (unsigned long long)share->object_size, share->flags);
		return -EINVAL;
	}
	return 0;
}

static int check_uuid(const struct gdri_context *context, const struct gdri_buffer_share *share,
		      int device)
{
	unsigned char uuid[16];
	int rc = find_uuid(context, "import", device, uuid);

	if (rc)
		return rc;
	if (memcmp(uuid, share->uuid, sizeof(uuid)) == 0)
		return 0;
	gdri_error(log_of(context), "import: the memory is of another GPU than device %d of this "
		   "process (compare cudaDeviceProp.uuid)", device);
	return -EINVAL;
}

int gdri_core_buffer_import(struct gdri_context *context, const struct gdri_buffer_share *share,
			    int fd, int device, uint64_t *handle)
{
	const struct gdri_backend_share wanted = {
		.device = device,
		.object_size = share->object_size,
		.offset = share->offset,
		.length = share->length,
	};
	const struct gdri_buffer buffer = {
		.addr = GDRI_BACKEND_IMPORT_BASE + share->offset,
		.length = share->length,
		.flags = share->flags,
		.device = device,
		.imported = true,
	};
	uint64_t made;
	int rc;

	if (!gdri_core_buffer_session(context))
		return -ENOMEM;
	if (!context->backend->ops->import_memory)
		return refuse_backend(context, "import");
	rc = check_share(context, share);
	if (rc == 0)
		rc = gdri_core_buffer_check_device(context, "import", device);
	if (rc == 0)
		rc = check_uuid(context, share, device);
	if (rc == 0)
		rc = gdri_core_region_import(context, &wanted, fd, &made);
	if (rc == 0)
		rc = gdri_core_buffer_open(context, made, "import", &buffer);
	if (rc == 0)
		*handle = made;
	return rc;
}
