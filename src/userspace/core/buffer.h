/* SPDX-License-Identifier: MIT */
/* Version 3's buffers: pins that copies name by handle and offset, mapped or not. */
#ifndef GDRI_CORE_BUFFER_H
#define GDRI_CORE_BUFFER_H

#include "core/region.h"

/*
 * A buffer is a region with a window on all of it from pin to unpin, so that its
 * copy gate is open all that time; gdr_map only gives the window's address out.
 * Where BAR1 has no room there is no window, and the copy engines do what they can.
 *
 * All calls but copies take a session that the caller has entered; copies take
 * the value behind gdr_t.  Beside the errors that each call names: -EBADF, not a
 * live handle of this session; -EACCES, one of the parent process.
 */
enum {
	GDRI_BUFFER_SYNC = 1 << 0,	/* as in gdrcopy/gdrapi.h */
	GDRI_BUFFER_UNALIGNED = 1 << 1
};
#define GDRI_BUFFER_GRANULE 4096u

/* -EINVAL, -EOPNOTSUPP (memory of a kind that cannot be pinned), -ENOMEM. */
int gdri_core_buffer_pin(struct gdri_context *context, uint64_t addr, size_t size, uint32_t flags,
			 int device, uint64_t *handle);
int gdri_core_buffer_unpin(struct gdri_context *context, uint64_t handle);

/* -EBUSY: shown already; -ENOMEM: no window. */
int gdri_core_buffer_map(struct gdri_context *context, uint64_t handle, size_t size, void **va);
int gdri_core_buffer_unmap(struct gdri_context *context, uint64_t handle, const void *va,
			   size_t size);

/* -EOPNOTSUPP: neither window nor engine; -EIO, -ETIMEDOUT. */
int gdri_core_buffer_write(uint64_t session, uint64_t handle, uint64_t offset, const void *host,
			   size_t size);
int gdri_core_buffer_read(uint64_t session, uint64_t handle, uint64_t offset, void *host,
			  size_t size);

/* -EOPNOTSUPP: the devices do not reach each other, and staging is not wanted. */
int gdri_core_buffer_copy(uint64_t session, uint64_t src, uint64_t dst, uint64_t src_offset,
			  uint64_t dst_offset, size_t size);

/* A buffer's memory as another process imports it. */
struct gdri_buffer_share {
	unsigned char uuid[16];		/* of the GPU */
	uint64_t object_size;
	uint64_t offset;		/* of the pinned byte in the memory object */
	uint64_t length;
	uint32_t flags;			/* GDRI_BUFFER_UNALIGNED or 0 */
};
enum { GDRI_EXPORT_WHOLE_OBJECT = 1 << 0 };

/*
 * A descriptor names a memory object, so whoever imports it reaches all of that.
 * -EPERM: it has more bytes than the buffer, and GDRI_EXPORT_WHOLE_OBJECT is not given.
 * -EOPNOTSUPP: the back end cannot.
 */
int gdri_core_buffer_export(struct gdri_context *context, uint64_t handle, uint32_t flags,
			    struct gdri_buffer_share *share, int *fd);

/* -EINVAL: fd or a field of share is not what the other says. */
int gdri_core_buffer_import(struct gdri_context *context, const struct gdri_buffer_share *share,
			    int fd, int device, uint64_t *handle);

int gdri_core_buffer_register(struct gdri_context *context, void *ptr, size_t size);
int gdri_core_buffer_unregister(struct gdri_context *context, void *ptr);

int gdri_core_buffer_flush(struct gdri_context *context);

struct gdri_buffer_info {
	struct gdri_buffer buffer;
	gdr_mapping_type_t type;
	bool has_engine;
	size_t read_min;
	size_t write_min;
	bool freed;
	bool revoked;
};

/* ask: also whether the memory is still there, which asks the CUDA driver. */
int gdri_core_buffer_get_info(struct gdri_context *context, uint64_t handle, bool ask,
			      struct gdri_buffer_info *info);

/* At the end of a session, after its regions. */
void gdri_core_buffer_close(struct gdri_context *context);

#endif
