/* SPDX-License-Identifier: MIT */
/* Back end emu: maps the memory of the emulated CUDA driver. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "backend/emu/session.h"
#include "core/log.h"
#include "os/sys.h"

static const struct gdri_log *log_of(const struct gdri_backend_session *session)
{
	return &session->config->log;
}

static const struct gdrcopy_emu_entry *find_entry(void *library)
{
	const struct gdrcopy_emu_entry *entry;
	gdrcopy_emu_entry_fn get;

	*(void **)&get = dlsym(library, GDRCOPY_EMU_ENTRY);
	entry = get ? get() : NULL;
	if (!entry || entry->abi != GDRCOPY_EMU_ABI || entry->size != sizeof(*entry))
		return NULL;
	return entry;
}

/* Loads libcuda and makes sure that it is the emulated one of this build. */
static int load_driver(struct emu_session *session, struct gdri_reason *why)
{
	const char *problem;

	session->library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!session->library) {
		gdri_backend_reason(why, "no libcuda.so.1 found (%d); "
				    "set LD_LIBRARY_PATH=build/emu", ENOENT);
		return -ENOENT;
	}
	session->entry = find_entry(session->library);
	if (!session->entry) {
		gdri_backend_reason(why, "libcuda.so.1 is not this build's emulated driver; "
				    "set LD_LIBRARY_PATH=build/emu");
		goto err_unload;
	}
	problem = session->entry->problem();
	if (problem) {
		gdri_backend_reason(why, "%s", problem);
		goto err_unload;
	}
	return 0;

err_unload:
	dlclose(session->library);
	return -ENODEV;
}

static int create_identity(struct emu_session *session)
{
	struct stat info;

	session->fd = memfd_create("gdrcopy-emu-session", MFD_CLOEXEC);
	if (session->fd < 0)
		return -errno;
	if (fstat(session->fd, &info) != 0) {
		int error = -errno;

		gdri_os_close(session->fd);
		return error;
	}
	session->device = info.st_dev;
	session->inode = info.st_ino;
	return 0;
}

static int emu_open(const struct gdri_config *config, struct gdri_backend_session **session,
		    int *fd, struct gdri_reason *why)
{
	struct emu_session *opened = calloc(1, sizeof(*opened));
	int ret;

	if (!opened) {
		gdri_backend_reason(why, "out of memory");
		return -ENOMEM;
	}
	ret = load_driver(opened, why);
	if (ret != 0)
		goto err_free;
	ret = create_identity(opened);
	if (ret != 0) {
		gdri_backend_reason(why, "memfd_create failed (%d); raise ulimit -n", -ret);
		goto err_unload;
	}
	opened->base.ops = &gdri_backend_emu;
	opened->base.config = config;
	*session = &opened->base;
	*fd = opened->fd;
	return 0;

err_unload:
	dlclose(opened->library);
err_free:
	free(opened);
	return ret;
}

static int emu_close(struct gdri_backend_session *base)
{
	struct emu_session *session = session_of(base);
	int ret = gdri_os_close(session->fd);

	dlclose(session->library);
	free(session);
	return ret;
}

static int check_identity(const struct emu_session *session)
{
	struct stat info;

	if (fstat(*session->base.fd, &info) == 0 && info.st_dev == session->device &&
	    info.st_ino == session->inode)
		return 0;
	gdri_error(log_of(&session->base), "descriptor %d does not belong to this session; "
		   "open a session in each process", *session->base.fd);
	return -EACCES;
}

int gdri_emu_check_injected(const struct emu_session *session, const char *step)
{
	int error = session->entry->injected(step);

	if (error != 0)
		gdri_error(log_of(&session->base), "%s: error %d injected by GDRCOPY_EMU", step,
			   error);
	return -error;
}

static int emu_get_attribute(struct gdri_backend_session *base, int attr, int *value)
{
	switch (attr) {
	case GDR_ATTR_USE_PERSISTENT_MAPPING:
		*value = 1;
		return 0;
	case GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE:
		*value = session_of(base)->entry->coherent();
		return 0;
	case GDR_ATTR_USING_DMA_BUF_MMAP:
		*value = 0;
		return 0;
	default:
		return -EINVAL;
	}
}

