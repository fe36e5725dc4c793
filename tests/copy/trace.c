/* SPDX-License-Identifier: MIT */
/*
 * Judges every access of the copy routines to a mapping by a trace of the
 * processor: each byte once, none outside, aligned words whole.
 *
 * The program runs itself under valgrind's lackey, which writes a line for
 * each load and store, and reads those lines.  Routines whose instructions
 * valgrind does not know are skipped here; tests/copy/step.c judges them.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "helper_judge.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Where the traced program puts the range that stands in for a mapping. */
#define MAPPING_BASE ((uintptr_t)0x400000000)

/* Exit statuses of the traced program, and of valgrind when it does not start it. */
#define EXIT_VALGRIND 1
#define EXIT_NO_MEMORY 3
#define EXIT_CANNOT_RUN 4

/* What one trace covers. */
struct plan {
	size_t max_size;
	size_t max_power;
};

static const struct plan full = { .max_size = 300, .max_power = 64 << 10 };
static const struct plan brief = { .max_size = 80, .max_power = 4 << 10 };
static const struct plan tiny = { .max_size = 16, .max_power = 0 };
static const struct plan large = { .max_size = 0, .max_power = 16 << 20 };

/* The traced program: --copies ROUTINE store|load MAX_SIZE MAX_POWER. */
static int run_copies(char **argv)
{
	bool store = strcmp(argv[1], "store") == 0;
	gdri_copy_fn copy = judge_find_routine(argv[0], store);
	struct judge judge;
	char *mapping, *host;

	if (!copy)
		return EXIT_CANNOT_RUN;
	judge_plan(&judge, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	judge.store = store;
	mapping = mmap((void *)MAPPING_BASE, judge.length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	host = calloc(1, judge_host_size(&judge));
	if (mapping != (void *)MAPPING_BASE || !host)
		return EXIT_NO_MEMORY;
	judge_run(&judge, copy, mapping, host);
	free(host);
	judge_free(&judge);
	return 0;
}

/* In the child: becomes the traced program, its trace on descriptor trace. */
static void exec_traced(const char *routine, bool store, const struct plan *plan, int trace)
{
	char log_fd[32], max_size[32], max_power[32], self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length < 0)
		_exit(EXIT_NO_MEMORY);
	self[length] = '\0';
	snprintf(log_fd, sizeof(log_fd), "--log-fd=%d", trace);
	snprintf(max_size, sizeof(max_size), "%zu", plan->max_size);
	snprintf(max_power, sizeof(max_power), "%zu", plan->max_power);
	execlp("valgrind", "valgrind", "--tool=lackey", "--basic-counts=no", "--trace-mem=yes",
	       log_fd, self, "--copies", routine, store ? "store" : "load", max_size, max_power,
	       (char *)NULL);
	_exit(127);
}

/* Lines are "I  address,size", " L address,size", " S address,size", " M address,size". */
static void read_trace(FILE *trace, struct judge *judge)
{
	char line[256];

	while (fgets_unlocked(line, sizeof(line), trace)) {
		uintptr_t address;
		char *end;
		size_t size;

		if (line[0] != ' ' || !strchr("LSM", line[1]) || line[2] != ' ')
			continue;
		address = strtoul(line + 3, &end, 16);
		if (*end != ',')
			continue;
		size = strtoul(end + 1, NULL, 10);
		if (line[1] != 'S')
			judge_access(judge, false, address, size);
		if (line[1] != 'L')
			judge_access(judge, true, address, size);
	}
}

/* Traces one routine in one direction; the child's exit status says how that went. */
static int trace_routine(const char *routine, const struct plan *plan, struct judge *judge)
{
	int ends[2], status;
	FILE *trace;
	pid_t child;

	REQUIRE_EQ(pipe2(ends, O_CLOEXEC), 0);
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);	/* only for speed */
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		fcntl(ends[1], F_SETFD, 0);
		exec_traced(routine, judge->store, plan, ends[1]);
	}
	close(ends[1]);
	trace = fdopen(ends[0], "r");
	REQUIRE(trace != NULL);
	read_trace(trace, judge);
	fclose(trace);
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	REQUIRE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void judge_direction(const char *routine, const struct plan *plan, bool store,
			    size_t widest, struct judge *judge)
{
	int status;

	judge_plan(judge, plan->max_size, plan->max_power);
	judge->base = MAPPING_BASE;
	judge->store = store;
	judge->widest = widest;
	status = trace_routine(routine, plan, judge);
	if (status == EXIT_CANNOT_RUN) {
		judge_free(judge);
		SKIP("this CPU or valgrind cannot run it");
	}
	/* Valgrind 3.19 gives up on the debug information of clang 14. */
	if (status == EXIT_VALGRIND) {
		judge_free(judge);
		SKIP("valgrind cannot load this build");
	}
	REQUIRE_EQ(status, 0);
}

