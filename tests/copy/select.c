/* SPDX-License-Identifier: MIT */
/*
 * The choice of routines: forced names, names that do not exist or that this
 * CPU cannot run, the automatic choice, and what is said about each.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copy/engine.h"
#include "harness.h"

/* Selects with stderr, where log lines go, caught in text. */
static void select_logged(const char *forced, enum gdri_log_level level,
			  struct gdri_copy_engine *engine, char text[1024])
{
	const struct gdri_log log = { .level = level };
	int kept = dup(STDERR_FILENO);
	int memory = memfd_create("log", MFD_CLOEXEC);
	ssize_t length;

	REQUIRE(kept >= 0 && memory >= 0);
	dup2(memory, STDERR_FILENO);
	gdri_copy_engine_select(forced, &log, engine);
	dup2(kept, STDERR_FILENO);
	close(kept);
	length = pread(memory, text, 1023, 0);
	close(memory);
	REQUIRE(length >= 0);
	text[length] = '\0';
}

static void check_complete(const struct gdri_copy_engine *engine)
{
	for (int type = GDR_MAPPING_TYPE_WC; type < GDR_MAPPING_TYPE_MAX; type++) {
		CHECK(engine->to_mapping[type] != NULL);
		CHECK(engine->from_mapping[type] != NULL);
	}
}

static bool same_choice(const struct gdri_copy_engine *a, const struct gdri_copy_engine *b)
{
	return strcmp(a->store_name, b->store_name) == 0 &&
	       strcmp(a->load_name, b->load_name) == 0 &&
	       a->to_mapping[GDR_MAPPING_TYPE_WC] == b->to_mapping[GDR_MAPPING_TYPE_WC] &&
	       a->from_mapping[GDR_MAPPING_TYPE_WC] == b->from_mapping[GDR_MAPPING_TYPE_WC];
}

/* Whether name is a routine of this build that this CPU runs. */
static bool is_usable(const char *name)
{
	const char *known;
	bool usable;

	for (unsigned i = 0; (known = gdri_copy_routine_name(i, &usable)); i++)
		if (strcmp(known, name) == 0)
			return usable;
	return false;
}

static void automatic(void)
{
	struct gdri_copy_engine none, empty;
	char text[1024];

	select_logged(NULL, GDRI_LOG_INFO, &none, text);
	CHECK(text[0] == '\0');
	select_logged("", GDRI_LOG_INFO, &empty, text);
	CHECK(text[0] == '\0');
	check_complete(&none);
	CHECK(same_choice(&none, &empty));
	CHECK(is_usable(none.store_name));
	CHECK(is_usable(none.load_name));
}

/* A debug line names what was chosen. */
static void choice_is_logged(void)
{
	struct gdri_copy_engine engine;
	char text[1024];

	select_logged("plain", GDRI_LOG_DEBUG, &engine, text);
	CHECK(strstr(text, "stores by plain, loads by plain") != NULL);
}

/* Each usable name is obeyed in silence; one that only stores lends the best load. */
static void forced_names(void)
{
	struct gdri_copy_engine engine, automatic_choice;
	char text[1024];
	const char *name;
	bool usable;

	select_logged(NULL, GDRI_LOG_INFO, &automatic_choice, text);
	for (unsigned i = 0; (name = gdri_copy_routine_name(i, &usable)); i++) {
		if (!usable)
			continue;
		select_logged(name, GDRI_LOG_INFO, &engine, text);
		CHECK(text[0] == '\0');
		check_complete(&engine);
		CHECK(strcmp(engine.store_name, name) == 0);
		if (strcmp(name, "movdir64b") == 0)
			CHECK(strcmp(engine.load_name, automatic_choice.load_name) == 0);
		else
			CHECK(strcmp(engine.load_name, name) == 0);
	}
}

static void check_refused(const char *name, const char *reason)
{
	struct gdri_copy_engine engine, automatic_choice;
	char text[1024];

	select_logged(NULL, GDRI_LOG_WARN, &automatic_choice, text);
	select_logged(name, GDRI_LOG_WARN, &engine, text);
	CHECK(strstr(text, name) != NULL);
	CHECK(strstr(text, reason) != NULL);
	CHECK(strchr(text, '\n') == text + strlen(text) - 1);
	CHECK(same_choice(&engine, &automatic_choice));
	select_logged(name, GDRI_LOG_OFF, &engine, text);
	CHECK(text[0] == '\0');
}

static void unknown_name(void)
{
	check_refused("mmx", "names no copy routine");
	check_refused("AVX", "names no copy routine");
	check_refused("avx5", "names no copy routine");
}

static void name_of_another_cpu(void)
{
#if defined(__x86_64__)
	check_refused("neon", "names no copy routine");
#else
	check_refused("avx", "names no copy routine");
#endif
}

static void name_that_the_cpu_cannot_run(void)
{
	const char *name;
	unsigned count = 0;
	bool usable;

	for (unsigned i = 0; (name = gdri_copy_routine_name(i, &usable)); i++) {
		if (usable)
			continue;
		check_refused(name, "this CPU cannot run");
		count++;
	}
	if (count == 0)
		SKIP("this CPU runs every routine of this build");
}

static void names_end(void)
{
	bool usable = false;
	unsigned count = 0;

	while (gdri_copy_routine_name(count, &usable))
		count++;
	CHECK(count >= 1);
	CHECK(gdri_copy_routine_name(count + 1, &usable) == NULL);
	CHECK(gdri_copy_routine_name(~0u, &usable) == NULL);
	CHECK(is_usable("plain"));
}

static const struct harness_case cases[] = {
	{ "automatic", automatic },
	{ "choice_is_logged", choice_is_logged },
	{ "forced_names", forced_names },
	{ "unknown_name", unknown_name },
	{ "name_of_another_cpu", name_of_another_cpu },
	{ "name_that_the_cpu_cannot_run", name_that_the_cpu_cannot_run },
	{ "names_end", names_end },
};

HARNESS_MAIN(cases)
