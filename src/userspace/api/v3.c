/* SPDX-License-Identifier: MIT */
/* Version 3 of the interface: checks its pointers, calls core, answers with a gdr_result_t. */
#include "core/buffer.h"

#include <errno.h>
#include <string.h>

/*
 * Core includes the header of 2.6, whose names stand for other types there.  So
 * the types of version 3 are declared here under names of their own, and
 * api/v3_types.c compares them with the public header.
 */
#include "api/v3.h"
#include "os/cancel.h"
#include "os/sys.h"
#include "visibility.h"

gdri_v3_result gdri_api_v3_result(int rc)
{
	switch (-rc) {
	case 0:
		return GDRI_V3_SUCCESS;
	case EINVAL:
	case EEXIST:
	case ENOENT:
		return GDRI_V3_INVALID_ARG;
	case ENODEV:
		return GDRI_V3_NO_DEVICE;
	case EOPNOTSUPP:
	case ENOSYS:
	case GDRI_OS_ENOTSUPP:
		return GDRI_V3_OP_NOT_SUPPORTED;
	case EACCES:
	case EPERM:
		return GDRI_V3_PERMISSION;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return GDRI_V3_NO_MEMORY;
	case EBUSY:
	case EAGAIN:
		return GDRI_V3_BUSY;
	case ETIMEDOUT:
		return GDRI_V3_TIMEOUT;
	case EPROTO:
	case ENOEXEC:
		return GDRI_V3_DRIVER_MISMATCH;
	case EBADF:
		return GDRI_V3_STALE_HANDLE;
	default:
		return GDRI_V3_IO;
	}
}

/* Errors that no session can log: there is none. */
static __attribute__((cold)) gdri_v3_result refuse_session(const char *call, int rc)
{
	struct gdri_log log = gdri_core_config_log();

	gdri_error(&log, "%s: %s", call,
		   rc == -EACCES ? "the session belongs to the parent of this process; open one here" :
				   "not an open session (closed already, or never opened)");
	return rc == -EACCES ? GDRI_V3_PERMISSION : GDRI_V3_STALE_HANDLE;
}

static gdri_v3_result enter(gdri_v3 g, const char *call, struct gdri_context **context)
{
	int rc = gdri_core_context_enter(GDRI_RECORD_SESSION_V3, (uint64_t)(uintptr_t)g, context);

	return rc ? refuse_session(call, rc) : GDRI_V3_SUCCESS;
}

static gdri_v3_result leave(struct gdri_context *context, int rc)
{
	gdri_core_context_leave(context);
	return gdri_api_v3_result(rc);
}

static int refuse_null(const struct gdri_context *context, const char *call, const char *what)
{
	gdri_error(&context->config.log, "%s: %s is NULL; give a place for the answer", call, what);
	return -EINVAL;
}

GDRI_PUBLIC const char *gdr_strerror_v3(gdri_v3_result result)
{
	static const char *const texts[] = {
		[GDRI_V3_SUCCESS] = "success",
		[GDRI_V3_INVALID_ARG] = "invalid argument",
		[GDRI_V3_NO_DEVICE] = "no back end opens: no NVIDIA driver, no GPU, or no access to it",
		[GDRI_V3_OP_NOT_SUPPORTED] = "not supported for this memory, platform or pair of GPUs",
		[GDRI_V3_PERMISSION] = "not permitted, or a session of the parent process",
		[GDRI_V3_NO_MEMORY] = "out of memory (host memory, BAR1, or the module's pool)",
		[GDRI_V3_BUSY] = "busy: mapped already, or in use",
		[GDRI_V3_TIMEOUT] = "the device did not answer in time",
		[GDRI_V3_IO] = "the copy failed, and what its destination holds is unknown",
		[GDRI_V3_DRIVER_MISMATCH] = "the NVIDIA driver's interface is not a known one",
		[GDRI_V3_STALE_HANDLE] = "not a live session or handle",
	};

	if ((unsigned)result < sizeof(texts) / sizeof(texts[0]))
		return texts[result];
	return "unknown result";
}

GDRI_PUBLIC gdri_v3_result gdr_open_v3(gdri_v3 *g)
{
	GDRI_OS_NO_CANCEL;
	uint64_t handle;
	int rc;

	if (!g) {
		struct gdri_log log = gdri_core_config_log();

		gdri_error(&log, "gdr_open: g is NULL; give a place for the session");
		return GDRI_V3_INVALID_ARG;
	}
	*g = NULL;
	rc = gdri_core_context_open(GDRI_RECORD_SESSION_V3, &handle);
	if (rc == 0)
		*g = (gdri_v3)(uintptr_t)handle;
	return gdri_api_v3_result(rc);
}

