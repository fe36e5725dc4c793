/* SPDX-License-Identifier: MIT */
/* Runs each case in a new process of this program. */
#include "helper_case.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_VARIABLE "EMU_TEST_CASE"

static const struct emu_case *table, *current;
static size_t table_size;

static const struct emu_case *find_case(const char *name)
{
	for (size_t i = 0; i < table_size; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/* The child's own verdict line is dropped: the parent reports the case. */
static int start_child(const struct emu_case *test, int input)
{
	char *argv[] = { (char *)"/proc/self/exe", NULL };
	pid_t pid;
	int null;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(input >= 0 ? input : null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || setenv(CHILD_VARIABLE, test->name, 1) != 0)
		_exit(1);
	unsetenv("GDRCOPY_EMU_DEVICES");
	if (test->emu)
		setenv("GDRCOPY_EMU", test->emu, 1);
	else
		unsetenv("GDRCOPY_EMU");
	execv("/proc/self/exe", argv);
	_exit(127);
}

int emu_start_role(const char *name, int fd)
{
	const struct emu_case *test = find_case(name);

	return test ? start_child(test, fd) : -1;
}

bool emu_role_passed(int pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) != pid)
		if (pid <= 0)
			return false;
	return status == 0;
}

static void run_current(void)
{
	int pid = start_child(current, -1), status = -1;

	REQUIRE(pid > 0);
	REQUIRE_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("see the messages above");
	CHECK_EQ(status, 0);
}

static int run_child(const char *name, char **argv)
{
	const struct emu_case *test = find_case(name);
	struct harness_case one;

	if (!test)
		return 1;
	alarm(60);
	one = (struct harness_case){ test->name, test->run };
	return harness_run(&one, 1, 1, argv);
}

int emu_case_main(const struct emu_case *cases, size_t count, int argc, char **argv)
{
	const char *child = getenv(CHILD_VARIABLE);
	int worst = 0;

	table = cases;
	table_size = count;
	if (child)
		return run_child(child, argv);
	for (size_t i = 0; i < count; i++) {
		struct harness_case one = { cases[i].name, run_current };
		int result;

		if (cases[i].role)
			continue;
		current = &cases[i];
		result = harness_run(&one, 1, argc, argv);
		if (result == 1)
			worst = 1;
	}
	return worst;
}

CUcontext emu_start(int device)
{
	CUcontext ctx = NULL;

	REQUIRE_CU(cuInit(0));
	REQUIRE_CU(cuCtxCreate(&ctx, NULL, 0, device));
	return ctx;
}