static void require_tracer(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (SANITIZED)
		SKIP("valgrind does not run a sanitized program");
	if (preload && strstr(preload, "vgpreload"))
		SKIP("valgrind does not run under itself");
	if (system("valgrind --tool=lackey --log-file=/dev/null true >/dev/null 2>&1") != 0)
		SKIP("valgrind (with its tool lackey) is not installed");
}

/* Families share routines: one function is traced in full once in a run. */
static bool was_traced(gdri_copy_fn copy)
{
	static gdri_copy_fn traced[32];
	static unsigned count;

	for (unsigned i = 0; i < count; i++)
		if (traced[i] == copy)
			return true;
	if (copy && count < sizeof(traced) / sizeof(traced[0]))
		traced[count++] = copy;
	return false;
}

static void check_routine(const char *routine, const struct plan *plan, size_t widest)
{
	require_tracer();
	for (int store = 0; store < 2; store++) {
		struct judge judge;

		if (plan == &full && was_traced(judge_find_routine(routine, store)))
			continue;
		judge_direction(routine, plan, store, widest, &judge);
		CHECK_EQ(judge_finish(&judge, routine), 0);
		judge_free(&judge);
	}
}

static void device_type(void)
{
	check_routine("device", &brief, 8);
}

static void caching_type(void)
{
	check_routine("caching", &brief, 64);
}

static void up_to_16_mib(void)
{
	check_routine("auto", &large, 64);
}

/* A judge that catches nothing proves nothing.  step.c does this in both directions. */
static void planted_routines_are_caught(void)
{
	require_tracer();
	for (unsigned i = 0; i < judge_planted_count; i++) {
		const struct judge_planted *bad = &judge_planted[i];
		struct judge judge;

		judge_direction(bad->name, &tiny, i % 2, 8, &judge);
		CHECK(judge_finish(&judge, bad->name) > 0);
		CHECK(judge.faults[bad->fault] > 0);
		judge_free(&judge);
	}
}

#define ROUTINE(name)                                 \
	static void routine_##name(void)              \
	{                                             \
		check_routine(#name, &full, 64);      \
	}
#define ROUTINE_CASE(name) { #name, routine_##name }

ROUTINE(plain)
#if defined(__x86_64__)
ROUTINE(sse2)
ROUTINE(sse41)
ROUTINE(avx)
ROUTINE(avx2)
ROUTINE(avx512)
ROUTINE(movdir64b)
#elif defined(__aarch64__)
ROUTINE(neon)
ROUTINE(ls64)
#endif

static const struct harness_case cases[] = {
	ROUTINE_CASE(plain),
#if defined(__x86_64__)
	ROUTINE_CASE(sse2),
	ROUTINE_CASE(sse41),
	ROUTINE_CASE(avx),
	ROUTINE_CASE(avx2),
	ROUTINE_CASE(avx512),
	ROUTINE_CASE(movdir64b),
#elif defined(__aarch64__)
	ROUTINE_CASE(neon),
	ROUTINE_CASE(ls64),
#endif
	{ "device_type", device_type },
	{ "caching_type", caching_type },
	{ "up_to_16_mib", up_to_16_mib },
	{ "planted_routines_are_caught", planted_routines_are_caught },
};

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "--copies") == 0)
		return run_copies(argv + 2);
	return harness_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
