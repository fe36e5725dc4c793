/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The requests of /dev/gdrdrv: a table, and one function for each. */
#include "internal.h"

#include <linux/string.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86
#include <asm/tsc.h>
#endif

union arguments {
	struct gdrdrv_pin_buffer pin;
	struct gdrdrv_pin_buffer_v2 pin_v2;
	struct gdrdrv_unpin_buffer unpin;
	struct gdrdrv_get_cb_flag cb_flag;
	struct gdrdrv_get_info info;
	struct gdrdrv_get_info_v2 info_v2;
	struct gdrdrv_get_attr attr;
	struct gdrdrv_req_mapping_type mapping_type;
	struct gdrdrv_get_version version;
};

static int pin_buffer(struct gdrdrv_session *session, union arguments *args)
{
	struct gdrdrv_pin_request request = {
		.addr = args->pin.addr,
		.size = args->pin.size,
		.p2p_token = args->pin.p2p_token,
		.va_space = args->pin.va_space,
	};

	/* Persistent calls take no tokens: ignoring them would pin something else. */
	if (gdrdrv_persistent && (request.p2p_token || request.va_space))
		return -EINVAL;
	return gdrdrv_region_pin(session, &request, &args->pin.handle);
}

static void undo_pin_buffer(struct gdrdrv_session *session, union arguments *args)
{
	gdrdrv_region_unpin(session, args->pin.handle);
}

static int pin_buffer_v2(struct gdrdrv_session *session, union arguments *args)
{
	struct gdrdrv_pin_request request = {
		.addr = args->pin_v2.addr,
		.size = args->pin_v2.size,
		.flags = args->pin_v2.flags,
	};

	if (request.flags & ~(u32)GDRDRV_PIN_FLAG_FORCE_PCIE)
		return -EINVAL;
	if (request.flags && !gdrdrv_pages_can_force_pcie())
		return -EINVAL;
	return gdrdrv_region_pin(session, &request, &args->pin_v2.handle);
}

static void undo_pin_buffer_v2(struct gdrdrv_session *session, union arguments *args)
{
	gdrdrv_region_unpin(session, args->pin_v2.handle);
}

static int unpin_buffer(struct gdrdrv_session *session, union arguments *args)
{
	return gdrdrv_region_unpin(session, args->unpin.handle);
}

static int get_cb_flag(struct gdrdrv_session *session, union arguments *args)
{
	struct gdrdrv_region *region = gdrdrv_region_find(session, args->cb_flag.handle);

	if (!region)
		return -EINVAL;
	mutex_lock(&region->lock);
	args->cb_flag.flag = region->state == GDRDRV_REVOKED;
	mutex_unlock(&region->lock);
	gdrdrv_region_put(region);
	return 0;
}

static u32 counter_khz(void)
{
#ifdef CONFIG_X86
	return tsc_khz;
#else
	return 0;
#endif
}

static int get_info_v2(struct gdrdrv_session *session, union arguments *args)
{
	struct gdrdrv_region *region = gdrdrv_region_find(session, args->info_v2.handle);

	if (!region)
		return -EINVAL;
	args->info_v2 = (struct gdrdrv_get_info_v2){
		.handle = region->handle,
		.va = region->va,
		.mapped_size = region->size,
		.page_size = GDRDRV_GPU_PAGE_SIZE,
		.tsc_khz = counter_khz(),
		.tm_cycles = counter_khz() ? region->cycles : 0,
	};
	mutex_lock(&region->lock);
	args->info_v2.mapping_type = region->type;
	mutex_unlock(&region->lock);
	gdrdrv_region_put(region);
	return 0;
}

static int get_info(struct gdrdrv_session *session, union arguments *args)
{
	struct gdrdrv_get_info_v2 now;
	int ret = get_info_v2(session, args);

	if (ret)
		return ret;
	now = args->info_v2;
	args->info = (struct gdrdrv_get_info){
		.handle = now.handle,
		.va = now.va,
		.mapped_size = now.mapped_size,
		.page_size = now.page_size,
		.tsc_khz = now.tsc_khz,
		.tm_cycles = now.tm_cycles,
		.mapped = now.mapping_type != GDRDRV_MAPPING_TYPE_NONE,
		.wc_mapping = now.mapping_type == GDRDRV_MAPPING_TYPE_WC,
	};
	return 0;
}

