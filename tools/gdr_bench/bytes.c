/* SPDX-License-Identifier: MIT */
/* Makes, uploads and compares the bytes of copies. */
#include "bytes.h"

#include <stdlib.h>

#include "common/pattern.h"

void bytes_alloc(struct bytes *bytes, size_t size)
{
	*bytes = (struct bytes){ .size = size };
	bytes->base = host_buffer(size);
	bytes->wanted = host_buffer(size);
	bytes->poison = host_buffer(size);
	bytes->got = host_buffer(size);
	pattern_fill(bytes->base, size, 1);
}

void bytes_free(struct bytes *bytes)
{
	free(bytes->base);
	free(bytes->wanted);
	free(bytes->poison);
	free(bytes->got);
}

void bytes_turn(struct bytes *bytes, size_t size)
{
	bytes->turn++;
	for (size_t i = 0; i < size; i++) {
		bytes->wanted[i] = (unsigned char)(bytes->base[i] + bytes->turn);
		bytes->poison[i] = (unsigned char)~bytes->wanted[i];
	}
}

void bytes_upload(const struct device_buffer *buffer, const void *host, size_t size)
{
	CU(cuCtxSetCurrent, buffer->gpu->ctx);
	CU(cuMemcpyHtoD, buffer->ptr, host, size);
	CU(cuCtxSynchronize);
}

void bytes_check_host(const struct bytes *bytes, const void *got, size_t size, const char *what)
{
	pattern_check(got, bytes->wanted, size, what);
}

void bytes_check_device(struct bytes *bytes, const struct device_buffer *buffer, size_t size,
			const char *what)
{
	CU(cuCtxSetCurrent, buffer->gpu->ctx);
	CU(cuMemcpyDtoH, bytes->got, buffer->ptr, size);
	pattern_check(bytes->got, bytes->wanted, size, what);
}
