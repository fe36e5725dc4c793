/* SPDX-License-Identifier: MIT */
/* The 2.6 interface: checks its pointers, calls core, answers with a positive errno. */
#include "gdrapi.h"

#include <errno.h>
#include <string.h>

#include "core/context.h"
#include "core/region.h"
#include "os/cancel.h"
#include "visibility.h"

/* The kernel's own ENOTSUPP, which drivers leak to user space and strerror does not know. */
#define KERNEL_ENOTSUPP 524

_Static_assert(sizeof(gdr_mh_t) == 8, "a handle is passed in one register");
_Static_assert(sizeof(gdr_info_v1_t) == 40, "programs of before 2.4 pass 40 bytes");
_Static_assert(sizeof(gdr_info_v2_t) == 48, "programs since 2.4 pass 48 bytes");
_Static_assert(offsetof(gdr_info_v2_t, tm_cycles) == 24, "2.6 layout");
_Static_assert(offsetof(gdr_info_v2_t, mapping_type) == 40, "2.6 layout");

static int to_errno(int rc)
{
	if (rc == -KERNEL_ENOTSUPP)
		return EOPNOTSUPP;
	return -rc;
}

/* Errors that no session can log: there is none. */
static __attribute__((cold)) int refuse_session(const char *call, int rc)
{
	struct gdri_log log = gdri_core_config_log();

	gdri_error(&log, "%s: %s", call,
		   rc == -EACCES ? "the session belongs to the parent of this process; open one here" :
				   "not an open session (closed already, or never opened)");
	return rc;
}

static int enter(gdr_t g, const char *call, struct gdri_context **context)
{
	int rc = gdri_core_context_enter(GDRI_RECORD_SESSION, (uint64_t)(uintptr_t)g, context);

	return rc ? refuse_session(call, rc) : 0;
}

static int refuse_null(const struct gdri_context *context, const char *call, const char *what)
{
	gdri_error(&context->config.log, "%s: %s is NULL; give a place for the answer", call, what);
	return -EINVAL;
}

GDRI_PUBLIC gdr_t gdr_open(void)
{
	GDRI_OS_NO_CANCEL;
	uint64_t handle;

	return gdri_core_context_open(GDRI_RECORD_SESSION, &handle) ? NULL : (gdr_t)(uintptr_t)handle;
}

GDRI_PUBLIC int gdr_close(gdr_t g)
{
	GDRI_OS_NO_CANCEL;
	int release_rc = 0;
	int rc = gdri_core_context_close(GDRI_RECORD_SESSION, (uint64_t)(uintptr_t)g, &release_rc);

	return to_errno(rc ? refuse_session("gdr_close", rc) : release_rc);
}

static int pin(gdr_t g, const char *call, unsigned long addr, size_t size, uint32_t flags,
	       uint64_t p2p_token, uint32_t va_space, gdr_mh_t *handle)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	uint64_t value = 0;
	int rc;

	if (handle)
		handle->h = 0;
	rc = enter(g, call, &context);
	if (rc)
		return to_errno(rc);
	if (!handle)
		rc = refuse_null(context, call, "handle");
	else
		rc = gdri_core_region_pin(context, addr, size, flags, p2p_token, va_space, &value);
	if (rc == 0)
		handle->h = value;
	gdri_core_context_leave(context);
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token,
			       uint32_t va_space, gdr_mh_t *handle)
{
	return pin(g, "gdr_pin_buffer", addr, size, GDR_PIN_FLAG_DEFAULT, p2p_token, va_space,
		   handle);
}

GDRI_PUBLIC int gdr_pin_buffer_v2(gdr_t g, unsigned long addr, size_t size, uint32_t flags,
				  gdr_mh_t *handle)
{
	return pin(g, "gdr_pin_buffer_v2", addr, size, flags, 0, 0, handle);
}

GDRI_PUBLIC int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	int rc;

	rc = enter(g, "gdr_unpin_buffer", &context);
	if (rc)
		return to_errno(rc);
	rc = gdri_core_region_unpin(context, handle.h);
	gdri_core_context_leave(context);
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_get_callback_flag(gdr_t g, gdr_mh_t handle, int *flag)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	int rc;

	rc = enter(g, "gdr_get_callback_flag", &context);
	if (rc)
		return to_errno(rc);
	rc = flag ? gdri_core_region_get_callback_flag(context, handle.h, flag) :
		    refuse_null(context, "gdr_get_callback_flag", "flag");
	gdri_core_context_leave(context);
	return to_errno(rc);
}