static int get_attr(struct gdrdrv_session *session, union arguments *args)
{
	switch (args->attr.attr) {
	case GDRDRV_ATTR_USE_PERSISTENT_MAPPING:
		args->attr.val = gdrdrv_persistent;
		return 0;
	case GDRDRV_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE:
		args->attr.val = gdrdrv_pages_can_force_pcie();
		return 0;
	default:
		return -EINVAL;
	}
}

static int request_mapping_type(struct gdrdrv_session *session, union arguments *args)
{
	struct gdrdrv_region *region;
	int ret;

	region = gdrdrv_region_find(session, args->mapping_type.handle);
	if (!region)
		return -EINVAL;
	ret = gdrdrv_map_request(region, args->mapping_type.mapping_type);
	gdrdrv_region_put(region);
	return ret;
}

static int get_version(struct gdrdrv_session *session, union arguments *args)
{
	args->version.gdrdrv_version = GDRDRV_VERSION;
	args->version.minimum_gdr_api_version = GDRDRV_MINIMUM_API_VERSION;
	return 0;
}

/* Sizes are those of the structs: the ones inside most numbers say something else. */
static const struct request {
	unsigned int number;
	size_t in, out;
	int (*serve)(struct gdrdrv_session *session, union arguments *args);
	/* Takes the effect back when the answer cannot be written. */
	void (*undo)(struct gdrdrv_session *session, union arguments *args);
} requests[] = {
	{ GDRDRV_IOC_PIN_BUFFER, sizeof(struct gdrdrv_pin_buffer),
	  sizeof(struct gdrdrv_pin_buffer), pin_buffer, undo_pin_buffer },
	{ GDRDRV_IOC_PIN_BUFFER_V2, sizeof(struct gdrdrv_pin_buffer_v2),
	  sizeof(struct gdrdrv_pin_buffer_v2), pin_buffer_v2, undo_pin_buffer_v2 },
	{ GDRDRV_IOC_UNPIN_BUFFER, sizeof(struct gdrdrv_unpin_buffer), 0, unpin_buffer },
	{ GDRDRV_IOC_GET_CB_FLAG, sizeof(struct gdrdrv_get_cb_flag),
	  sizeof(struct gdrdrv_get_cb_flag), get_cb_flag },
	{ GDRDRV_IOC_GET_INFO, sizeof(struct gdrdrv_get_info),
	  sizeof(struct gdrdrv_get_info), get_info },
	{ GDRDRV_IOC_GET_INFO_V2, sizeof(struct gdrdrv_get_info_v2),
	  sizeof(struct gdrdrv_get_info_v2), get_info_v2 },
	{ GDRDRV_IOC_GET_ATTR, sizeof(struct gdrdrv_get_attr),
	  sizeof(struct gdrdrv_get_attr), get_attr },
	{ GDRDRV_IOC_REQ_MAPPING_TYPE, sizeof(struct gdrdrv_req_mapping_type), 0,
	  request_mapping_type },
	{ GDRDRV_IOC_GET_VERSION, 0, sizeof(struct gdrdrv_get_version), get_version },
};

static const struct request *find_request(unsigned int number)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].number == number)
			return &requests[i];
	return NULL;
}

long gdrdrv_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gdrdrv_session *session = file->private_data;
	void __user *user = (void __user *)arg;
	const struct request *request;
	union arguments args;
	int ret;

	if (_IOC_TYPE(cmd) != GDRDRV_IOCTL_TYPE)
		return -EINVAL;
	if (!session)
		return -EIO;
	if (!gdrdrv_session_is_owner(session))
		return -EACCES;
	request = find_request(cmd);
	if (!request)
		return -ENOTTY;
	memset(&args, 0, sizeof(args));
	if (copy_from_user(&args, user, request->in))
		return -EFAULT;
	ret = request->serve(session, &args);
	if (ret || !request->out || !copy_to_user(user, &args, request->out))
		return ret;
	if (request->undo)
		request->undo(session, &args);
	return -EFAULT;
}
