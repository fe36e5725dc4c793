/* SPDX-License-Identifier: MIT */
/* A model of the kernel module behind /dev/gdrdrv. */
#include "scripted_gdrdrv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gdrdrv.h"
#include "scripted_sys.h"

struct scripted_gdrdrv scripted_gdrdrv;
static struct scripted_gdrdrv *const module = &scripted_gdrdrv;

static struct scripted_gdrdrv_pin *find_pin(uint64_t handle)
{
	for (int i = 0; i < SCRIPTED_GDRDRV_PINS; i++)
		if (module->pins[i].used && module->pins[i].handle == handle)
			return &module->pins[i];
	return NULL;
}

int scripted_gdrdrv_live_pins(void)
{
	int count = 0;

	for (int i = 0; i < SCRIPTED_GDRDRV_PINS; i++)
		count += module->pins[i].used;
	return count;
}

static int pin_range(uint64_t addr, uint64_t size, __u64 *handle)
{
	const uint64_t mask = 0xffff;

	if (module->pin_error || addr == 0)
		return -(module->pin_error ? module->pin_error : EINVAL);
	for (int i = 0; i < SCRIPTED_GDRDRV_PINS; i++) {
		struct scripted_gdrdrv_pin *pin = &module->pins[i];

		if (pin->used)
			continue;
		*pin = (struct scripted_gdrdrv_pin){
			.used = true,
			.handle = module->next_handle,
			.va = addr & ~mask,
		};
		pin->size = ((addr + size + mask) & ~mask) - pin->va;
		module->next_handle += pin->size / (uint64_t)sysconf(_SC_PAGESIZE);
		*handle = pin->handle;
		return 0;
	}
	return -ENOMEM;
}

static int get_info(struct gdrdrv_get_info *info)
{
	const struct scripted_gdrdrv_pin *pin = find_pin(info->handle);

	if (!pin)
		return -EINVAL;
	info->va = pin->va;
	info->mapped_size = pin->size;
	info->page_size = 65536;
	info->tsc_khz = 1000;
	info->tm_cycles = 42;
	info->mapped = pin->type != GDRDRV_MAPPING_TYPE_NONE;
	info->wc_mapping = pin->type == GDRDRV_MAPPING_TYPE_WC;
	return 0;
}

/* The newer layout is the older one, but for its last words. */
static int get_info_v2(struct gdrdrv_get_info_v2 *info)
{
	const struct scripted_gdrdrv_pin *pin = find_pin(info->handle);
	int ret = get_info((struct gdrdrv_get_info *)info);

	if (ret == 0)
		info->mapping_type = pin->type;
	return ret;
}

static int request_type(const struct gdrdrv_req_mapping_type *request)
{
	struct scripted_gdrdrv_pin *pin = find_pin(request->handle);

	if (!pin || module->request_error)
		return -(module->request_error ? module->request_error : EINVAL);
	pin->asked_type = request->mapping_type;
	return 0;
}

static int unpin(uint64_t handle)
{
	struct scripted_gdrdrv_pin *pin = find_pin(handle);

	if (!pin)
		return -EINVAL;
	pin->used = false;
	return 0;
}

static int get_version(struct gdrdrv_get_version *version)
{
	if (module->version_error)
		return -module->version_error;
	version->gdrdrv_version = module->version;
	version->minimum_gdr_api_version = module->minimum_api;
	return 0;
}

static int answer_ioctl(const struct scripted_call *call)
{
	struct gdrdrv_pin_buffer *v1 = call->arg;
	struct gdrdrv_pin_buffer_v2 *v2 = call->arg;

	if (call->request == GDRDRV_IOC_GET_VERSION)
		return get_version(call->arg);
	if (call->request == GDRDRV_IOC_PIN_BUFFER)
		return pin_range(v1->addr, v1->size, &v1->handle);
	if (call->request == GDRDRV_IOC_UNPIN_BUFFER)
		return unpin(((struct gdrdrv_unpin_buffer *)call->arg)->handle);
	if (call->request == GDRDRV_IOC_GET_INFO)
		return get_info(call->arg);
	if (call->request == GDRDRV_IOC_GET_CB_FLAG) {
		((struct gdrdrv_get_cb_flag *)call->arg)->flag = module->callback_flag;
		return 0;
	}
	if (module->version >= 0x00020004 && call->request == GDRDRV_IOC_GET_INFO_V2)
		return get_info_v2(call->arg);
	if (module->version >= 0x00020005 && call->request == GDRDRV_IOC_PIN_BUFFER_V2)
		return v2->flags & ~1u ? -EINVAL :
					 pin_range(v2->addr, v2->size, &v2->handle);
	if (module->version >= 0x00020005 && call->request == GDRDRV_IOC_REQ_MAPPING_TYPE)
		return request_type(call->arg);
	if (module->version >= 0x00020005 && call->request == GDRDRV_IOC_GET_ATTR)
		return 0;
	return -ENOTTY;
}

static int answer_mmap(const struct scripted_call *call)
{
	const uint64_t handle = (uint64_t)(call->offset / sysconf(_SC_PAGESIZE));
	struct scripted_gdrdrv_pin *pin = find_pin(handle);

	if (module->mmap_error)
		return -module->mmap_error;
	if (!pin || pin->va % 65536 || call->length > pin->size)
		return -EINVAL;
	pin->type = module->type;
	if (pin->asked_type && !module->type_is_forced)
		pin->type = pin->asked_type;
	return 0;
}

static int answer_call(void *device, const struct scripted_call *call)
{
	(void)device;
	if (call->fd != 0 && call->fd == module->foreign_fd)
		return -EACCES;
	switch (call->op) {
	case SCRIPTED_OPEN:
		return strcmp(call->path, "/dev/gdrdrv") == 0 ? -module->open_error : -ENOENT;
	case SCRIPTED_IOCTL:
		return answer_ioctl(call);
	case SCRIPTED_MMAP:
		return answer_mmap(call);
	default:
		return 0;
	}
}

void scripted_gdrdrv_start(uint32_t minor)
{
	*module = (struct scripted_gdrdrv){
		.version = 0x00020000 | minor,
		.minimum_api = 0x00020000,
		.type = GDRDRV_MAPPING_TYPE_WC,
	};
	scripted_sys_device(answer_call, NULL);
}
