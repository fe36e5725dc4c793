/* SPDX-License-Identifier: MIT */
/* Runs each case in a forked process, and captures what the library logs. */
#include "api/helper_case.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_PER_CASE 300

static int capture_file = -1;
static int saved_stderr = -1;

int api_rounds(int plain)
{
	int slow = plain / 20;

	if (!getenv("HARNESS_SLOW"))
		return plain;
	return slow > 0 ? slow : 1;
}

bool api_is_sanitized(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
	return true;
#endif
#endif
	/* Valgrind preloads its own parts. */
	return getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "vgpreload");
}

size_t api_count_maps(void)
{
	return api_is_sanitized() ? 0 : harness_count_maps();
}

static void apply_settings(const char *settings)
{
	char *copy = strdup(settings ? settings : "");
	char *rest = copy;

	setenv("GDRCOPY_BACKEND", "emu", 1);
	for (char *item; (item = strtok_r(rest, " ", &rest)) != NULL;) {
		char *value = strchr(item, '=');

		*value = '\0';
		setenv(item, value + 1, 1);
	}
	free(copy);
}

static bool is_selected(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

/* The child reports the case; the parent does so only when it died. */
static int run_isolated(const struct api_case *test, char **argv)
{
	struct harness_case one = { test->name, test->run };
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		alarm(SECONDS_PER_CASE);
		apply_settings(test->settings);
		exit(harness_run(&one, 1, 1, argv));
	}
	while (child > 0 && waitpid(child, &status, 0) != child)
		continue;
	if (child > 0 && WIFEXITED(status) &&
	    (WEXITSTATUS(status) <= 1 || WEXITSTATUS(status) == 77))
		return WEXITSTATUS(status);
	printf("not ok %s (wait status %#x)\n", test->name, (unsigned)status);
	return 1;
}

int api_main(const struct api_case *cases, size_t count, int argc, char **argv)
{
	int results[3] = { 0, 0, 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		if (argc == 2 && strcmp(argv[1], "-l") == 0) {
			puts(cases[i].name);
		} else if (is_selected(cases[i].name, argc, argv)) {
			int result = run_isolated(&cases[i], argv);

			results[result == 77 ? 2 : result]++;
		}
	}
	if (results[1] > 0)
		return 1;
	return results[0] == 0 && results[2] > 0 ? 77 : 0;
}

void api_capture_begin(void)
{
	fflush(stderr);
	if (capture_file < 0) {
		capture_file = memfd_create("captured-stderr", MFD_CLOEXEC);
		saved_stderr = dup(STDERR_FILENO);
		REQUIRE(capture_file >= 0 && saved_stderr >= 0);
	}
	REQUIRE_EQ(ftruncate(capture_file, 0), 0);
	REQUIRE_EQ(lseek(capture_file, 0, SEEK_SET), 0);
	REQUIRE_EQ(dup2(capture_file, STDERR_FILENO), STDERR_FILENO);
}

const char *api_capture_end(int *lines)
{
	static char text[65536];
	ssize_t length;

	fflush(stderr);
	dup2(saved_stderr, STDERR_FILENO);
	length = pread(capture_file, text, sizeof(text) - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	*lines = 0;
	for (const char *end = text; (end = strchr(end, '\n')) != NULL; end++)
		(*lines)++;
	return text;
}

void api_check_refused(int rc, int expected, int lines, const char *text, const char *hint,
		       const char *file, int line, const char *call)
{
	bool good = harness_check_eq(rc, expected, file, line, call);

	good &= harness_check_eq(lines, 1, file, line, "one line is logged");
	good &= harness_check(strncmp(text, "ERR:  ", 6) == 0, file, line, "the line is an error");
	good &= harness_check(strstr(text, hint) != NULL, file, line, hint);
	if (!good)
		fprintf(stderr, "%s:%d: logged: %s\n", file, line, text);
}
