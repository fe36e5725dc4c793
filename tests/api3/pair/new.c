/* SPDX-License-Identifier: MIT */
/*
 * The file of a program that uses version 3.  Both files copy on the same memory, see
 * each other's bytes, and each is refused the other's sessions and handles.
 */
#include <gdrcopy/gdrapi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "pair/pair.h"

#define SIZE 65536

static int failed;

static void expect(long long is, long long should_be, const char *what)
{
	if (is == should_be)
		return;
	fprintf(stderr, "%s: %lld instead of %lld\n", what, is, should_be);
	failed = 1;
}

static CUdeviceptr allocate(void)
{
	CUdeviceptr ptr = 0;
	CUcontext context = NULL;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAlloc(&ptr, SIZE)) {
		fprintf(stderr, "no emulated GPU\n");
		exit(1);
	}
	return ptr;
}

static void refuse_old(const struct old_side *old)
{
	gdr_t session = (gdr_t)old->session;
	gdr_info_t info;
	uint64_t made = 1;
	char host[8] = "";
	gdr_t g = NULL;

	info.size = sizeof(info);
	expect(gdr_flush(session), GDR_ERR_STALE_HANDLE, "gdr_flush of a session of 2.6");
	expect(gdr_pin_buffer(session, 4096, 4096, 0, 0, &made), GDR_ERR_STALE_HANDLE,
	       "gdr_pin_buffer with a session of 2.6");
	expect((long long)made, 0, "its handle");
	expect(gdr_close(session), GDR_ERR_STALE_HANDLE, "gdr_close of a session of 2.6");
	expect(gdr_open(&g), GDR_SUCCESS, "gdr_open");
	expect(gdr_get_info(g, old->handle, &info), GDR_ERR_STALE_HANDLE, "gdr_get_info");
	expect(gdr_copy_to_host(g, old->handle, 0, host, 8), GDR_ERR_STALE_HANDLE,
	       "gdr_copy_to_host");
	expect(gdr_copy_from_host(g, old->handle, 0, host, 8), GDR_ERR_STALE_HANDLE,
	       "gdr_copy_from_host");
	expect(gdr_copy_to_device(g, old->handle, old->handle, 0, 4096, 4096),
	       GDR_ERR_STALE_HANDLE, "gdr_copy_to_device");
	expect(gdr_unpin(g, old->handle), GDR_ERR_STALE_HANDLE, "gdr_unpin");
	expect(gdr_close(g), GDR_SUCCESS, "gdr_close");
}

int main(void)
{
	CUdeviceptr ptr = allocate();
	char text[32] = "";
	struct old_side old;
	uint64_t handle = 0;
	gdr_t g = NULL;

	expect(gdr_open(&g), GDR_SUCCESS, "gdr_open");
	expect(gdr_pin_buffer(g, ptr, SIZE, 0, 0, &handle), GDR_SUCCESS, "gdr_pin_buffer");
	expect(old_begin(&old, ptr, SIZE), 0, "a pin and a mapping of 2.6");

	expect(old_write(&old, "by the other file", 18), 0, "a copy of 2.6");
	expect(gdr_copy_to_host(g, handle, 0, text, 18), GDR_SUCCESS, "gdr_copy_to_host");
	expect(strcmp(text, "by the other file"), 0, "the bytes");

	refuse_old(&old);
	expect(old_accepts(g, handle, text), 0, "calls of 2.6 that accept what is of version 3");

	/* None of that has ended anything. */
	expect(old_write(&old, "still", 6), 0, "a later copy of 2.6");
	expect(gdr_copy_to_host(g, handle, 0, text, 6), GDR_SUCCESS, "a later gdr_copy_to_host");
	expect(strcmp(text, "still"), 0, "the later bytes");
	expect(old_end(&old), 0, "gdr_close of 2.6");
	expect(gdr_copy_to_host(g, handle, 0, text, 6), GDR_SUCCESS, "gdr_copy_to_host after that");
	expect(gdr_close(g), GDR_SUCCESS, "gdr_close");
	return failed;
}
