/* SPDX-License-Identifier: MIT */
/* Catches what a call writes to stderr, for tests of log lines. */
#include "scripted_log.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int kept_stderr, caught;
static char text[4096];

void scripted_log_start(void)
{
	fflush(stderr);
	kept_stderr = dup(STDERR_FILENO);
	caught = memfd_create("stderr", 0);
	dup2(caught, STDERR_FILENO);
}

const char *scripted_log_take(void)
{
	ssize_t length;

	fflush(stderr);
	length = pread(caught, text, sizeof(text) - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	dup2(kept_stderr, STDERR_FILENO);
	close(kept_stderr);
	close(caught);
	return text;
}
