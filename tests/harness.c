/* SPDX-License-Identifier: MIT */
/* Runs the cases of one test program and reports each on a line. */
#include "harness.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf case_end;
static pid_t case_process;
static int failures;
static char skip_reason[256];

bool harness_check(bool condition, const char *file, int line, const char *text)
{
	if (!condition) {
		__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
		fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
	}
	return condition;
}

bool harness_check_eq(long long actual, long long expected, const char *file, int line,
		      const char *text)
{
	if (actual == expected)
		return true;
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	fprintf(stderr, "%s:%d: failed: %s (%lld, expected %lld)\n", file, line, text, actual,
		expected);
	return false;
}

/* A child of a case must not run the parent's remaining cases. */
_Noreturn static void leave_case(int code)
{
	if (getpid() != case_process)
		_exit(1);
	longjmp(case_end, code);
}

_Noreturn void harness_abandon(void)
{
	leave_case(1);
}

_Noreturn void harness_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(skip_reason, sizeof(skip_reason), format, args);
	va_end(args);
	leave_case(2);
}

static bool case_selected(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

/* Returns 0 passed, 1 failed, 2 skipped. */
static int run_case(const struct harness_case *test)
{
	int code;

	failures = 0;
	case_process = getpid();
	code = setjmp(case_end);
	if (code == 0)
		test->run();
	if (failures > 0) {
		printf("not ok %s\n", test->name);
		return 1;
	}
	if (code == 2) {
		printf("skip %s: %s\n", test->name, skip_reason);
		return 2;
	}
	printf("ok %s\n", test->name);
	return 0;
}

int harness_run(const struct harness_case *cases, size_t count, int argc, char **argv)
{
	int results[3] = { 0, 0, 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		if (argc == 2 && strcmp(argv[1], "-l") == 0)
			puts(cases[i].name);
		else if (case_selected(cases[i].name, argc, argv))
			results[run_case(&cases[i])]++;
	}
	if (results[1] > 0)
		return 1;
	return results[0] == 0 && results[2] > 0 ? 77 : 0;
}

int harness_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

size_t harness_count_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long start, end;
	size_t total = 0;
	char line[512];

	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%llx-%llx", &start, &end) == 2)
			total += end - start;
	fclose(maps);
	return total;
}

int harness_fork(void (*body)(void *), void *arg)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		return -1;
	if (child == 0) {
		alarm(60);
		failures = 0;
		body(arg);
		fflush(NULL);
		_exit(failures > 0 ? 1 : 0);
	}
	while (waitpid(child, &status, 0) != child)
		continue;
	return status;
}
