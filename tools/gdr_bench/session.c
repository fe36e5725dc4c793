/* SPDX-License-Identifier: MIT */
/* Opens sessions, pins and maps; explains every failure in one line. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "common/report.h"

#define LOGGING_HINT "GDRCOPY_ENABLE_LOGGING=1 shows the reason"

void result_check(gdr_result_t result, const char *call)
{
	if (result != GDR_SUCCESS)
		fail("%s failed with %d (%s); " LOGGING_HINT, call, (int)result,
		     gdr_strerror(result));
}

void device_buffer_alloc(const struct gpu *gpu, size_t size, struct device_buffer *buffer)
{
	*buffer = (struct device_buffer){ .gpu = gpu, .size = size };
	CU(cuCtxSetCurrent, gpu->ctx);
	CU(cuMemAlloc, &buffer->ptr, size);
}

void device_buffer_free(struct device_buffer *buffer)
{
	CU(cuCtxSetCurrent, buffer->gpu->ctx);
	CU(cuMemFree, buffer->ptr);
}

static void restore_variable(const char *variable, char *old)
{
	if (old)
		setenv(variable, old, 1);
	else
		unsetenv(variable);
	free(old);
}

/* The library reads its settings at gdr_open and never again. */
static gdr_result_t open_with(const char *variable, const char *value, gdr_t *g)
{
	const char *set = getenv(variable);
	char *old = set ? strdup(set) : NULL;
	gdr_result_t result;

	setenv(variable, value, 1);
	result = gdr_open(g);
	restore_variable(variable, old);
	return result;
}

void session_open(const char *variable, const char *value, struct session *session)
{
	gdr_result_t result;

	*session = (struct session){ 0 };
	result = variable ? open_with(variable, value, &session->g) : gdr_open(&session->g);
	if (result != GDR_SUCCESS)
		fail("gdr_open failed with %d (%s): gdrcopy_info shows what each back end lacks",
		     (int)result, gdr_strerror(result));
}

static void pin_buffer(gdr_t g, const struct device_buffer *buffer, uint32_t flags,
		       const char *size_name, uint64_t *handle)
{
	const struct gpu *gpu = buffer->gpu;
	gdr_result_t result;

	result = gdr_pin_buffer(g, buffer->ptr, buffer->size, flags, gpu->ordinal, handle);
	if (result == GDR_SUCCESS)
		return;
	if (!gpu->rdma)
		fail_with(TOOL_UNSUPPORTED,
			  "GPU %d (%s) has no GPUDirect RDMA support, so its memory cannot be "
			  "pinned: use a data-centre or professional GPU", gpu->ordinal, gpu->name);
	if (result == GDR_ERR_NO_MEMORY)
		fail("pinning %zu bytes failed: BAR1 or host memory is exhausted "
		     "(gdrcopy_info shows the use of BAR1; try a smaller %s)", buffer->size,
		     size_name);
	result_check(result, "gdr_pin_buffer");
}

void session_pin(struct session *session, const struct device_buffer *src,
		 const struct device_buffer *dst, uint32_t flags, const char *size_name)
{
	pin_buffer(session->g, src, flags, size_name, &session->src);
	pin_buffer(session->g, dst, flags, size_name, &session->dst);
}

void session_map(struct session *session, size_t size)
{
	GDR3(gdr_map, session->g, session->src, &session->src_ptr, size);
	GDR3(gdr_map, session->g, session->dst, &session->dst_ptr, size);
}

static bool engine_reaches(gdr_t g, uint64_t handle)
{
	gdr_info_t info = { .size = sizeof(info) };

	GDR3(gdr_get_info, g, handle, &info);
	return info.has_engine;
}

bool session_has_engine(const struct session *session)
{
	return engine_reaches(session->g, session->src) && engine_reaches(session->g, session->dst);
}

void session_close(struct session *session, size_t size)
{
	if (session->src_ptr)
		GDR3(gdr_unmap, session->g, session->src, session->src_ptr, size);
	if (session->dst_ptr)
		GDR3(gdr_unmap, session->g, session->dst, session->dst_ptr, size);
	GDR3(gdr_unpin, session->g, session->src);
	GDR3(gdr_unpin, session->g, session->dst);
	GDR3(gdr_close, session->g);
}
