/* SPDX-License-Identifier: MIT */
/*
 * The library as something that comes and goes: found by either name, loaded
 * and dropped a hundred times, dropped with a session open, and opened where
 * no back end and no CUDA exist.
 */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void *(*open_fn)(void);
typedef int (*close_fn)(void *g);
typedef int (*version_fn)(void *g, int *major, int *minor);

static const char *const both_names[] = { "libgdrapi.so", "libgdrapi.so.2" };

static void *load(const char *name, int flags)
{
	void *library = dlopen(name, flags);

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	REQUIRE(library != NULL);
	return library;
}

static void find(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	REQUIRE(*(void **)function != NULL);
}

/* R1: either name, any binding, local scope; and it is one object. */
static void both_names_are_one_object(void)
{
	static const int flags[] = { RTLD_NOW, RTLD_LAZY, RTLD_NOW | RTLD_LOCAL,
				     RTLD_LAZY | RTLD_GLOBAL };
	open_fn first, second;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		void *a = load(both_names[0], flags[i]), *b = load(both_names[1], flags[i]);

		CHECK(a == b);
		find(a, "gdr_open", &first);
		find(b, "gdr_open", &second);
		CHECK(first == second);
		dlclose(a);
		dlclose(b);
	}
}

static void load_and_drop(void)
{
	size_t maps = 0;
	int fds = 0;

	for (int i = 0; i < 100; i++) {
		void *library = load(both_names[i % 2], RTLD_NOW);
		open_fn open;
		close_fn close;
		void *g;

		find(library, "gdr_open", &open);
		find(library, "gdr_close", &close);
		g = open();
		REQUIRE(g != NULL);
		CHECK_EQ(close(g), 0);
		CHECK_EQ(dlclose(library), 0);
		if (i == 5) {
			maps = harness_count_maps();
			fds = harness_count_fds();
		}
	}
	CHECK_EQ(harness_count_fds(), fds);
	if (!getenv("HARNESS_SLOW"))
		CHECK_EQ(harness_count_maps(), maps);
}

/* Sessions that are left open are still good when the library comes back. */
static void drop_with_open_session(void)
{
	void *library = load("libgdrapi.so.2", RTLD_LAZY);
	int major = 0, minor = 0;
	version_fn version;
	close_fn close;
	open_fn open;
	void *g;

	find(library, "gdr_open", &open);
	g = open();
	REQUIRE(g != NULL);
	CHECK_EQ(dlclose(library), 0);
	library = load("libgdrapi.so", RTLD_NOW);
	find(library, "gdr_close", &close);
	find(library, "gdr_driver_get_version", &version);
	CHECK_EQ(version(g, &major, &minor), 0);
	CHECK_EQ(major, 2);
	CHECK_EQ(minor, 6);
	CHECK_EQ(close(g), 0);
	CHECK_EQ(close(g), EINVAL);
	CHECK_EQ(dlclose(library), 0);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* In a process of its own: exit status 0, or the number of what went wrong. */
static int open_nothing(void)
{
	const bool is_slow = getenv("HARNESS_SLOW") != NULL;
	double start, best = 1e9;
	int a = 71, b = 72, fds, rc;
	void *library, *cuda;
	version_fn version;
	close_fn close;
	open_fn open;

	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (cuda)
		return 10;
	library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return 11;
	find(library, "gdr_open", &open);
	find(library, "gdr_close", &close);
	find(library, "gdr_driver_get_version", &version);
	fds = harness_count_fds();
	for (int i = 0; i < 10; i++) {
		start = now_ms();
		if (open())
			return 12;
		best = now_ms() - start < best ? now_ms() - start : best;
	}
	if (best >= 2.0 && !is_slow)
		return 13;
	if (harness_count_fds() != fds)
		return 14;
	/* The original ends the process here. */
	rc = version(NULL, &a, &b);
	if (rc != EINVAL || a != 71 || b != 72)
		return 15;
	if (close(NULL) != EINVAL)
		return 16;
	return 0;
}

static bool machine_has_a_driver(void)
{
	return access("/dev/gdrdrv", F_OK) == 0 || access("/dev/nvidiactl", F_OK) == 0;
}

/* R12 and R26: NULL, quickly, without a word, with no libcuda to be found. */
static void no_back_end(void)
{
	int output[2], status = 0;
	char text[256];
	ssize_t length;
	pid_t child;

	if (machine_has_a_driver())
		SKIP("this machine has a driver");
	REQUIRE_EQ(pipe(output), 0);
	child = fork();
	if (child == 0) {
		const char *directory = getenv("GDRCOPY_LIBDIR");
		char program[4096];

		length = readlink("/proc/self/exe", program, sizeof(program) - 1);
		program[length > 0 ? length : 0] = '\0';
		setenv("LD_LIBRARY_PATH", directory ? directory : "src/userspace", 1);
		setenv("RELOAD_OPENS_NOTHING", "1", 1);
		unsetenv("GDRCOPY_BACKEND");
		unsetenv("GDRCOPY_ENABLE_LOGGING");
		dup2(output[1], STDOUT_FILENO);
		dup2(output[1], STDERR_FILENO);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(output[1]);
	length = read(output[0], text, sizeof(text));
	close(output[0]);
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(length, 0);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

static const struct harness_case cases[] = {
	{ "both_names_are_one_object", both_names_are_one_object },
	{ "load_and_drop", load_and_drop },
	{ "drop_with_open_session", drop_with_open_session },
	{ "no_back_end", no_back_end },
};

int main(int argc, char **argv)
{
	if (getenv("RELOAD_OPENS_NOTHING"))
		return open_nothing();
	setenv("GDRCOPY_BACKEND", "emu", 1);
	return harness_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