GDRI_PUBLIC gdri_v3_result gdr_close_v3(gdri_v3 g)
{
	GDRI_OS_NO_CANCEL;
	int release_rc = 0;
	int rc = gdri_core_context_close(GDRI_RECORD_SESSION_V3, (uint64_t)(uintptr_t)g,
					 &release_rc);

	return rc ? refuse_session("gdr_close", rc) : gdri_api_v3_result(release_rc);
}

GDRI_PUBLIC gdri_v3_result gdr_pin_buffer_v3(gdri_v3 g, uint64_t addr, size_t size,
					     uint32_t flags, int device_id, uint64_t *handle)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result;

	if (handle)
		*handle = 0;
	result = enter(g, "gdr_pin_buffer", &context);
	if (result)
		return result;
	return leave(context, handle ? gdri_core_buffer_pin(context, addr, size, flags, device_id,
							    handle) :
				       refuse_null(context, "gdr_pin_buffer", "handle"));
}

GDRI_PUBLIC gdri_v3_result gdr_unpin_v3(gdri_v3 g, uint64_t handle)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_unpin", &context);

	return result ? result : leave(context, gdri_core_buffer_unpin(context, handle));
}

GDRI_PUBLIC gdri_v3_result gdr_map_v3(gdri_v3 g, uint64_t handle, void **va, size_t size)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result;

	if (va)
		*va = NULL;
	result = enter(g, "gdr_map", &context);
	if (result)
		return result;
	return leave(context, va ? gdri_core_buffer_map(context, handle, size, va) :
				   refuse_null(context, "gdr_map", "va"));
}

GDRI_PUBLIC gdri_v3_result gdr_unmap_v3(gdri_v3 g, uint64_t handle, void *va, size_t size)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_unmap", &context);

	return result ? result : leave(context, gdri_core_buffer_unmap(context, handle, va, size));
}

GDRI_PUBLIC gdri_v3_result gdr_copy_to_device_v3(gdri_v3 g, uint64_t src_handle,
						 uint64_t dst_handle, uint64_t src_offset,
						 uint64_t dst_offset, size_t length)
{
	return gdri_api_v3_result(gdri_core_buffer_copy((uint64_t)(uintptr_t)g, src_handle,
							 dst_handle, src_offset, dst_offset,
							 length));
}

GDRI_PUBLIC gdri_v3_result gdr_copy_from_host_v3(gdri_v3 g, uint64_t handle, uint64_t offset,
						 const void *host, size_t size)
{
	return gdri_api_v3_result(gdri_core_buffer_write((uint64_t)(uintptr_t)g, handle, offset,
						  host, size));
}

GDRI_PUBLIC gdri_v3_result gdr_copy_to_host_v3(gdri_v3 g, uint64_t handle, uint64_t offset,
					       void *host, size_t size)
{
	return gdri_api_v3_result(gdri_core_buffer_read((uint64_t)(uintptr_t)g, handle, offset,
						 host, size));
}

GDRI_PUBLIC gdri_v3_result gdr_host_register_v3(gdri_v3 g, void *ptr, size_t size)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_host_register", &context);

	return result ? result : leave(context, gdri_core_buffer_register(context, ptr, size));
}

GDRI_PUBLIC gdri_v3_result gdr_host_unregister_v3(gdri_v3 g, void *ptr)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_host_unregister", &context);

	return result ? result : leave(context, gdri_core_buffer_unregister(context, ptr));
}

GDRI_PUBLIC gdri_v3_result gdr_flush_v3(gdri_v3 g)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_flush", &context);

	return result ? result : leave(context, gdri_core_buffer_flush(context));
}

/*
 * The caller's struct may be older, and shorter, than ours, or younger: as much
 * is filled as both know, and its first member says how much that was.
 */
static int hand_over(const struct gdri_context *context, const char *call, void *out,
		     const void *filled, uint64_t filled_size)
{
	uint64_t size;

	memcpy(&size, out, sizeof(size));
	if (size < sizeof(size)) {
		gdri_error(&context->config.log, "%s: size is %llu; set it to the size of the struct",
			   call, (unsigned long long)size);
		return -EINVAL;
	}
	if (size > filled_size)
		size = filled_size;
	memcpy(out, filled, size);
	memcpy(out, &size, sizeof(size));
	return 0;
}

