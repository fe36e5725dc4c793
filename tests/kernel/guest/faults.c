/* SPDX-License-Identifier: MIT */
/*
 * Every allocation and every copy to or from user space inside the module's calls
 * fails once, in order.  Needs a kernel with fault injection.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (2ull << 20)
#define MOST 2000
#define DEBUG_FS "/sys/kernel/debug/"

static void open_knobs(void)
{
	static const char *const off[] = {
		DEBUG_FS "failslab/ignore-gfp-wait", DEBUG_FS "fail_page_alloc/ignore-gfp-wait",
		DEBUG_FS "fail_page_alloc/ignore-gfp-highmem",
	};
	static const char *const quiet[] = {
		DEBUG_FS "failslab/verbose", DEBUG_FS "fail_page_alloc/verbose",
		DEBUG_FS "fail_usercopy/verbose",
	};

	if (access("/proc/self/fail-nth", W_OK) != 0)
		SKIP("this kernel cannot inject failures");
	for (unsigned i = 0; i < sizeof(off) / sizeof(*off); i++)
		CHECK_EQ(bench_write_file(off[i], "N"), 0);
	CHECK_EQ(bench_write_file(DEBUG_FS "fail_page_alloc/min-order", "0"), 0);
	/* Otherwise each failure leaves a trace in the log, which looks like a complaint. */
	for (unsigned i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
		CHECK_EQ(bench_write_file(quiet[i], "0"), 0);
}

static int nth_file;

static void arm(int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", nth);
	/* A failure that is armed still may hit this very call, and is spent then. */
	CHECK(pwrite(nth_file, text, strlen(text), 0) > 0 ||
	      pwrite(nth_file, text, strlen(text), 0) > 0);
}

/*
 * Whether the failure was injected; otherwise it waits no longer.  One that hits
 * the question was left over by the call that was meant.
 */
static bool fired(void)
{
	char text[16] = "";
	bool hit = pread(nth_file, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

	arm(0);
	return hit;
}

static bool expected(int ret)
{
	return ret == 0 || ret == -ENOMEM || ret == -EFAULT || ret == -EAGAIN;
}

static struct buffer buffer;

static void open_once(int nth, bool *hit)
{
	int fd, error;

	arm(nth);
	fd = open(GDRDRV_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	error = errno;
	*hit = fired();
	/* EFAULT: the path could not be read. */
	CHECK(fd >= 0 || error == ENOMEM || error == ENFILE || error == EFAULT);
	if (fd >= 0)
		close(fd);
}

static void pin_once(int nth, bool *hit)
{
	uint64_t handle = 0;
	int fd = drv_open(), ret;

	arm(nth);
	ret = drv_pin(fd, buffer.va, SIZE, &handle);
	*hit = fired();
	CHECK(expected(ret));
	if (ret != 0)
		CHECK_NO_PINS();
	else
		CHECK_EQ(drv_unpin(fd, handle), 0);
	CHECK_NO_PINS();
	close(fd);
}

static void map_once(int nth, bool *hit)
{
	struct gdrdrv_get_info_v2 info;
	uint64_t handle;
	int fd = drv_open(), ret;
	void *map;

	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	arm(nth);
	ret = drv_map(fd, handle, SIZE, &map);
	*hit = fired();
	CHECK(expected(ret));
	if (ret == 0)
		munmap(map, SIZE);
	CHECK_EQ(drv_info(fd, handle, &info), 0);
	CHECK_EQ(info.mapping_type, GDRDRV_MAPPING_TYPE_NONE);
	CHECK_EQ(drv_map(fd, handle, SIZE, &map), 0);
	munmap(map, SIZE);
	CHECK_EQ(drv_unpin(fd, handle), 0);
	CHECK_NO_PINS();
	close(fd);
}

/* Releasing must succeed, whatever fails. */
static void release_once(int nth, bool *hit)
{
	uint64_t handle;
	int fd = drv_open(), ret;
	void *map;

	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	arm(nth);
	ret = drv_unpin(fd, handle);
	*hit = fired();
	CHECK(ret == 0 || ret == -EFAULT);
	close(fd);
	munmap(map, SIZE);
	CHECK_NO_PINS();
}

static void each_failure(void (*once)(int nth, bool *hit))
{
	bool hit = true;
	int nth;

	open_knobs();
	bench_start();
	buffer = bench_alloc(SIZE);
	nth_file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	REQUIRE(nth_file >= 0);
	for (nth = 1; nth < MOST && hit; nth++)
		once(nth, &hit);
	CHECK(nth > 2);
	CHECK(nth < MOST);
	close(nth_file);
	bench_free(&buffer);
	bench_end();
}

static void in_open(void)
{
	each_failure(open_once);
}

static void in_pin(void)
{
	each_failure(pin_once);
}

static void in_map(void)
{
	each_failure(map_once);
}

static void in_unpin(void)
{
	each_failure(release_once);
}

static const struct harness_case cases[] = {
	{ "in_open", in_open },
	{ "in_pin", in_pin },
	{ "in_map", in_map },
	{ "in_unpin", in_unpin },
};
HARNESS_MAIN(cases)
