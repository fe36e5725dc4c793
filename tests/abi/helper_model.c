/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for another maker's libgdrapi.so.2, written from the facts alone:
 * handles are pointers, info is filled field by field, nothing is checked that
 * 2.6 does not check, and each "GPU" range is ordinary memory.  A program that
 * was built with the project's header and library must run on it.
 */
#include "facts_2_6.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Layouts that the original's sanity program knows: 48 and 104 bytes. */
struct gdr {
	int fd;
	void *list;
	size_t page_size;
	size_t page_mask;
	uint8_t page_shift;
	uint32_t driver_version;
	int backend;
};

struct pinned {
	void *links[2];
	gdr_mapping_type_t mapping_type;
	_Alignas(8) uint32_t driver_handle;
	uint64_t va;
	size_t size;
	void *memory;
	unsigned char rest[48];
};

_Static_assert(sizeof(struct gdr) == 48, "2.6");
_Static_assert(offsetof(struct pinned, mapping_type) == 16, "2.6");
_Static_assert(offsetof(struct pinned, driver_handle) == 24, "2.6");
_Static_assert(sizeof(struct pinned) == 104, "2.6");

static struct pinned *pinned_of(gdr_mh_t handle)
{
	return (struct pinned *)handle.h;
}

gdr_t gdr_open(void)
{
	struct gdr *g = calloc(1, sizeof(*g));

	if (g)
		g->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return g;
}

int gdr_close(gdr_t g)
{
	close(g->fd);
	free(g);
	return 0;
}

int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token,
		   uint32_t va_space, gdr_mh_t *handle)
{
	struct pinned *pinned = calloc(1, sizeof(*pinned));

	(void)g;
	(void)p2p_token;
	(void)va_space;
	if (!handle || !pinned)
		return handle ? ENOMEM : EINVAL;
	pinned->va = addr & GPU_PAGE_MASK;
	pinned->size = ((addr + size + GPU_PAGE_OFFSET) & GPU_PAGE_MASK) - pinned->va;
	pinned->driver_handle = 0x1234;
	handle->h = (unsigned long)pinned;
	return 0;
}

int gdr_pin_buffer_v2(gdr_t g, unsigned long addr, size_t size, uint32_t flags, gdr_mh_t *handle)
{
	return flags ? EINVAL : gdr_pin_buffer(g, addr, size, 0, 0, handle);
}

int gdr_map_v2(gdr_t g, gdr_mh_t handle, void **ptr_va, size_t size, int flags)
{
	struct pinned *pinned = pinned_of(handle);

	(void)g;
	(void)size;
	if (pinned->memory)
		return EAGAIN;
	if (flags < 0 || flags > GDR_MAP_FLAG_REQ_DEVICE_MAPPING)
		return EINVAL;
	pinned->memory = mmap(NULL, pinned->size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pinned->mapping_type = GDR_MAPPING_TYPE_WC;
	*ptr_va = pinned->memory;
	return 0;
}

int gdr_map(gdr_t g, gdr_mh_t handle, void **va, size_t size)
{
	return gdr_map_v2(g, handle, va, size, 0);
}

int gdr_unmap(gdr_t g, gdr_mh_t handle, void *va, size_t size)
{
	struct pinned *pinned = pinned_of(handle);

	(void)g;
	(void)size;
	munmap(va, pinned->size);
	pinned->memory = NULL;
	pinned->mapping_type = GDR_MAPPING_TYPE_NONE;
	return 0;
}

int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle)
{
	if (pinned_of(handle)->memory)
		gdr_unmap(g, handle, pinned_of(handle)->memory, 0);
	free(pinned_of(handle));
	return 0;
}

int gdr_get_callback_flag(gdr_t g, gdr_mh_t handle, int *flag)
{
	(void)g;
	(void)handle;
	*flag = 0;
	return 0;
}

int gdr_get_info_v2(gdr_t g, gdr_mh_t handle, gdr_info_v2_t *info)
{
	const struct pinned *pinned = pinned_of(handle);

	(void)g;
	info->va = pinned->va;
	info->mapped_size = pinned->size;
	info->page_size = 65536;
	info->tm_cycles = 1000;
	info->cycles_per_ms = 2000000;
	info->mapped = pinned->memory != NULL;
	info->wc_mapping = pinned->memory != NULL;
	info->mapping_type = pinned->mapping_type;
	return 0;
}

#undef gdr_get_info
int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info)
{
	gdr_info_v2_t v2;

	memset(&v2, 0, sizeof(v2));
	gdr_get_info_v2(g, handle, &v2);
	memcpy(info, &v2, sizeof(*info));
	return 0;
}

int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size)
{
	if (!pinned_of(handle)->memory)
		return EINVAL;
	memcpy(map_d_ptr, h_ptr, size);
	return 0;
}

int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr, size_t size)
{
	if (!pinned_of(handle)->memory)
		return EINVAL;
	memcpy(h_ptr, map_d_ptr, size);
	return 0;
}

void gdr_runtime_get_version(int *major, int *minor)
{
	*major = 2;
	*minor = 6;
}

int gdr_driver_get_version(gdr_t g, int *major, int *minor)
{
	(void)g;
	*major = 2;
	*minor = 6;
	return 0;
}

int gdr_get_attribute(gdr_t g, gdr_attr_t attr, int *v)
{
	(void)g;
	if (attr < 1 || attr >= GDR_ATTR_MAX)
		return EINVAL;
	*v = attr == GDR_ATTR_USE_PERSISTENT_MAPPING;
	return 0;
}

int gdr_get_mapping_type_string(gdr_mapping_type_t mapping_type, const char **pstr)
{
	static const char *const names[] = { "None", "Write Combining", "Caching", "Device" };

	if ((unsigned)mapping_type >= GDR_MAPPING_TYPE_MAX)
		return EINVAL;
	*pstr = names[mapping_type];
	return 0;
}
