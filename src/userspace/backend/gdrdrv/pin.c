/* SPDX-License-Identifier: MIT */
/* Back end gdrdrv: pins, questions about them, and their end. */
#include "backend/gdrdrv/session.h"

#include <errno.h>
#include <string.h>

static const char *remedy_for_pin(int error, uint32_t flags)
{
	switch (error) {
	case EINVAL:
		return "the range is no GPU memory or leaves its allocation, the GPU has no "
		       "GPUDirect RDMA (GeForce), VMM memory was made without "
		       "gpuDirectRDMACapable, or the module knows no such flag or takes no tokens";
	case ENOMEM:
		return "BAR1 is full (nvidia-smi -q -d MEMORY shows it), or the host is out of "
		       "memory: unpin something or pin less";
	case EOPNOTSUPP:
		return flags & GDR_PIN_FLAG_FORCE_PCIE ?
		       "only a GPU with a coherent CPU link can be forced to PCIe: use flags 0" :
		       "the NVIDIA driver gives no persistent pins here (vGPU, MIG or confidential "
		       "computing): load gdrdrv with use_persistent_mapping=0";
	case EACCES:
		return "another process opened this session: each process calls gdr_open itself";
	case EBADF:
	case ENOTTY:
		return "the session's descriptor was closed or replaced";
	default:
		return "see dmesg";
	}
}

static int ask_pin(struct gdri_backend_session *session, uint64_t addr, size_t size,
		   uint32_t flags, uint64_t *handle)
{
	struct gdrdrv_pin_buffer_v2 request = { .addr = addr, .size = size, .flags = flags };
	int ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_PIN_BUFFER_V2, &request);

	*handle = request.handle;
	return ret;
}

static int ask_pin_with_tokens(struct gdri_backend_session *session, uint64_t addr, size_t size,
			       uint64_t p2p_token, uint32_t va_space, uint64_t *handle)
{
	struct gdrdrv_pin_buffer request = {
		.addr = addr,
		.size = size,
		.p2p_token = p2p_token,
		.va_space = va_space,
	};
	int ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_PIN_BUFFER, &request);

	*handle = request.handle;
	return ret;
}

static int ask_unpin(struct gdri_backend_session *session, uint64_t handle)
{
	struct gdrdrv_unpin_buffer request = { .handle = handle };

	return gdri_gdrdrv_module_ask(session, GDRDRV_IOC_UNPIN_BUFFER, &request);
}

/*
 * Modules before 2.4 tell write-combined mappings from all others by a bit.
 * The others are cached ones, except that an ARM64 module may have chosen
 * device memory: the type whose rules are right for any memory there.
 */
static uint32_t type_of_old_info(const struct gdrdrv_get_info *info)
{
	if (!info->mapped)
		return GDRDRV_MAPPING_TYPE_NONE;
	if (info->wc_mapping)
		return GDRDRV_MAPPING_TYPE_WC;
#ifdef __aarch64__
	return GDRDRV_MAPPING_TYPE_DEVICE;
#else
	return GDRDRV_MAPPING_TYPE_CACHING;
#endif
}

int gdri_gdrdrv_module_info(struct gdri_backend_session *session, uint32_t handle,
			    struct gdrdrv_get_info_v2 *info)
{
	struct gdrdrv_get_info old = { .handle = handle };
	int ret;

	*info = (struct gdrdrv_get_info_v2){ .handle = handle };
	if (gdrdrv_session_of(session)->has.info_v2)
		return gdri_gdrdrv_module_ask(session, GDRDRV_IOC_GET_INFO_V2, info);
	ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_GET_INFO, &old);
	if (ret < 0)
		return ret;
	info->va = old.va;
	info->mapped_size = old.mapped_size;
	info->page_size = old.page_size;
	info->tsc_khz = old.tsc_khz;
	info->tm_cycles = old.tm_cycles;
	info->mapping_type = type_of_old_info(&old);
	return 0;
}

static void fill_pin(struct gdri_pin *pin, const struct gdrdrv_get_info_v2 *info)
{
	pin->va = info->va;
	pin->size = info->mapped_size;
	pin->page_size = info->page_size;
	pin->tsc_khz = info->tsc_khz;
	pin->tm_cycles = info->tm_cycles;
}

int gdri_gdrdrv_region_pin(struct gdri_backend_session *session, uint64_t addr, size_t size,
			   uint32_t flags, uint64_t p2p_token, uint32_t va_space,
			   struct gdri_pin *pin)
{
	const struct gdri_log *log = &session->config->log;
	struct gdrdrv_get_info_v2 info;
	uint64_t handle;
	int ret;

	if (gdrdrv_session_of(session)->has.pin_v2) {
		ret = ask_pin(session, addr, size, flags, &handle);
	} else if (flags != 0) {
		gdri_error(log, "gdrdrv: pin flags 0x%x need module 2.5 or newer", flags);
		return -EINVAL;
	} else {
		ret = ask_pin_with_tokens(session, addr, size, p2p_token, va_space, &handle);
	}
	if (ret < 0) {
		gdri_error(log, "gdrdrv: pin of %zu bytes at 0x%llx, flags 0x%x: %s: %s", size,
			   (unsigned long long)addr, flags, strerror(-ret),
			   remedy_for_pin(-ret, flags));
		return ret;
	}
	/* The 2.6 layouts have 32 bits for it; a session runs out after 2^32 host pages. */
	if (handle > UINT32_MAX) {
		gdri_error(log, "gdrdrv: the session has used up its handles: open a new one");
		ret = -ENOMEM;
		goto err_unpin;
	}
	ret = gdri_gdrdrv_module_info(session, (uint32_t)handle, &info);
	if (ret < 0) {
		gdri_error(log, "gdrdrv: info of a new pin: %s", strerror(-ret));
		goto err_unpin;
	}
	*pin = (struct gdri_pin){
		.addr = addr,
		.length = size,
		.driver_handle = (uint32_t)handle,
	};
	fill_pin(pin, &info);
	return 0;

err_unpin:
	ask_unpin(session, handle);
	return ret;
}

int gdri_gdrdrv_region_unpin(struct gdri_backend_session *session, struct gdri_pin *pin)
{
	int ret = ask_unpin(session, pin->driver_handle);

	if (ret < 0)
		gdri_error(&session->config->log, "gdrdrv: unpin of handle 0x%x: %s",
			   pin->driver_handle, strerror(-ret));
	return ret;
}

int gdri_gdrdrv_region_refresh(struct gdri_backend_session *session, struct gdri_pin *pin)
{
	struct gdrdrv_get_info_v2 info;
	int ret = gdri_gdrdrv_module_info(session, pin->driver_handle, &info);

	if (ret < 0) {
		gdri_error(&session->config->log, "gdrdrv: info of handle 0x%x: %s",
			   pin->driver_handle, strerror(-ret));
		return ret;
	}
	fill_pin(pin, &info);
	return 0;
}

int gdri_gdrdrv_region_callback_flag(struct gdri_backend_session *session, struct gdri_pin *pin,
				     int *flag)
{
	struct gdrdrv_get_cb_flag request = { .handle = pin->driver_handle };
	int ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_GET_CB_FLAG, &request);

	if (ret < 0) {
		gdri_error(&session->config->log, "gdrdrv: callback flag of handle 0x%x: %s",
			   pin->driver_handle, strerror(-ret));
		return ret;
	}
	*flag = request.flag != 0;
	return 0;
}