GDRI_PUBLIC gdri_v3_result gdr_get_info_v3(gdri_v3 g, uint64_t handle, struct gdri_v3_info *info)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_buffer_info found;
	struct gdri_v3_info filled;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_get_info", &context);
	int rc;

	if (result)
		return result;
	rc = info ? gdri_core_buffer_get_info(context, handle, false, &found) :
		    refuse_null(context, "gdr_get_info", "info");
	if (rc)
		return leave(context, rc);
	filled = (struct gdri_v3_info){
		.addr = found.buffer.imported ? 0 : found.buffer.addr,
		.length = found.buffer.length,
		.device_id = found.buffer.device,
		.flags = found.buffer.flags,
		.mapping_type = found.type,
		.has_engine = found.has_engine,
		.read_crossover = found.read_min,
		.write_crossover = found.write_min,
	};
	return leave(context, hand_over(context, "gdr_get_info", info, &filled, sizeof(filled)));
}

GDRI_PUBLIC gdri_v3_result gdr_query_v3(gdri_v3 g, uint64_t handle, struct gdri_v3_status *status)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_buffer_info found;
	struct gdri_v3_status filled;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_query", &context);
	int rc;

	if (result)
		return result;
	rc = status ? gdri_core_buffer_get_info(context, handle, true, &found) :
		      refuse_null(context, "gdr_query", "status");
	if (rc)
		return leave(context, rc);
	filled = (struct gdri_v3_status){
		.mapped = found.buffer.shown,
		.freed = found.freed,
		.revoked = found.revoked,
	};
	return leave(context, hand_over(context, "gdr_query", status, &filled, sizeof(filled)));
}

/* Half a descriptor is of no use, so a shorter struct is an error here. */
static int check_export(const struct gdri_context *context, const struct gdri_v3_export *desc,
			const int *fd)
{
	uint64_t size;

	if (!desc || !fd)
		return refuse_null(context, "gdr_export", desc ? "fd" : "desc");
	memcpy(&size, desc, sizeof(size));
	if (size >= sizeof(*desc))
		return 0;
	gdri_error(&context->config.log, "gdr_export: size is %llu; set it to the size of the struct",
		   (unsigned long long)size);
	return -EINVAL;
}

GDRI_PUBLIC gdri_v3_result gdr_export_v3(gdri_v3 g, uint64_t handle, uint32_t flags,
					 struct gdri_v3_export *desc, int *fd)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_buffer_share share;
	struct gdri_context *context;
	gdri_v3_result result = enter(g, "gdr_export", &context);
	int rc;

	if (result)
		return result;
	rc = check_export(context, desc, fd);
	if (rc == 0)
		rc = gdri_core_buffer_export(context, handle, flags, &share, fd);
	if (rc)
		return leave(context, rc);
	*desc = (struct gdri_v3_export){
		.size = sizeof(*desc),
		.version = GDRI_V3_EXPORT_VERSION,
		.flags = share.flags,
		.object_size = share.object_size,
		.offset = share.offset,
		.length = share.length,
	};
	memcpy(desc->uuid, share.uuid, sizeof(desc->uuid));
	return leave(context, 0);
}

/* Nothing behind a size that is not ours is looked at. */
static int check_import(const struct gdri_context *context, const struct gdri_v3_export *desc)
{
	if (desc->size == sizeof(*desc) && desc->version == GDRI_V3_EXPORT_VERSION)
		return 0;
	gdri_error(&context->config.log, "gdr_import: a descriptor of %llu bytes, or of another "
		   "version; pass on what gdr_export of this version gave",
		   (unsigned long long)desc->size);
	return -EINVAL;
}

static int import(struct gdri_context *context, const struct gdri_v3_export *desc, int fd,
		  int device, uint64_t *handle)
{
	struct gdri_buffer_share share;
	int rc = check_import(context, desc);

	if (rc)
		return rc;
	share = (struct gdri_buffer_share){
		.object_size = desc->object_size,
		.offset = desc->offset,
		.length = desc->length,
		.flags = desc->flags,
	};
	memcpy(share.uuid, desc->uuid, sizeof(share.uuid));
	return gdri_core_buffer_import(context, &share, fd, device, handle);
}

GDRI_PUBLIC gdri_v3_result gdr_import_v3(gdri_v3 g, const struct gdri_v3_export *desc, int fd,
					 int device_id, uint64_t *handle)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	gdri_v3_result result;

	if (handle)
		*handle = 0;
	result = enter(g, "gdr_import", &context);
	if (result)
		return result;
	if (!desc || !handle)
		return leave(context, refuse_null(context, "gdr_import", desc ? "handle" : "desc"));
	return leave(context, import(context, desc, fd, device_id, handle));
}
