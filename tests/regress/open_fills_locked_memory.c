/* SPDX-License-Identifier: MIT */
/*
 * Symptom: in a program that had called mlockall(MCL_FUTURE), the first
 * gdr_open took a second and a gigabyte of memory, or failed.
 *
 * The kernel fills new mappings of such a program at once, and the library
 * reserves 1 GiB of addresses for its handles.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void open_after_mlockall(void)
{
	struct gpu_buffer buffer;
	gdr_mh_t handle;
	size_t before;
	gdr_t g;

	if (api_is_sanitized())
		SKIP("the sanitizer's shadow memory would be locked too");
	if (mlockall(MCL_FUTURE) != 0)
		SKIP("mlockall: %s", strerror(errno));
	buffer = gpu_alloc(MIB);
	before = gpu_rss();
	g = gpu_open();
	CHECK(gpu_rss() < before + 32 * MIB);
	handle = gpu_pin(g, buffer.ptr, MIB);
	CHECK_EQ(gdr_unpin_buffer(g, handle), 0);
	CHECK_EQ(gdr_close(g), 0);
}

static const struct api_case cases[] = {
	{ "open_after_mlockall", open_after_mlockall, NULL },
};

API_MAIN(cases)
