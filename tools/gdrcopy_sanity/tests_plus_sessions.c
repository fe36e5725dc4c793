/* SPDX-License-Identifier: MIT */
/* What a session owes its process: a clean close, the caller's context, silence. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault.h"
#include "gpu.h"
#include "process.h"
#include "tests.h"

#define LEFT_VALUE 0x1ef7be41u

/* Three pins, two mappings, then nothing but close. */
static void leave_everything(const struct buffer *buffer)
{
	gdr_t g = open_session();
	void *va[2] = { NULL, NULL };
	uint32_t value;

	for (int i = 0; i < 3; i++) {
		gdr_mh_t mh = buffer_pin(g, buffer);

		if (i == 2)
			continue;
		REQUIRE_OK(gdr_map(g, mh, &va[i], buffer->size));
		*(volatile uint32_t *)va[i] = LEFT_VALUE;
	}
	REQUIRE_OK(gdr_close(g));
	/* Another thread of CUDA may have mapped something there meanwhile. */
	for (int i = 0; i < 2; i++)
		REQUIRE(fault_read(va[i], &value) != 0 || value != LEFT_VALUE);
}

void test_plus_close_releases_all(enum memory memory)
{
	struct process_state before;
	struct buffer buffer;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	/* The first session may leave what later ones share. */
	leave_everything(&buffer);
	process_remember(&before);
	for (int i = 0; i < 10; i++)
		leave_everything(&buffer);
	process_require_same(&before, 4, "after ten sessions that only closed");
	buffer_free(&buffer);
}

static struct mapped left_for_exit;

static void release_at_exit(void)
{
	mapped_unmap(&left_for_exit);
	REQUIRE_OK(gdr_unpin_buffer(left_for_exit.g, left_for_exit.mh));
	REQUIRE_OK(gdr_close(left_for_exit.g));
}

/*
 * Consumers let go in handlers that run at exit, after CUDA's own: handlers
 * run in reverse order, and this one is registered before CUDA starts.
 */
void test_plus_close_at_exit(enum memory memory)
{
	REQUIRE_EQ(atexit(release_at_exit), 0);
	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &left_for_exit);
}

static void require_context(CUcontext expected, const char *after)
{
	CUcontext current = NULL;

	GPU(cuCtxGetCurrent, &current);
	if (current != expected)
		FAIL("%s the current context is %p, expected %p", after, (void *)current,
		     (void *)expected);
}

static void cycle_in_context(const struct buffer *buffer, CUcontext context)
{
	uint32_t word = 0x31415926;
	void *va = NULL;
	gdr_mh_t mh;
	gdr_t g;

	g = open_session();
	require_context(context, "after open");
	mh = buffer_pin(g, buffer);
	require_context(context, "after pin");
	REQUIRE_OK(gdr_map(g, mh, &va, buffer->size));
	require_context(context, "after map");
	REQUIRE_OK(gdr_copy_to_mapping(mh, va, &word, sizeof(word)));
	REQUIRE_OK(gdr_copy_from_mapping(mh, &word, va, sizeof(word)));
	require_context(context, "after copies");
	REQUIRE_OK(gdr_unmap(g, mh, va, buffer->size));
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
	require_context(context, "after close");
}

/* Proxy threads of consumers have no context at all. */
static void *cycle_without_context(void *arg)
{
	cycle_in_context(arg, NULL);
	return NULL;
}

void test_plus_context_untouched(enum memory memory)
{
	CUcontext context = NULL;
	struct buffer buffer;
	pthread_t thread;

	gpu_start();
	GPU(cuCtxGetCurrent, &context);
	REQUIRE(context);
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	cycle_in_context(&buffer, context);
	REQUIRE_EQ(pthread_create(&thread, NULL, cycle_without_context, &buffer), 0);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	buffer_free(&buffer);
}

static void err_in_many_ways(const struct buffer *buffer)
{
	gdr_mh_t mh = { .h = 1 };
	void *va = NULL;
	gdr_t g;

	REQUIRE_ERROR(gdr_close(NULL), EINVAL);
	g = open_session();
	REQUIRE_ERROR(gdr_unpin_buffer(g, mh), EINVAL);
	REQUIRE_ERROR(gdr_copy_to_mapping(mh, &va, &va, sizeof(va)), EINVAL);
	REQUIRE_ERROR(gdr_pin_buffer(g, buffer->addr, 0, 0, 0, &mh), EINVAL);
	REQUIRE_ERROR(gdr_pin_buffer(g, (unsigned long)(uintptr_t)&va, 8, 0, 0, &mh), EINVAL);
	mh = buffer_pin(g, buffer);
	REQUIRE_ERROR(gdr_map(g, mh, &va, 2 * buffer->size), EINVAL);
	REQUIRE_OK(gdr_map(g, mh, &va, buffer->size));
	REQUIRE_ERROR(gdr_map(g, mh, &va, buffer->size), EAGAIN);
	REQUIRE_OK(gdr_close(g));
}

/* Standard output and error belong to the application, unless logging is on. */
void test_plus_quiet(enum memory memory)
{
	int capture = memfd_create("output", MFD_CLOEXEC);
	int saved[2] = { dup(STDOUT_FILENO), dup(STDERR_FILENO) };
	struct buffer buffer;

	REQUIRE(capture >= 0 && saved[0] >= 0 && saved[1] >= 0);
	REQUIRE_EQ(unsetenv("GDRCOPY_ENABLE_LOGGING"), 0);
	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	fflush(NULL);
	REQUIRE(dup2(capture, STDOUT_FILENO) >= 0 && dup2(capture, STDERR_FILENO) >= 0);
	err_in_many_ways(&buffer);
	fflush(NULL);
	REQUIRE(dup2(saved[0], STDOUT_FILENO) >= 0 && dup2(saved[1], STDERR_FILENO) >= 0);
	REQUIRE_EQ(lseek(capture, 0, SEEK_END), 0);
	buffer_free(&buffer);
}
