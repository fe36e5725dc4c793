/* SPDX-License-Identifier: MIT */
/*
 * Symptom: a program that returned from main while its other threads were
 * still opening and closing sessions crashed now and then instead of ending.
 *
 * The library's destructor gives the handle table back when no session is
 * left, and a thread was just then between two uses of it.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *open_and_close(void *arg)
{
	const struct gpu_buffer *buffer = arg;

	for (;;) {
		gdr_t g = gdr_open();
		gdr_mh_t handle;

		if (!g)
			return NULL;	/* the process is ending: libcuda may be gone */
		if (buffer && gdr_pin_buffer(g, buffer->ptr, GPU_PAGE_SIZE, 0, 0, &handle) == 0)
			gdr_unpin_buffer(g, handle);
		gdr_close(g);
	}
}

static void exit_with_busy_threads(void)
{
	if (api_is_sanitized())
		SKIP("the sanitizer does not survive its own end beside threads");
	for (int i = 0; i < api_rounds(400); i++) {
		int status = 0;
		pid_t child;

		child = fork();
		if (child == 0) {
			static struct team team;

			team_start(&team, 3, open_and_close, NULL, 0);
			thread_nap(i % 40 * 100);
			exit(0);
		}
		REQUIRE_EQ(waitpid(child, &status, 0), child);
		if (!CHECK_EQ(status, 0))
			break;
	}
}

static const struct api_case cases[] = {
	{ "exit_with_busy_threads", exit_with_busy_threads, NULL },
};

API_MAIN(cases)
