/* SPDX-License-Identifier: MIT */
/* Back end gdrdrv: makes a pinned range visible to the CPU, and takes it away again. */
#include "backend/gdrdrv/session.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"

/* One value, two names: a request is passed on, and compared, as the type it asks for. */
_Static_assert((int)GDR_MAP_FLAG_REQ_WC_MAPPING == (int)GDRDRV_MAPPING_TYPE_WC &&
	       (int)GDR_MAP_FLAG_REQ_CACHE_MAPPING == (int)GDRDRV_MAPPING_TYPE_CACHING &&
	       (int)GDR_MAP_FLAG_REQ_DEVICE_MAPPING == (int)GDRDRV_MAPPING_TYPE_DEVICE &&
	       (int)GDR_MAPPING_TYPE_MAX == (int)GDRDRV_MAPPING_TYPE_DEVICE + 1,
	       "requests and types share their numbers");

/*
 * A module that takes no requests picks by itself; check_type() then says
 * whether it picked right.
 */
static int request_type(struct gdri_backend_session *session, uint32_t handle, int flags)
{
	struct gdrdrv_req_mapping_type request = {
		.handle = handle,
		.mapping_type = (uint32_t)flags,
	};
	int ret;

	if (flags == GDR_MAP_FLAG_DEFAULT || !gdrdrv_session_of(session)->has.mapping_request)
		return 0;
	ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_REQ_MAPPING_TYPE, &request);
	if (ret < 0)
		gdri_error(&session->config->log, "gdrdrv: request for mapping type %d: %s: the "
			   "platform gives another one, map with flags 0", flags, strerror(-ret));
	return ret;
}

static int map_pages(struct gdri_backend_session *session, uint32_t handle, size_t size,
		     void **base)
{
	off_t offset = (off_t)handle << gdrdrv_session_of(session)->page_shift;
	int ret = gdri_os_mmap(size, PROT_READ | PROT_WRITE, MAP_SHARED, *session->fd, offset,
			       base);

	if (ret < 0) {
		gdri_error(&session->config->log, "gdrdrv: mmap of %zu bytes of handle 0x%x: %s: "
			   "the memory was freed, it is mapped already, or the pin is shorter",
			   size, handle, strerror(-ret));
		return ret;
	}
	ret = gdri_os_dontfork(*base, size);
	if (ret < 0) {
		gdri_error(&session->config->log, "gdrdrv: keeping a mapping from children: %s",
			   strerror(-ret));
		gdri_os_munmap(*base, size);
	}
	return ret;
}

static int check_type(struct gdri_backend_session *session, uint32_t handle, int flags,
		      gdr_mapping_type_t *type)
{
	const struct gdri_log *log = &session->config->log;
	struct gdrdrv_get_info_v2 info;
	int ret = gdri_gdrdrv_module_info(session, handle, &info);

	if (ret < 0) {
		gdri_error(log, "gdrdrv: info of a new mapping: %s", strerror(-ret));
		return ret;
	}
	/* The copy engine picks its routines by this number. */
	if (info.mapping_type == GDRDRV_MAPPING_TYPE_NONE ||
	    info.mapping_type >= GDR_MAPPING_TYPE_MAX) {
		gdri_error(log, "gdrdrv: the module answers mapping type %u, which this library "
			   "does not know: update libgdrapi", info.mapping_type);
		return -EIO;
	}
	if (flags != GDR_MAP_FLAG_DEFAULT && info.mapping_type != (uint32_t)flags) {
		gdri_error(log, "gdrdrv: mapping has type %u instead of %d: map with flags 0",
			   info.mapping_type, flags);
		return -EINVAL;
	}
	*type = (gdr_mapping_type_t)info.mapping_type;
	return 0;
}

/*
 * Pages that the driver may take back are mapped by faults, a single page always
 * (src/modules/gdrdrv/map.c).  A module that does not answer is taken to map so.
 */
static bool is_populated(struct gdri_backend_session *session, gdr_mapping_type_t type,
			 size_t size)
{
	const struct gdrdrv_session *gdrdrv = gdrdrv_session_of(session);
	struct gdrdrv_get_attr persistent = { .attr = GDR_ATTR_USE_PERSISTENT_MAPPING };

	/* Nobody needs to know of the other types. */
	return type == GDR_MAPPING_TYPE_WC && gdrdrv->has.attributes &&
	       size >> gdrdrv->page_shift > 1 &&
	       gdri_gdrdrv_module_ask(session, GDRDRV_IOC_GET_ATTR, &persistent) == 0 &&
	       persistent.val != 0;
}

int gdri_gdrdrv_region_map(struct gdri_backend_session *session, struct gdri_pin *pin, size_t size,
			   int flags, struct gdri_mapping *mapping)
{
	gdr_mapping_type_t type;
	void *base;
	int ret;

	ret = request_type(session, pin->driver_handle, flags);
	if (ret < 0)
		return ret;
	ret = map_pages(session, pin->driver_handle, size, &base);
	if (ret < 0)
		return ret;
	ret = check_type(session, pin->driver_handle, flags, &type);
	if (ret < 0) {
		gdri_os_munmap(base, size);
		return ret;
	}
	*mapping = (struct gdri_mapping){
		.base = base,
		.length = size,
		.type = type,
		.is_populated = is_populated(session, type, size),
	};
	return 0;
}

/* The module learns of it from the kernel, so that the handle can be mapped again. */
int gdri_gdrdrv_region_unmap(struct gdri_backend_session *session, struct gdri_pin *pin,
			     struct gdri_mapping *mapping)
{
	int ret = gdri_os_munmap(mapping->base, mapping->length);

	if (ret < 0)
		gdri_error(&session->config->log, "gdrdrv: munmap of handle 0x%x: %s",
			   pin->driver_handle, strerror(-ret));
	return ret;
}
