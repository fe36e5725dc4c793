/* SPDX-License-Identifier: MIT */
/* Opens and closes sessions. */
#include "core/context.h"

#include <errno.h>

#include "core/buffer.h"
#include "core/dma.h"
#include "core/region.h"

/* The record as GDRCopy's sanity program expects to find it behind gdr_t. */
static void fill_record(struct gdri_record *record, enum gdri_backend_id backend)
{
	uint32_t version = GDR_API_VERSION;

	record->session.page_size = GPU_PAGE_SIZE;
	record->session.page_mask = GPU_PAGE_MASK;
	record->session.page_shift = GPU_PAGE_SHIFT;
	record->session.driver_version = version;
	record->session.backend = backend;
}

/* Takes an object and a record, both or none. */
static int alloc_context(struct gdri_context **context)
{
	gdri_core_table_lock();
	*context = gdri_core_session_alloc(sizeof(**context));
	if (*context) {
		(*context)->record = gdri_core_record_alloc();
		if (!(*context)->record) {
			gdri_core_session_free(*context);
			*context = NULL;
		}
	}
	gdri_core_table_unlock();
	return *context ? 0 : -ENOMEM;
}

static void free_context(struct gdri_context *context)
{
	pthread_mutex_destroy(&context->lock);
	gdri_core_table_lock();
	gdri_core_record_free(context->record);
	gdri_core_session_free(context);
	gdri_core_table_unlock();
}

int gdri_core_context_open(enum gdri_record_kind kind, uint64_t *handle)
{
	struct gdri_context *context;
	int fd = -1;
	int rc;

	rc = gdri_core_table_create();
	if (rc == 0)
		rc = alloc_context(&context);
	if (rc) {
		struct gdri_log log = gdri_core_config_log();

		gdri_error(&log, "gdr_open: no memory for a session; check ulimit -v");
		return rc;
	}
	context->generation++;
	context->regions = NULL;
	context->dma = NULL;
	context->buffers = NULL;
	context->region_kind = kind == GDRI_RECORD_SESSION ? GDRI_RECORD_REGION :
							     GDRI_RECORD_REGION_V3;
	pthread_mutex_init(&context->lock, NULL);
	gdri_core_config_read(&context->config);
	rc = gdri_backend_open(&context->config, &context->backend, &fd);
	if (rc) {
		free_context(context);
		return rc;
	}
	gdri_copy_engine_select(context->config.copy_routine, &context->config.log,
				&context->engine);
	gdri_info(&context->config.log, "gdr_open: back end %s, stores by %s, loads by %s",
		  context->backend->ops->name, context->engine.store_name,
		  context->engine.load_name);

	fill_record(context->record, context->backend->ops->id);
	context->record->session.fd = fd;
	context->backend->fd = &context->record->session.fd;
	gdri_gate_open(&context->gate, context->generation);
	gdri_core_record_publish(context->record, kind, context, context->generation);
	*handle = (uint64_t)(uintptr_t)context->record;
	return 0;
}

int gdri_core_context_enter(enum gdri_record_kind kind, uint64_t handle,
			    struct gdri_context **context)
{
	struct gdri_record *record;
	void *object;
	int rc;

	rc = gdri_core_handle_lookup(handle, kind, &record, &object);
	if (rc)
		return rc;
	*context = object;
	return gdri_gate_enter(&(*context)->gate, record->generation) ? 0 : -EINVAL;
}

void gdri_core_context_leave(struct gdri_context *context)
{
	gdri_gate_leave(&context->gate);
}

/*
 * A child leaves its parent's session alone, the descriptor that it inherited
 * included: the number may by now belong to another file of the child, and one
 * of the same device cannot be told apart.  The descriptor goes with the child.
 */
int gdri_core_context_close(enum gdri_record_kind kind, uint64_t handle, int *release_rc)
{
	struct gdri_context *context;
	struct gdri_record *record;
	int rc, backend_rc;
	void *object;

	rc = gdri_core_handle_lookup(handle, kind, &record, &object);
	if (rc)
		return rc;
	context = object;
	if (!gdri_gate_close(&context->gate, record->generation))
		return -EINVAL;
	gdri_core_gate_drain(&context->gate, NULL);

	rc = gdri_core_region_release_all(context);
	gdri_core_buffer_close(context);
	gdri_core_dma_close(context);
	backend_rc = context->backend->ops->close(context->backend);
	free_context(context);
	*release_rc = rc ? rc : backend_rc;
	return 0;
}
