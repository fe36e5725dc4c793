/* SPDX-License-Identifier: MIT */
/* Back end dmabuf: the life of one pinned range. */
#include "backend/dmabuf/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"

/*
 * A pin is a mapping from its first moment on.  It alone keeps the dma-buf,
 * and with it the GPU memory, alive, so that the descriptor can go at once:
 * pins by the ten thousand fit into a small ulimit -n, and unmap and unpin
 * need neither CUDA nor a descriptor.  map() hands the address out; unmap()
 * moves the mapping to an address that nobody was told, so that stray accesses
 * fault while the pin lives on and can be mapped again.  (Taking the access
 * rights away in place would be simpler, but kernels refuse PROT_NONE on
 * device memory to ordinary users of CPUs with the L1TF flaw.)
 */
struct dmabuf_region {
	void *base;		/* NULL when unmap() could not move it */
	size_t length;
	gdr_mapping_type_t type;
};

static int map_export(const struct gdri_log *log, const struct dmabuf_export *export,
		      struct dmabuf_region *region)
{
	int ret = gdri_os_mmap(export->length, PROT_READ | PROT_WRITE, MAP_SHARED, export->fd, 0,
			       &region->base);

	if (ret == -GDRI_OS_ENOTSUPP)
		ret = -EOPNOTSUPP;
	if (ret < 0) {
		gdri_error(log, "dmabuf: mmap of %zu bytes: %s: this GPU or driver does not let "
			   "its dma-bufs be mapped", export->length, strerror(-ret));
		return ret;
	}
	ret = gdri_os_dontfork(region->base, export->length);
	if (ret < 0) {
		gdri_error(log, "dmabuf: keeping a mapping from children: %s", strerror(-ret));
		gdri_os_munmap(region->base, export->length);
		return ret;
	}
	region->length = export->length;
	region->type = export->cached ? GDR_MAPPING_TYPE_CACHING : GDR_MAPPING_TYPE_WC;
	return 0;
}

int gdri_dmabuf_region_pin(struct gdri_backend_session *session, uint64_t addr, size_t size,
			   uint32_t flags, uint64_t p2p_token, uint32_t va_space,
			   struct gdri_pin *pin)
{
	const uint64_t va = addr & ~(GDRI_GPU_PAGE_SIZE - 1);
	struct dmabuf_session *owner = dmabuf_session_of(session);
	struct dmabuf_region *region;
	struct dmabuf_export export;
	int ret;

	(void)p2p_token;	/* tokens belong to the kernel module */
	(void)va_space;
	if (flags & ~(uint32_t)GDR_PIN_FLAG_FORCE_PCIE) {
		gdri_error(&session->config->log, "dmabuf: unknown pin flags 0x%x", flags);
		return -EINVAL;
	}
	region = malloc(sizeof(*region));
	if (!region) {
		gdri_error(&session->config->log, "dmabuf: out of memory");
		return -ENOMEM;
	}
	ret = gdri_dmabuf_range_export(owner, addr, size, flags, &export);
	if (ret < 0)
		goto err_free;
	ret = map_export(&session->config->log, &export, region);
	gdri_os_close(export.fd);
	if (ret < 0)
		goto err_free;
	*pin = (struct gdri_pin){
		.va = va,
		.size = ((addr + size + GDRI_GPU_PAGE_SIZE - 1) & ~(GDRI_GPU_PAGE_SIZE - 1)) - va,
		.addr = addr,
		.length = size,
		.page_size = GDRI_GPU_PAGE_SIZE,
		.driver_handle = __atomic_fetch_add(&owner->pins_made, 1, __ATOMIC_RELAXED),
		.priv = region,
	};
	return 0;

err_free:
	free(region);
	return ret;
}

int gdri_dmabuf_region_unpin(struct gdri_backend_session *session, struct gdri_pin *pin)
{
	struct dmabuf_region *region = pin->priv;
	int ret = 0;

	if (region->base)
		ret = gdri_os_munmap(region->base, region->length);
	if (ret < 0)
		gdri_error(&session->config->log, "dmabuf: munmap: %s", strerror(-ret));
	free(region);
	pin->priv = NULL;
	return ret;
}

/* The export starts at the pinned address here, since core maps aligned pins alone. */
int gdri_dmabuf_region_map(struct gdri_backend_session *session, struct gdri_pin *pin, size_t size,
			   int flags, struct gdri_mapping *mapping)
{
	const struct gdri_log *log = &session->config->log;
	const struct dmabuf_region *region = pin->priv;

	if (flags != GDR_MAP_FLAG_DEFAULT && flags != (int)region->type) {
		gdri_error(log, "dmabuf: mapping type %d is asked for, the driver gives %d: map "
			   "with flags 0", flags, (int)region->type);
		return -EINVAL;
	}
	if (size > region->length) {
		gdri_error(log, "dmabuf: a map of %zu bytes leaves the allocation, %zu bytes of it "
			   "can be mapped", size, region->length);
		return -EINVAL;
	}
	if (!region->base) {
		gdri_error(log, "dmabuf: the last unmap ran out of address space: pin again");
		return -ENOMEM;
	}
	*mapping = (struct gdri_mapping){
		.base = region->base,
		.length = size,
		.type = region->type,
		.is_populated = true,	/* remap_pfn_range in NVIDIA's nv-dmabuf.c */
	};
	return 0;
}

int gdri_dmabuf_region_unmap(struct gdri_backend_session *session, struct gdri_pin *pin,
			     struct gdri_mapping *mapping)
{
	struct dmabuf_region *region = pin->priv;
	int ret = gdri_os_move(mapping->base, region->length, &region->base);

	if (ret == 0)
		return 0;
	gdri_warn(&session->config->log, "dmabuf: hiding a mapping of %zu bytes: %s: it goes away "
		  "and this pin cannot be mapped again", region->length, strerror(-ret));
	region->base = NULL;
	ret = gdri_os_munmap(mapping->base, region->length);
	if (ret < 0)
		gdri_error(&session->config->log, "dmabuf: munmap: %s", strerror(-ret));
	return ret;
}
