/* SPDX-License-Identifier: MIT */
/* Back end nvrm: maps GPU memory through NVIDIA's own resource manager, with no module of ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "os/cuda.h"
#include "os/sys.h"
#include "rm/memory.h"
#include "rm/range.h"

/*
 * The descriptor behind gdr_t is a duplicate of the client's.  2.6's sanity
 * program swaps it for that of another process; the resource manager then
 * refuses our client, and so do pin and map.
 */
struct nvrm_session {
	struct gdri_backend_session base;
	struct gdri_cuda cuda;
	struct gdri_rm_client *client;
	int fd;
};

struct nvrm_pin {
	struct gdri_rm_range range;
	struct gdri_rm_window window;	/* while mapped */
};

static struct nvrm_session *to_nvrm(struct gdri_backend_session *session)
{
	return (struct nvrm_session *)session;
}

/* The MPS daemon reads from a pipe; opening it for writing succeeds only while one does. */
static bool mps_is_running(void)
{
	const char *directory = secure_getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/control", directory ? directory : "/tmp/nvidia-mps");
	fd = gdri_os_open(path, O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		return false;
	gdri_os_close(fd);
	return true;
}

static bool runs_under_wsl(void)
{
	int fd = gdri_os_open("/dev/dxg", O_PATH);

	if (fd < 0)
		return false;
	gdri_os_close(fd);
	return true;
}

/* Places where the interface was not tried; GDRCOPY_BACKEND=nvrm overrides. */
static int refuse_environment(struct gdri_reason *why)
{
	const char *place = runs_under_wsl() ? "WSL (/dev/dxg exists)" :
			    mps_is_running() ? "MPS (its control pipe is alive)" : NULL;

	if (!place)
		return 0;
	gdri_backend_reason(why, "runs under %s, where nvrm was not tried; "
			    "GDRCOPY_BACKEND=nvrm tries it all the same", place);
	return -EOPNOTSUPP;
}

static int open_client(struct nvrm_session *session, bool forced, struct gdri_reason *why)
{
	struct gdri_rm_failure failure;
	char text[128];
	int rc;

	rc = gdri_rm_client_acquire(&session->client, &failure);
	if (rc) {
		gdri_backend_reason(why, "%s; nvrm needs NVIDIA's driver (580.159.04 is tested) "
				    "and access to /dev/nvidia*",
				    gdri_rm_failure_text(&failure, text, sizeof(text)));
		return rc;
	}
	if (session->client->conf_compute && !forced) {
		gdri_backend_reason(why, "confidential computing is on, where the CPU cannot see "
				    "GPU memory; GDRCOPY_BACKEND=nvrm tries it all the same");
		gdri_rm_client_release(session->client);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int open_descriptor(struct nvrm_session *session, struct gdri_reason *why)
{
	int rc;

	session->fd = gdri_os_dup(session->client->fd);
	if (session->fd < 0) {
		gdri_backend_reason(why, "dup of /dev/nvidiactl: errno %d; raise ulimit -n",
				    -session->fd);
		return session->fd;
	}
	rc = gdri_rm_client_check_fd(session->client, session->fd);
	if (rc) {
		gdri_backend_reason(why, "the resource manager of driver %s answers a query of our "
				    "own client with an error; use a driver of branch 580",
				    session->client->version);
		gdri_os_close(session->fd);
	}
	return rc;
}

static int open_nvrm(const struct gdri_config *config, struct gdri_backend_session **session,
		     int *fd, struct gdri_reason *why)
{
	const bool forced = config->backend == GDRI_BACKEND_NVRM;
	struct nvrm_session *nvrm;
	int rc;

	rc = forced ? 0 : refuse_environment(why);
	if (rc)
		return rc;
	nvrm = calloc(1, sizeof(*nvrm));
	if (!nvrm) {
		gdri_backend_reason(why, "no memory for a session");
		return -ENOMEM;
	}
	rc = open_client(nvrm, forced, why);
	if (rc)
		goto err_free;
	rc = gdri_os_cuda_load(&nvrm->cuda);
	if (rc) {
		gdri_backend_reason(why, "load of libcuda.so.1: errno %d; install the CUDA driver "
				    "library of driver %s", -rc, nvrm->client->version);
		goto err_release;
	}
	rc = open_descriptor(nvrm, why);
	if (rc)
		goto err_unload;
	nvrm->base.ops = &gdri_backend_nvrm;
	nvrm->base.config = config;
	*session = &nvrm->base;
	*fd = nvrm->fd;
	return 0;
err_unload:
	gdri_os_cuda_unload(&nvrm->cuda);
err_release:
	gdri_rm_client_release(nvrm->client);
err_free:
	free(nvrm);
	return rc;
}

static int close_nvrm(struct gdri_backend_session *session)
{
	struct nvrm_session *nvrm = to_nvrm(session);
	int rc = gdri_os_close(nvrm->fd);
	int release_rc = gdri_rm_client_release(nvrm->client);

	gdri_os_cuda_unload(&nvrm->cuda);
	free(nvrm);
	return rc ? rc : release_rc;
}

static int get_attribute(struct gdri_backend_session *session, int attr, int *value)
{
	(void)session;
	*value = attr == GDR_ATTR_USE_PERSISTENT_MAPPING;
	return 0;
}

static int check_descriptor(const struct nvrm_session *nvrm, const char *call)
{
	if (gdri_rm_client_check_fd(nvrm->client, *nvrm->base.fd) == 0)
		return 0;
	gdri_error(&nvrm->base.config->log, "%s: descriptor %d behind gdr_t is not this session's; "
		   "open a session of your own", call, *nvrm->base.fd);
	return -EACCES;
}

static int check_flags(const struct gdri_log *log, uint32_t flags)
{
	if (flags & ~(uint32_t)GDR_PIN_FLAG_FORCE_PCIE) {
		gdri_error(log, "pin: unknown flags %#x; give GDR_PIN_FLAG_*", flags);
		return -EINVAL;
	}
	if (flags & GDR_PIN_FLAG_FORCE_PCIE) {
		gdri_error(log, "pin: nvrm cannot force PCIe mappings; pin with flags 0");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Slices of a GPU, whose mappings were not tried; known once the device is attached. */
static int check_device(const struct nvrm_session *nvrm, const char *call,
			const struct gdri_rm_device *device)
{
	const struct gdri_config *config = nvrm->base.config;
	const char *mode = device->virtualization == GDRI_RM_VIRTUALIZATION_VGX_GUEST ? "vGPU" :
			   device->smc_mode == GDRI_RM_SMC_MODE_ENABLED ? "MIG" : NULL;

	if (!mode || config->backend == GDRI_BACKEND_NVRM)
		return 0;
	gdri_error(&config->log, "%s: the GPU runs in %s mode, where nvrm was not tried; "
		   "GDRCOPY_BACKEND=nvrm tries it all the same", call, mode);
	return -EOPNOTSUPP;
}

static void fill_pin(struct nvrm_pin *record, uint64_t addr, uint64_t size, struct gdri_pin *pin)
{
	const uint64_t mask = GDRI_GPU_PAGE_SIZE - 1;

	*pin = (struct gdri_pin){
		.va = addr & ~mask,
		.size = ((addr + size + mask) & ~mask) - (addr & ~mask),
		.addr = addr,
		.length = size,
		.page_size = GDRI_GPU_PAGE_SIZE,
		.driver_handle = record->range.object,
		.priv = record,
	};
}

static int pin_nvrm(struct gdri_backend_session *session, uint64_t addr, size_t size,
		    uint32_t flags, uint64_t p2p_token, uint32_t va_space, struct gdri_pin *pin)
{
	struct nvrm_session *nvrm = to_nvrm(session);
	const struct gdri_log *log = &session->config->log;
	struct nvrm_pin *record;
	int rc;

	(void)p2p_token;
	(void)va_space;
	rc = check_flags(log, flags);
	if (rc == 0)
		rc = check_descriptor(nvrm, "pin");
	if (rc)
		return rc;
	record = calloc(1, sizeof(*record));
	if (!record) {
		gdri_error(log, "pin: no memory for the record of a pin");
		return -ENOMEM;
	}
	rc = gdri_rm_range_acquire(nvrm->client, &nvrm->cuda, addr, size, log, &record->range);
	if (rc)
		goto err_free;
	rc = check_device(nvrm, "pin", record->range.device);
	if (rc)
		goto err_release;
	fill_pin(record, addr, size, pin);
	return 0;
err_release:
	gdri_rm_range_release(&record->range);
err_free:
	free(record);
	return rc;
}

static int unpin_nvrm(struct gdri_backend_session *session, struct gdri_pin *pin)
{
	struct nvrm_pin *record = pin->priv;
	int rc = gdri_rm_range_release(&record->range);

	(void)session;
	free(record);
	return rc;
}

static gdr_mapping_type_t type_of_caching(uint32_t caching)
{
	switch (caching) {
	case GDRI_RM_CACHING_WRITE_COMBINED:
		return GDR_MAPPING_TYPE_WC;
	case GDRI_RM_CACHING_CACHED:
	case GDRI_RM_CACHING_WRITE_BACK:
		return GDR_MAPPING_TYPE_CACHING;
	default:
		return GDR_MAPPING_TYPE_DEVICE;
	}
}

/* The window starts at pin->va, which lies before the pinned byte by at most one GPU page. */
static int map_window(const struct nvrm_session *nvrm, const struct gdri_pin *pin, size_t size)
{
	const struct gdri_log *log = &nvrm->base.config->log;
	struct nvrm_pin *record = pin->priv;
	const struct gdri_rm_range *range = &record->range;
	const uint64_t offset = range->offset - (pin->addr - pin->va);
	struct gdri_rm_failure failure;
	char text[128];
	int rc;

	if (size > range->object_size - offset) {
		gdri_error(log, "map: size %zu leaves the memory object, which has %llu bytes from "
			   "the pinned page on", size,
			   (unsigned long long)(range->object_size - offset));
		return -EINVAL;
	}
	rc = gdri_rm_memory_map(range->client, range->device, range->object, offset, size,
				&record->window, &failure);
	if (rc)
		gdri_error(log, "map: nvrm: %s (%zu bytes); check ulimit -n and the space left in "
			   "BAR1 (nvidia-smi -q -d MEMORY)",
			   gdri_rm_failure_text(&failure, text, sizeof(text)), size);
	return rc;
}

static int map_nvrm(struct gdri_backend_session *session, struct gdri_pin *pin, size_t size,
		    int flags, struct gdri_mapping *mapping)
{
	struct nvrm_session *nvrm = to_nvrm(session);
	struct nvrm_pin *record = pin->priv;
	int rc;

	(void)flags;	/* the driver has one type for a GPU; core compares */
	rc = check_descriptor(nvrm, "map");
	if (rc == 0)
		rc = map_window(nvrm, pin, size);
	if (rc == 0)
		*mapping = (struct gdri_mapping){
			.base = record->window.base,
			.length = size,
			.type = type_of_caching(record->window.caching),
			.is_populated = true,	/* remap_pfn_range in NVIDIA's nv-mmap.c */
		};
	return rc;
}

static int unmap_nvrm(struct gdri_backend_session *session, struct gdri_pin *pin,
		      struct gdri_mapping *mapping)
{
	struct nvrm_pin *record = pin->priv;
	const struct gdri_rm_range *range = &record->range;

	(void)session;
	(void)mapping;
	return gdri_rm_memory_unmap(range->client, range->device, range->object, &record->window);
}

static void get_memory(struct gdri_backend_session *session, const struct gdri_pin *pin,
		       struct gdri_backend_memory *memory)
{
	const struct nvrm_pin *record = pin ? pin->priv : NULL;

	*memory = (struct gdri_backend_memory){
		.client = to_nvrm(session)->client,
		.range = record ? &record->range : NULL,
	};
}

static int export_memory(struct gdri_backend_session *session, const struct gdri_pin *pin, int *fd)
{
	const struct nvrm_pin *record = pin->priv;

	return gdri_rm_range_export(&record->range, &session->config->log, fd);
}

static int find_device(const struct nvrm_session *nvrm, int ordinal,
		       struct gdri_rm_device **device)
{
	struct gdri_rm_failure failure;
	char text[128];
	int rc;

	rc = gdri_rm_device_of_ordinal(nvrm->client, &nvrm->cuda, ordinal, device, &failure);
	if (rc == 0)
		return check_device(nvrm, "import", *device);
	gdri_error(&nvrm->base.config->log, "import: nvrm: device %d: %s", ordinal,
		   gdri_rm_failure_text(&failure, text, sizeof(text)));
	return rc;
}

static int import_memory(struct gdri_backend_session *session,
			 const struct gdri_backend_share *share, int fd, struct gdri_pin *pin)
{
	struct nvrm_session *nvrm = to_nvrm(session);
	const struct gdri_log *log = &session->config->log;
	struct nvrm_pin *record = calloc(1, sizeof(*record));
	int rc;

	if (!record) {
		gdri_error(log, "import: no memory for the record of a pin");
		return -ENOMEM;
	}
	record->range = (struct gdri_rm_range){
		.object_size = share->object_size,
		.offset = share->offset,
		.length = share->length,
	};
	rc = find_device(nvrm, share->device, &record->range.device);
	if (rc == 0)
		rc = gdri_rm_range_import(nvrm->client, fd, log, &record->range);
	if (rc) {
		free(record);
		return rc;
	}
	fill_pin(record, GDRI_BACKEND_IMPORT_BASE + share->offset, share->length, pin);
	return 0;
}

const struct gdri_backend_ops gdri_backend_nvrm = {
	.id = GDRI_BACKEND_NVRM,
	.name = "nvrm",
	.open = open_nvrm,
	.close = close_nvrm,
	.get_version = gdri_backend_version_2_6,
	.get_attribute = get_attribute,
	.pin = pin_nvrm,
	.unpin = unpin_nvrm,
	.map = map_nvrm,
	.unmap = unmap_nvrm,
	.get_callback_flag = gdri_backend_no_callback_flag,
	.refresh = gdri_backend_no_refresh,
	.get_memory = get_memory,
	.export_memory = export_memory,
	.import_memory = import_memory,
};
