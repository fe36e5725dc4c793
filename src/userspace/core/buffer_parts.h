/* SPDX-License-Identifier: MIT */
/* Between the files of version 3's buffers: core/buffer*.c. */
#ifndef GDRI_CORE_BUFFER_PARTS_H
#define GDRI_CORE_BUFFER_PARTS_H

#include "core/buffer.h"
#include "os/cuda.h"

struct gdri_host_range;

/* What a session has for version 3 alone; made when it is first needed. */
struct gdri_buffer_session {
	struct gdri_cuda cuda;		/* constant once has_cuda is true */
	bool has_cuda;
	struct gdri_host_range *ranges;	/* the session's lock */
};

/* NULL: no memory.  Tries again to load CUDA where there was none. */
struct gdri_buffer_session *gdri_core_buffer_session(struct gdri_context *context);

/* -EINVAL, logged: the process has no CUDA, or no such device.  The session's part exists. */
int gdri_core_buffer_check_device(const struct gdri_context *context, const char *call, int device);

/* As gdri_core_region_lock; -EBADF for what is no live handle. */
int gdri_core_buffer_lock(struct gdri_context *context, uint64_t handle, const char *call,
			  struct gdri_region **region);

/* Makes a buffer of a region that was just pinned; buffer->skew is found here. */
int gdri_core_buffer_open(struct gdri_context *context, uint64_t handle, const char *call,
			  const struct gdri_buffer *buffer);

#endif
