/* SPDX-License-Identifier: MIT */
/* Back end dmabuf: finds a CUDA driver whose dma-bufs can be mapped. */
#include "backend/dmabuf/session.h"

#include <errno.h>
#include <stdlib.h>

/* Older drivers export dma-bufs as well, but refuse to mmap them (interface facts 7). */
#define OLDEST_DRIVER 13030	/* CUDA 13.3, as cuDriverGetVersion counts */

#define CUDA_MAJOR(version) ((version) / 1000)
#define CUDA_MINOR(version) ((version) % 1000 / 10)

const char *gdri_dmabuf_cuda_result_name(const struct gdri_cuda *cuda, int result)
{
	const char *name;

	return cuda->get_error_name(result, &name) == GDRI_CU_SUCCESS ? name : "unknown result";
}

bool gdri_dmabuf_device_is_coherent(const struct gdri_cuda *cuda, int device)
{
	int coherent = 0;
	int result = cuda->device_get_attribute(
		&coherent, GDRI_CU_DEVICE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, device);

	return result == GDRI_CU_SUCCESS && coherent != 0;
}

static int load_cuda(struct gdri_cuda *cuda, struct gdri_reason *why)
{
	int ret = gdri_os_cuda_load(cuda);

	if (ret == -ENOENT)
		gdri_backend_reason(why, "libcuda.so.1 is not found: install the NVIDIA driver, or "
				    "name its folder in LD_LIBRARY_PATH");
	else if (ret < 0)
		gdri_backend_reason(why, "libcuda lacks basic calls (%d): is it NVIDIA's?", -ret);
	return ret;
}

/* cuDriverGetVersion answers before cuInit, so a driver that is too old costs nothing. */
static int check_driver(const struct gdri_cuda *cuda, struct gdri_reason *why)
{
	int version = 0;
	int result = cuda->driver_get_version(&version);

	if (result != GDRI_CU_SUCCESS) {
		gdri_backend_reason(why, "cuDriverGetVersion: %s (%d): the NVIDIA driver does not "
				    "work, see dmesg", gdri_dmabuf_cuda_result_name(cuda, result),
				    result);
		return gdri_os_cuda_errno(result);
	}
	if (version < OLDEST_DRIVER) {
		gdri_backend_reason(why, "the driver is for CUDA %d.%d, dma-bufs can be mapped "
				    "from %d.%d on: update the driver or load module gdrdrv",
				    CUDA_MAJOR(version), CUDA_MINOR(version),
				    CUDA_MAJOR(OLDEST_DRIVER), CUDA_MINOR(OLDEST_DRIVER));
		return -EOPNOTSUPP;
	}
	if (!cuda->mem_get_handle_for_address_range) {
		gdri_backend_reason(why, "libcuda has no cuMemGetHandleForAddressRange although it "
				    "says CUDA %d.%d: is it NVIDIA's?", CUDA_MAJOR(version),
				    CUDA_MINOR(version));
		return -ENOSYS;
	}
	return 0;
}

static int open_session(const struct gdri_config *config, struct gdri_backend_session **session,
			int *fd, struct gdri_reason *why)
{
	struct dmabuf_session *opened = calloc(1, sizeof(*opened));
	int ret;

	if (!opened) {
		gdri_backend_reason(why, "out of memory");
		return -ENOMEM;
	}
	ret = load_cuda(&opened->cuda, why);
	if (ret < 0)
		goto err_free;
	ret = check_driver(&opened->cuda, why);
	if (ret < 0)
		goto err_unload;
	opened->base.ops = &gdri_backend_dmabuf;
	opened->base.config = config;
	*session = &opened->base;
	*fd = -1;
	return 0;

err_unload:
	gdri_os_cuda_unload(&opened->cuda);
err_free:
	free(opened);
	return ret;
}

static int close_session(struct gdri_backend_session *session)
{
	gdri_os_cuda_unload(&dmabuf_session_of(session)->cuda);
	free(dmabuf_session_of(session));
	return 0;
}

/*
 * Asks without initialising CUDA: cuInit is the application's choice, since it
 * takes long and makes a later fork unusable.  Before it the answer is no.
 */
static bool any_device_is_coherent(const struct gdri_cuda *cuda)
{
	int count = 0;
	int device;

	if (cuda->device_get_count(&count) != GDRI_CU_SUCCESS)
		return false;
	for (int i = 0; i < count; i++)
		if (cuda->device_get(&device, i) == GDRI_CU_SUCCESS &&
		    gdri_dmabuf_device_is_coherent(cuda, device))
			return true;
	return false;
}

static int get_attribute(struct gdri_backend_session *session, int attr, int *value)
{
	switch (attr) {
	case GDR_ATTR_USE_PERSISTENT_MAPPING:	/* the dma-buf holds the memory */
	case GDR_ATTR_USING_DMA_BUF_MMAP:
		*value = 1;
		return 0;
	case GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE:
		*value = any_device_is_coherent(&dmabuf_session_of(session)->cuda);
		return 0;
	default:
		return -EINVAL;
	}
}

const struct gdri_backend_ops gdri_backend_dmabuf = {
	.id = GDRI_BACKEND_DMABUF,
	.name = "dmabuf",
	.open = open_session,
	.close = close_session,
	.get_version = gdri_backend_version_2_6,
	.get_attribute = get_attribute,
	.pin = gdri_dmabuf_region_pin,
	.unpin = gdri_dmabuf_region_unpin,
	.map = gdri_dmabuf_region_map,
	.unmap = gdri_dmabuf_region_unmap,
	.get_callback_flag = gdri_backend_no_callback_flag,
	.refresh = gdri_backend_no_refresh,
};