/* Fills the layout of 2.4 and later, padding included, so that 40 bytes of it are v1's. */
static int get_info(gdr_t g, gdr_mh_t handle, const void *out, gdr_info_v2_t *info)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_region_info region;
	struct gdri_context *context;
	int rc;

	rc = enter(g, "gdr_get_info", &context);
	if (rc)
		return rc;
	rc = out ? gdri_core_region_get_info(context, handle.h, &region) :
		   refuse_null(context, "gdr_get_info", "info");
	gdri_core_context_leave(context);
	if (rc)
		return rc;
	memset(info, 0, sizeof(*info));
	info->va = region.va;
	info->mapped_size = region.size;
	info->page_size = region.page_size;
	info->tm_cycles = region.tm_cycles;
	info->cycles_per_ms = region.tsc_khz;
	info->mapped = region.mapping_type != GDR_MAPPING_TYPE_NONE;
	info->wc_mapping = region.mapping_type == GDR_MAPPING_TYPE_WC;
	info->mapping_type = region.mapping_type;
	return 0;
}

GDRI_PUBLIC int gdr_get_info_v2(gdr_t g, gdr_mh_t handle, gdr_info_v2_t *info)
{
	gdr_info_v2_t filled;
	int rc = get_info(g, handle, info, &filled);

	if (rc == 0)
		*info = filled;
	return to_errno(rc);
}

/* The name that programs of before 2.4 were linked to; the header renames it. */
#undef gdr_get_info
GDRI_PUBLIC int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info)
{
	gdr_info_v2_t filled;
	int rc = get_info(g, handle, info, &filled);

	if (rc == 0)
		memcpy(info, &filled, sizeof(*info));
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_map_v2(gdr_t g, gdr_mh_t handle, void **ptr_va, size_t size, int flags)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	int rc;

	if (ptr_va)
		*ptr_va = NULL;
	rc = enter(g, "gdr_map", &context);
	if (rc)
		return to_errno(rc);
	rc = ptr_va ? gdri_core_region_map(context, handle.h, size, flags, ptr_va) :
		      refuse_null(context, "gdr_map", "the pointer's address");
	gdri_core_context_leave(context);
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_map(gdr_t g, gdr_mh_t handle, void **va, size_t size)
{
	return gdr_map_v2(g, handle, va, size, GDR_MAP_FLAG_DEFAULT);
}

GDRI_PUBLIC int gdr_unmap(gdr_t g, gdr_mh_t handle, void *va, size_t size)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	int rc;

	rc = enter(g, "gdr_unmap", &context);
	if (rc)
		return to_errno(rc);
	rc = gdri_core_region_unmap(context, handle.h, va, size);
	gdri_core_context_leave(context);
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr,
				    size_t size)
{
	return gdri_core_region_copy_to(handle.h, map_d_ptr, h_ptr, size);
}

GDRI_PUBLIC int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr,
				      size_t size)
{
	return gdri_core_region_copy_from(handle.h, h_ptr, map_d_ptr, size);
}

GDRI_PUBLIC void gdr_runtime_get_version(int *major, int *minor)
{
	if (major)
		*major = GDR_API_MAJOR_VERSION;
	if (minor)
		*minor = GDR_API_MINOR_VERSION;
}

GDRI_PUBLIC int gdr_driver_get_version(gdr_t g, int *major, int *minor)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	uint32_t version;
	int rc;

	rc = enter(g, "gdr_driver_get_version", &context);
	if (rc)
		return to_errno(rc);
	rc = context->backend->ops->get_version(context->backend, &version);
	if (rc == 0 && major)
		*major = (int)(version >> 16);
	if (rc == 0 && minor)
		*minor = (int)(version & 0xffff);
	gdri_core_context_leave(context);
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_get_attribute(gdr_t g, gdr_attr_t attr, int *v)
{
	GDRI_OS_NO_CANCEL;
	struct gdri_context *context;
	int rc;

	rc = enter(g, "gdr_get_attribute", &context);
	if (rc)
		return to_errno(rc);
	if (!v) {
		rc = refuse_null(context, "gdr_get_attribute", "v");
	} else if ((int)attr < 1 || attr >= GDR_ATTR_MAX) {
		gdri_error(&context->config.log, "gdr_get_attribute: attribute %d is not known",
			   (int)attr);
		rc = -EINVAL;
	} else {
		rc = context->backend->ops->get_attribute(context->backend, (int)attr, v);
	}
	gdri_core_context_leave(context);
	return to_errno(rc);
}

GDRI_PUBLIC int gdr_get_mapping_type_string(gdr_mapping_type_t mapping_type, const char **pstr)
{
	static const char *const names[GDR_MAPPING_TYPE_MAX] = {
		[GDR_MAPPING_TYPE_NONE] = "None",
		[GDR_MAPPING_TYPE_WC] = "Write Combining",
		[GDR_MAPPING_TYPE_CACHING] = "Caching",
		[GDR_MAPPING_TYPE_DEVICE] = "Device",
	};

	struct gdri_log log;

	if (pstr && (unsigned)mapping_type < GDR_MAPPING_TYPE_MAX) {
		*pstr = names[mapping_type];
		return 0;
	}
	log = gdri_core_config_log();
	gdri_error(&log, "gdr_get_mapping_type_string: %s (type %d)",
		   pstr ? "not one of gdr_mapping_type_t" :
			  "pstr is NULL; give a place for the answer",
		   (int)mapping_type);
	return EINVAL;
}
