/* SPDX-License-Identifier: MIT */
/* Back end gdrdrv: opens /dev/gdrdrv and settles what the loaded module can do. */
#include "backend/gdrdrv/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "os/sys.h"

#define MAJOR(version) ((version) >> 16)
#define MINOR(version) ((version) & 0xffff)

static int ask_module(int fd, unsigned long request, void *arg)
{
	int ret = gdri_os_ioctl(fd, request, arg);

	return ret == -GDRI_OS_ENOTSUPP ? -EOPNOTSUPP : ret;
}

int gdri_gdrdrv_module_ask(struct gdri_backend_session *session, unsigned long request, void *arg)
{
	return ask_module(*session->fd, request, arg);
}

static const char *remedy_for_open(int error)
{
	switch (error) {
	case ENOENT:
		return "no device node: load the module (modprobe gdrdrv); in a container, pass "
		       "the node in (--device=" GDRDRV_DEVICE_PATH ")";
	case EACCES:
		return "no permission for the node: join its group or widen its mode";
	case EPERM:
		return "the container's device rules forbid the node: start it with --device="
		       GDRDRV_DEVICE_PATH;
	case ENXIO:
	case ENODEV:
		return "the node names a driver that is not loaded: modprobe gdrdrv, or remove the "
		       "stale node and make it anew with the major number from /proc/devices";
	case EMFILE:
	case ENFILE:
		return "out of file descriptors: raise ulimit -n";
	default:
		return "see dmesg";
	}
}

static int open_device(struct gdri_reason *why)
{
	int fd = gdri_os_open(GDRDRV_DEVICE_PATH, O_RDWR);

	if (fd < 0)
		gdri_backend_reason(why, "open %s: %s (%d): %s", GDRDRV_DEVICE_PATH, strerror(-fd),
				    -fd, remedy_for_open(-fd));
	return fd;
}

static int check_version(int fd, uint32_t *module_version, struct gdri_reason *why)
{
	struct gdrdrv_get_version version = { 0 };
	int ret = ask_module(fd, GDRDRV_IOC_GET_VERSION, &version);

	if (ret < 0) {
		bool foreign = ret == -ENOTTY || ret == -EINVAL;

		gdri_backend_reason(why, "version of %s: %s (%d): %s", GDRDRV_DEVICE_PATH,
				    strerror(-ret), -ret, foreign ?
				    "the node is another driver's: remove it and load gdrdrv" :
				    "see dmesg");
		return ret;
	}
	if (version.gdrdrv_version < MINIMUM_GDRDRV_VERSION) {
		gdri_backend_reason(why, "module gdrdrv %u.%u is too old: load %u.%u or "
				    "newer", MAJOR(version.gdrdrv_version),
				    MINOR(version.gdrdrv_version),
				    MINIMUM_GDRDRV_MAJOR_VERSION, MINIMUM_GDRDRV_MINOR_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (version.minimum_gdr_api_version > GDR_API_VERSION) {
		gdri_backend_reason(why, "module gdrdrv %u.%u wants a library of version %u.%u or "
				    "newer, this is %u.%u: update libgdrapi",
				    MAJOR(version.gdrdrv_version), MINOR(version.gdrdrv_version),
				    MAJOR(version.minimum_gdr_api_version),
				    MINOR(version.minimum_gdr_api_version),
				    GDR_API_MAJOR_VERSION, GDR_API_MINOR_VERSION);
		return -EPROTONOSUPPORT;
	}
	*module_version = version.gdrdrv_version;
	return 0;
}

/* The only place that knows which version brought which request. */
static struct gdrdrv_features features_of(uint32_t version)
{
	bool since_2_4 = version >= 0x00020004;
	bool since_2_5 = version >= 0x00020005;

	return (struct gdrdrv_features){
		.info_v2 = since_2_4,
		.attributes = since_2_5,
		.pin_v2 = since_2_5,
		.mapping_request = since_2_5,
	};
}

static unsigned host_page_shift(void)
{
	return (unsigned)__builtin_ctzll(gdri_os_page_size());
}

static int open_session(const struct gdri_config *config, struct gdri_backend_session **session,
			int *fd, struct gdri_reason *why)
{
	struct gdrdrv_session *opened;
	uint32_t version;
	int device, ret;

	device = open_device(why);
	if (device < 0)
		return device;
	ret = check_version(device, &version, why);
	if (ret < 0)
		goto err_close;
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		gdri_backend_reason(why, "out of memory");
		ret = -ENOMEM;
		goto err_close;
	}
	opened->base.ops = &gdri_backend_gdrdrv;
	opened->base.config = config;
	opened->base.fd = &opened->own_fd;
	opened->own_fd = device;
	opened->page_shift = host_page_shift();
	opened->has = features_of(version);
	*session = &opened->base;
	*fd = device;
	return 0;

err_close:
	gdri_os_close(device);
	return ret;
}

/* The module releases whatever is still pinned when its last descriptor goes. */
static int close_session(struct gdri_backend_session *session)
{
	struct gdrdrv_session *closing = gdrdrv_session_of(session);
	int ret = gdri_os_close(closing->own_fd);

	if (ret < 0)
		gdri_error(&session->config->log, "gdrdrv: close of descriptor %d: %s: someone "
			   "else closed it", closing->own_fd, strerror(-ret));
	free(closing);
	return ret;
}

static int get_version(struct gdri_backend_session *session, uint32_t *version)
{
	struct gdrdrv_get_version answer = { 0 };
	int ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_GET_VERSION, &answer);

	if (ret < 0) {
		gdri_error(&session->config->log, "gdrdrv: version: %s", strerror(-ret));
		return ret;
	}
	*version = answer.gdrdrv_version;
	return 0;
}

static int get_attribute(struct gdri_backend_session *session, int attr, int *value)
{
	struct gdrdrv_get_attr request = { .attr = (uint32_t)attr };
	int ret;

	/* The third one is about this library; modules before 2.5 pin without persistence. */
	if (attr == GDR_ATTR_USING_DMA_BUF_MMAP || !gdrdrv_session_of(session)->has.attributes) {
		*value = 0;
		return 0;
	}
	ret = gdri_gdrdrv_module_ask(session, GDRDRV_IOC_GET_ATTR, &request);
	if (ret < 0) {
		gdri_error(&session->config->log, "gdrdrv: attribute %d: %s", attr, strerror(-ret));
		return ret;
	}
	*value = (int)request.val;
	return 0;
}

const struct gdri_backend_ops gdri_backend_gdrdrv = {
	.id = GDRI_BACKEND_GDRDRV,
	.name = "gdrdrv",
	.open = open_session,
	.close = close_session,
	.get_version = get_version,
	.get_attribute = get_attribute,
	.pin = gdri_gdrdrv_region_pin,
	.unpin = gdri_gdrdrv_region_unpin,
	.map = gdri_gdrdrv_region_map,
	.unmap = gdri_gdrdrv_region_unmap,
	.get_callback_flag = gdri_gdrdrv_region_callback_flag,
	.refresh = gdri_gdrdrv_region_refresh,
};