static int check_flags(const struct emu_session *session, uint32_t flags)
{
	if (flags & ~(uint32_t)GDR_PIN_FLAG_FORCE_PCIE) {
		gdri_error(log_of(&session->base), "pin flags %#x are unknown; use "
			   "GDR_PIN_FLAG_DEFAULT or GDR_PIN_FLAG_FORCE_PCIE", flags);
		return -EINVAL;
	}
	if ((flags & GDR_PIN_FLAG_FORCE_PCIE) && !session->entry->coherent()) {
		gdri_error(log_of(&session->base), "GDR_PIN_FLAG_FORCE_PCIE needs a GPU with a "
			   "coherent CPU link; ask attribute 2 first, or pin with flags 0");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Memory that gdrdrv cannot pin either. */
static int check_kind(const struct emu_session *session, uint64_t addr,
		      const struct gdrcopy_emu_range *range)
{
	static const char *const refused[] = {
		[GDRCOPY_EMU_MANAGED] = "managed memory",
		[GDRCOPY_EMU_POOL] = "memory of a stream-ordered pool",
		[GDRCOPY_EMU_IPC] = "memory of another process",
		[GDRCOPY_EMU_HOST] = "host memory",
	};
	const struct gdri_log *log = log_of(&session->base);

	if (range->kind != GDRCOPY_EMU_MALLOC && range->kind != GDRCOPY_EMU_VMM) {
		gdri_error(log, "%#llx is %s, which cannot be pinned; use cudaMalloc or "
			   "cuMemCreate", (unsigned long long)addr, refused[range->kind]);
		return -EINVAL;
	}
	if (!range->rdma_capable && range->kind == GDRCOPY_EMU_VMM) {
		gdri_error(log, "the cuMemCreate memory at %#llx was made without "
			   "allocFlags.gpuDirectRDMACapable = 1", (unsigned long long)addr);
		return -EINVAL;
	}
	if (!range->rdma_capable) {
		gdri_error(log, "GPU %d has no GPUDirect RDMA (device attribute 116 is 0)",
			   range->device);
		return -EINVAL;
	}
	return 0;
}

static int hold_range(const struct emu_session *session, uint64_t addr, size_t size,
		      struct gdrcopy_emu_range *range)
{
	const struct gdri_log *log = log_of(&session->base);
	int ret = session->entry->hold(addr, size, range);

	switch (ret) {
	case 0:
		return 0;
	case -ERANGE:
		gdri_error(log, "%#llx + %zu leaves its memory object; pin each allocation by "
			   "itself", (unsigned long long)addr, size);
		return -EINVAL;
	case -ENOTCONN:
		gdri_error(log, "CUDA is not initialised in this process; call cuInit before "
			   "pinning");
		return -EINVAL;
	case -EBUSY:
		gdri_error(log, "a part of the memory at %#llx was exported as a mappable dma-buf; "
			   "use one back end for it", (unsigned long long)addr);
		return ret;
	default:
		gdri_error(log, "%#llx + %zu is not GPU memory of this process, or was freed",
			   (unsigned long long)addr, size);
		return ret;
	}
}

int gdri_emu_reserve_bar1(const struct emu_session *session, struct emu_pin *record,
			uint64_t size)
{
	int ret;

	if (record->cacheable)
		return 0;
	ret = session->entry->bar1_reserve(record->range.device, size);
	if (ret != 0) {
		gdri_error(log_of(&session->base), "BAR1 of GPU %d has no room for %llu bytes; "
			   "unpin other buffers first", record->range.device,
			   (unsigned long long)size);
		return ret;
	}
	record->bar1 = size;
	return 0;
}

/* Fills record, which then holds the memory and its part of BAR1. */
static int take_range(const struct emu_session *session, uint64_t addr, size_t length,
		      uint32_t flags, uint64_t size, struct emu_pin *record)
{
	int ret = hold_range(session, addr, length, &record->range);

	if (ret != 0)
		return ret;
	record->cacheable = session->entry->coherent() && !(flags & GDR_PIN_FLAG_FORCE_PCIE);
	ret = check_kind(session, addr, &record->range);
	if (ret == 0)
		ret = gdri_emu_reserve_bar1(session, record, size);
	if (ret != 0)
		session->entry->release(record->range.memory);
	return ret;
}

static int emu_pin(struct gdri_backend_session *base, uint64_t addr, size_t size, uint32_t flags,
		   uint64_t p2p_token, uint32_t va_space, struct gdri_pin *pin)
{
	uint64_t va = addr & ~(GDRI_GPU_PAGE_SIZE - 1);
	uint64_t rounded = (addr + size + GDRI_GPU_PAGE_SIZE - 1) & ~(GDRI_GPU_PAGE_SIZE - 1);
	struct emu_session *session = session_of(base);
	struct emu_pin *record;
	int ret;

	(void)p2p_token;
	(void)va_space;
	ret = check_identity(session);
	if (ret == 0)
		ret = gdri_emu_check_injected(session, "pin");
	if (ret == 0)
		ret = check_flags(session, flags);
	if (ret != 0)
		return ret;
	record = calloc(1, sizeof(*record));
	if (!record) {
		gdri_error(log_of(base), "out of memory for a pin");
		return -ENOMEM;
	}
	ret = take_range(session, addr, size, flags, rounded - va, record);
	if (ret != 0) {
		free(record);
		return ret;
	}
	*pin = (struct gdri_pin){
		.va = va,
		.size = rounded - va,
		.addr = addr,
		.length = size,
		.page_size = (uint32_t)GDRI_GPU_PAGE_SIZE,
		.driver_handle = __atomic_add_fetch(&session->pins, 1, __ATOMIC_RELAXED),
		.priv = record,
	};
	return 0;
}

static int emu_unpin(struct gdri_backend_session *base, struct gdri_pin *pin)
{
	const struct gdrcopy_emu_entry *entry = session_of(base)->entry;
	struct emu_pin *record = pin->priv;

	if (record->bar1 > 0)
		entry->bar1_release(record->range.device, record->bar1);
	entry->release(record->range.memory);
	free(record);
	pin->priv = NULL;
	return 0;
}

/* The type that a map gets, or why it cannot have the one that it asks for. */
static int choose_type(const struct emu_session *session, const struct emu_pin *record, int flags,
		       gdr_mapping_type_t *type)
{
	bool wc = session->entry->write_combining();
	gdr_mapping_type_t uncached = wc ? GDR_MAPPING_TYPE_WC : GDR_MAPPING_TYPE_DEVICE;
	bool possible = true;

	switch (flags) {
	case GDR_MAP_FLAG_REQ_WC_MAPPING:
		*type = GDR_MAPPING_TYPE_WC;
		possible = wc;
		break;
	case GDR_MAP_FLAG_REQ_CACHE_MAPPING:
		*type = GDR_MAPPING_TYPE_CACHING;
		possible = record->cacheable;
		break;
	case GDR_MAP_FLAG_REQ_DEVICE_MAPPING:
		*type = GDR_MAPPING_TYPE_DEVICE;
		possible = !wc;
		break;
	default:
		*type = record->cacheable ? GDR_MAPPING_TYPE_CACHING : uncached;
		break;
	}
	if (possible)
		return 0;
	gdri_error(log_of(&session->base), "the emulated platform cannot give mapping type %d; "
		   "map with flags 0", flags);
	return -EOPNOTSUPP;
}

/*
 * Mappings up to this size behave like those of a device.  Larger ones would take
 * as much memory as the emulated GPU pretends to have.
 */
#define POPULATED_SIZE ((size_t)16 << 20)

static int emu_map(struct gdri_backend_session *base, struct gdri_pin *pin, size_t size, int flags,
		   struct gdri_mapping *mapping)
{
	struct emu_session *session = session_of(base);
	const struct emu_pin *record = pin->priv;
	const struct gdrcopy_emu_range *range = &record->range;
	gdr_mapping_type_t type = GDR_MAPPING_TYPE_NONE;
	void *address;
	int ret;

	ret = check_identity(session);
	if (ret == 0)
		ret = gdri_emu_check_injected(session, "map");
	if (ret == 0)
		ret = choose_type(session, record, flags, &type);
	if (ret != 0)
		return ret;
	ret = gdri_os_mmap(size, PROT_READ | PROT_WRITE, MAP_SHARED, range->fd,
			   (off_t)(range->file_offset + (pin->va - range->object_va)), &address);
	if (ret != 0) {
		gdri_error(log_of(base), "mmap of %zu bytes failed (%d); check ulimit -v and "
			   "vm.max_map_count", size, -ret);
		return ret;
	}
	ret = gdri_os_dontfork(address, size);
	if (ret != 0) {
		gdri_error(log_of(base), "madvise(MADV_DONTFORK) failed (%d)", -ret);
		gdri_os_munmap(address, size);
		return ret;
	}
	*mapping = (struct gdri_mapping){
		.base = address,
		.length = size,
		.type = type,
		.is_populated = size <= POPULATED_SIZE && gdri_os_populate(address, size) == 0,
	};
	return 0;
}

static int emu_unmap(struct gdri_backend_session *base, struct gdri_pin *pin,
		     struct gdri_mapping *mapping)
{
	int ret = gdri_os_munmap(mapping->base, mapping->length);

	(void)pin;
	if (ret != 0)
		gdri_error(log_of(base), "munmap failed (%d)", -ret);
	return ret;
}

static void emu_get_memory(struct gdri_backend_session *base, const struct gdri_pin *pin,
			   struct gdri_backend_memory *memory)
{
	const struct emu_pin *record = pin ? pin->priv : NULL;

	*memory = (struct gdri_backend_memory){
		.emulated = record ? &record->range : NULL,
		.emulator = session_of(base)->entry,
	};
}

const struct gdri_backend_ops gdri_backend_emu = {
	.id = GDRI_BACKEND_EMU,
	.name = "emu",
	.open = emu_open,
	.close = emu_close,
	.get_version = gdri_backend_version_2_6,
	.get_attribute = emu_get_attribute,
	.pin = emu_pin,
	.unpin = emu_unpin,
	.map = emu_map,
	.unmap = emu_unmap,
	.get_callback_flag = gdri_backend_no_callback_flag,
	.refresh = gdri_backend_no_refresh,
	.get_memory = emu_get_memory,
	.export_memory = gdri_emu_export_memory,
	.import_memory = gdri_emu_import_memory,
};
