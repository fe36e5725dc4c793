/* SPDX-License-Identifier: MIT */
/* Back end emu: memory that one process exports and another imports. */
#include <errno.h>
#include <stdlib.h>

#include "backend/emu/session.h"
#include "core/log.h"

static const struct gdri_log *log_of(const struct gdri_backend_session *session)
{
	return &session->config->log;
}

int gdri_emu_export_memory(struct gdri_backend_session *base, const struct gdri_pin *pin,
			     int *fd)
{
	const struct emu_session *session = session_of(base);
	const struct emu_pin *record = pin->priv;
	int ret = gdri_emu_check_injected(session, "export");

	if (ret == 0)
		ret = session->entry->export_object(&record->range, fd);
	if (ret != 0)
		gdri_error(log_of(base), "export: error %d; check ulimit -n, and that the memory "
			   "is not of GDRCOPY_EMU=provider=bar", -ret);
	return ret;
}

static int import_range(const struct emu_session *session, const struct gdri_backend_share *share,
			int fd, struct emu_pin *record)
{
	int ret = session->entry->import_object(fd, share->device, share->object_size,
						&record->range);

	if (ret == 0) {
		record->range.object_va = GDRI_BACKEND_IMPORT_BASE;
		record->cacheable = session->entry->coherent();
		return 0;
	}
	gdri_error(log_of(&session->base), ret == -ENXIO ?
		   "import: descriptor %d is memory of another GPU than %d" :
		   "import: descriptor %d does not go with this struct, on device %d; give both "
		   "as gdr_export made them", fd, share->device);
	return ret == -ENXIO || ret == -ENOTCONN ? -EINVAL : ret;
}

/* Fills record, which then holds the memory and its part of BAR1. */
static int take_import(const struct emu_session *session, const struct gdri_backend_share *share,
		       int fd, uint64_t size, struct emu_pin *record)
{
	int ret = gdri_emu_check_injected(session, "pin");

	if (ret == 0)
		ret = import_range(session, share, fd, record);
	if (ret != 0)
		return ret;
	ret = gdri_emu_reserve_bar1(session, record, size);
	if (ret != 0)
		session->entry->release(record->range.memory);
	return ret;
}

int gdri_emu_import_memory(struct gdri_backend_session *base,
			     const struct gdri_backend_share *share, int fd, struct gdri_pin *pin)
{
	const uint64_t mask = GDRI_GPU_PAGE_SIZE - 1;
	const uint64_t addr = GDRI_BACKEND_IMPORT_BASE + share->offset;
	const uint64_t size = ((addr + share->length + mask) & ~mask) - (addr & ~mask);
	struct emu_session *session = session_of(base);
	struct emu_pin *record = calloc(1, sizeof(*record));
	int ret;

	if (!record) {
		gdri_error(log_of(base), "out of memory for a pin");
		return -ENOMEM;
	}
	ret = take_import(session, share, fd, size, record);
	if (ret != 0) {
		free(record);
		return ret;
	}
	*pin = (struct gdri_pin){
		.va = addr & ~mask,
		.size = size,
		.addr = addr,
		.length = share->length,
		.page_size = (uint32_t)GDRI_GPU_PAGE_SIZE,
		.driver_handle = __atomic_add_fetch(&session->pins, 1, __ATOMIC_RELAXED),
		.priv = record,
	};
	return 0;
}
