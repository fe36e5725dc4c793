/* SPDX-License-Identifier: MIT */
/* The environment variables: what they choose, what is logged, and silence without them. */
#include "api/helper_case.h"
#include "api/helper_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lines that gdr_open writes, and the session that it gives. */
static const char *open_captured(gdr_t *g, int *lines)
{
	api_capture_begin();
	*g = gdr_open();
	return api_capture_end(lines);
}

/* Each line of the text begins with one of the prefixes. */
static bool has_only(const char *text, const char *prefixes)
{
	while (*text != '\0') {
		if (strncmp(text + 3, ":  ", 3) != 0 && strncmp(text + 4, ": ", 2) != 0)
			return false;
		if (!strchr(prefixes, text[0]))
			return false;
		text = strchr(text, '\n');
		if (!text)
			return false;	/* no line is left open */
		text++;
	}
	return true;
}

static bool machine_has_a_driver(void)
{
	return access("/dev/gdrdrv", F_OK) == 0 || access("/dev/nvidiactl", F_OK) == 0;
}

/* Good and bad calls of all kinds; some print through a library that logs. */
static void call_everything(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	gdr_mh_t none = { 12345 }, handle;
	void *va;
	int a, b;

	CHECK_EQ(gdr_pin_buffer(mapping.g, 4096, 10, 0, 0, &handle), EINVAL);
	CHECK_EQ(gdr_pin_buffer(mapping.g, mapping.buffer.ptr, 0, 0, 0, &handle), EINVAL);
	CHECK_EQ(gdr_map(mapping.g, mapping.handle, &va, MIB), EAGAIN);
	CHECK_EQ(gdr_map(mapping.g, none, &va, MIB), EINVAL);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, NULL, MIB), EINVAL);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, none), EINVAL);
	CHECK_EQ(gdr_copy_to_mapping(none, NULL, NULL, 8), EINVAL);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, NULL, &a, 8), EINVAL);
	CHECK_EQ(gdr_get_attribute(mapping.g, GDR_ATTR_MAX, &a), EINVAL);
	CHECK_EQ(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_MAX, NULL), EINVAL);
	CHECK_EQ(gdr_driver_get_version(NULL, &a, &b), EINVAL);
	CHECK_EQ(gdr_close(NULL), EINVAL);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, SIZE_MAX), 0);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	CHECK_EQ(gdr_close(mapping.g), 0);
	setenv("GDRCOPY_BACKEND", "bogus", 1);
	CHECK(gdr_open() == NULL);
	setenv("GDRCOPY_BACKEND", "gdrdrv", 1);
	if (!machine_has_a_driver())
		CHECK(gdr_open() == NULL);
	gpu_free(mapping.buffer);
}

/* R26. GDRCOPY_LOG_LEVEL alone switches nothing on. */
static void silent_without_logging(void)
{
	int stdout_copy = dup(STDOUT_FILENO), lines;
	const char *text;

	fflush(stdout);
	api_capture_begin();
	dup2(STDERR_FILENO, STDOUT_FILENO);
	call_everything();
	fflush(stdout);
	dup2(stdout_copy, STDOUT_FILENO);
	text = api_capture_end(&lines);
	if (!CHECK_EQ(strlen(text), 0))
		fputs(text, stderr);
	close(stdout_copy);
}

static void errors_by_default(void)
{
	const char *text;
	int lines;

	api_capture_begin();
	call_everything();
	text = api_capture_end(&lines);
	CHECK(lines >= 12);
	CHECK(has_only(text, "E"));
}

static void level_1(void)
{
	const char *text;
	int lines;
	gdr_t g;

	text = open_captured(&g, &lines);
	CHECK(strstr(text, "\nINFO: gdr_open: back end emu") || strncmp(text, "INFO: ", 6) == 0);
	CHECK(strstr(text, "DBG:  ") != NULL);
	CHECK(has_only(text, "DI"));
	CHECK_EQ(gdr_close(g), 0);
}

static void level_2(void)
{
	const char *text;
	int lines;
	gdr_t g;

	text = open_captured(&g, &lines);
	CHECK_EQ(lines, 1);
	CHECK(strncmp(text, "INFO: gdr_open: back end emu, stores by ", 40) == 0);
	CHECK_EQ(gdr_close(g), 0);
}

static void unknown_copy_routine_warns(void)
{
	const char *text;
	int lines;
	gdr_t g;

	text = open_captured(&g, &lines);
	CHECK_EQ(lines, 1);
	CHECK(strncmp(text, "WARN: GDRCOPY_COPY=bogus", 24) == 0);
	REQUIRE(g != NULL);
	CHECK_EQ(gdr_close(g), 0);
}

static void plain_copy_routine(void)
{
	const char *text;
	int lines;
	gdr_t g;

	text = open_captured(&g, &lines);
	CHECK(strstr(text, "stores by plain, loads by plain") != NULL);
	CHECK_EQ(gdr_close(g), 0);
}

static void unknown_level_is_named(void)
{
	static const char *const levels[] = { "0", "5", "11", "", "debug", "-1", " 1", "4 " };
	const char *text;
	int lines;
	gdr_t g;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		setenv("GDRCOPY_LOG_LEVEL", levels[i], 1);
		text = open_captured(&g, &lines);
		CHECK_EQ(lines, 1);
		CHECK(strncmp(text, "ERR:  GDRCOPY_LOG_LEVEL=", 24) == 0);
		/* Said once a session, not with every error. */
		CHECK_REFUSED(gdr_close(NULL), EINVAL, "gdr_close");
		CHECK_EQ(gdr_close(g), 0);
	}
}

/* One line names the variable; the session opens with the default. */
static void unknown_dma_settings_are_named(void)
{
	static const char *const bad[] = { "2", "yes", "min", "min=", "min=-1", "min=4X", "min=4KK",
					   "min=99999999999999999999", "min=20000000000G", "0 " };
	static const char *const good[] = { "", "0", "1", "min=0", "min=65536", "min=64K",
					    "min=0x1000", "min=1g" };
	int lines;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *text;
		gdr_t g;

		setenv("GDRCOPY_DMA", bad[i], 1);
		text = open_captured(&g, &lines);
		CHECK_EQ(lines, 1);
		CHECK(strncmp(text, "ERR:  GDRCOPY_DMA=", 18) == 0);
		CHECK_EQ(gdr_close(g), 0);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		gdr_t g;

		setenv("GDRCOPY_DMA", good[i], 1);
		setenv("GDRCOPY_CALIBRATION", i & 1 ? "0" : "1", 1);
		open_captured(&g, &lines);
		CHECK_EQ(lines, 0);
		CHECK_EQ(gdr_close(g), 0);
	}
	setenv("GDRCOPY_CALIBRATION", "often", 1);
	CHECK_REFUSED(gdr_close(gpu_open()), 0, "GDRCOPY_CALIBRATION=often");
}

/* Settings belong to the session: what changes later is for the next one. */
static void settings_are_read_at_open(void)
{
	gdr_t quiet = gpu_open(), loud;
	gdr_mh_t handle;
	int lines;

	setenv("GDRCOPY_ENABLE_LOGGING", "", 1);
	loud = gpu_open();
	unsetenv("GDRCOPY_ENABLE_LOGGING");
	setenv("GDRCOPY_BACKEND", "bogus", 1);
	api_capture_begin();
	CHECK_EQ(gdr_pin_buffer(quiet, 4096, 1, 0, 0, &handle), EINVAL);
	api_capture_end(&lines);
	CHECK_EQ(lines, 0);
	CHECK_REFUSED(gdr_pin_buffer(loud, 4096, 0, 0, 0, &handle), EINVAL, "size 0");
	CHECK_EQ(gdr_close(loud), 0);
	CHECK_EQ(gdr_close(quiet), 0);
}

/* Nothing opens: one line for each back end that was tried, in their order. */
static void check_reasons(const char *setting, const char *const *names, int count)
{
	const char *text;
	int lines;
	gdr_t g;

	text = open_captured(&g, &lines);
	CHECK(g == NULL);
	if (!CHECK_EQ(lines, count) || !CHECK(has_only(text, "E")))
		fprintf(stderr, "%s: %s", setting, text);
	for (int i = 0; i < count; i++) {
		char start[64];
		const char *next = strchr(text, '\n');

		snprintf(start, sizeof(start), "ERR:  gdr_open: %s: ", names[i]);
		if (!CHECK(strncmp(text, start, strlen(start)) == 0))
			fprintf(stderr, "%s: %s", setting, text);
		/* The step, its number and what to do make more than a few words. */
		CHECK(next && next - text > (ptrdiff_t)strlen(start) + 30);
		text = next ? next + 1 : "";
	}
}

static void forced_back_ends(void)
{
	static const char *const all[] = { "gdrdrv", "dmabuf", "nvrm" };

	if (machine_has_a_driver())
		SKIP("this machine has a driver");
	for (int i = 0; i < 3; i++) {
		setenv("GDRCOPY_BACKEND", all[i], 1);
		check_reasons(all[i], &all[i], 1);
	}
	setenv("GDRCOPY_BACKEND", "auto", 1);
	check_reasons("auto", all, 3);
	setenv("GDRCOPY_BACKEND", "", 1);
	check_reasons("empty", all, 3);
	unsetenv("GDRCOPY_BACKEND");
	check_reasons("unset", all, 3);
}

static void dmabuf_or_nothing(void)
{
	static const char *const all[] = { "gdrdrv", "dmabuf", "nvrm" };
	static const char *const others[] = { "0", "2", "", "yes", "11", "true" };

	if (machine_has_a_driver())
		SKIP("this machine has a driver");
	unsetenv("GDRCOPY_BACKEND");
	setenv("GDRCOPY_USE_DMABUF_MMAP", "1", 1);
	check_reasons("GDRCOPY_USE_DMABUF_MMAP=1", &all[1], 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		setenv("GDRCOPY_USE_DMABUF_MMAP", others[i], 1);
		check_reasons("GDRCOPY_USE_DMABUF_MMAP", all, 3);
	}
	/* A back end that is named beats it. */
	setenv("GDRCOPY_USE_DMABUF_MMAP", "1", 1);
	setenv("GDRCOPY_BACKEND", "nvrm", 1);
	check_reasons("nvrm and GDRCOPY_USE_DMABUF_MMAP=1", &all[2], 1);
	setenv("GDRCOPY_BACKEND", "emu", 1);
	CHECK_EQ(gdr_close(gpu_open()), 0);
}

static void dmabuf_works_when_the_driver_has_it(void)
{
	gdr_t g = gpu_open();
	int value = 0, major = 0, minor = 0;

	CHECK_EQ(gdr_get_attribute(g, GDR_ATTR_USING_DMA_BUF_MMAP, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(gdr_driver_get_version(g, &major, &minor), 0);
	CHECK_EQ(major, 2);
	CHECK_EQ(minor, 6);
	CHECK_EQ(gdr_close(g), 0);
}

static void unknown_back_end(void)
{
	static const char *const names[] = { "bogus", "EMU", "emu ", "gdrdrvgdrdrvgdrdrvgdrdrv" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text;
		int lines;
		gdr_t g;

		setenv("GDRCOPY_BACKEND", names[i], 1);
		text = open_captured(&g, &lines);
		CHECK(g == NULL);
		CHECK_EQ(lines, 1);
		CHECK(strncmp(text, "ERR:  ", 6) == 0);
		CHECK(strstr(text, "gdrdrv, dmabuf, nvrm, emu, auto") != NULL);
	}
}

static void broken_emulator_settings(void)
{
	const char *text;
	int lines;
	gdr_t g;

	text = open_captured(&g, &lines);
	CHECK(g == NULL);
	CHECK_EQ(lines, 1);
	CHECK(strncmp(text, "ERR:  gdr_open: emu: ", 21) == 0);
	CHECK(strstr(text, "colour=red") != NULL);
}

static const struct api_case cases[] = {
	{ "silent_without_logging", silent_without_logging, NULL },
	{ "level_alone_is_silent", silent_without_logging, "GDRCOPY_LOG_LEVEL=1" },
	{ "errors_by_default", errors_by_default, "GDRCOPY_ENABLE_LOGGING=0" },
	{ "level_1", level_1, "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=1" },
	{ "level_2", level_2, "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=2" },
	{ "level_4", errors_by_default,
	  "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=4" },
	{ "unknown_copy_routine_warns", unknown_copy_routine_warns,
	  "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=3 GDRCOPY_COPY=bogus" },
	{ "plain_copy_routine", plain_copy_routine,
	  "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=2 GDRCOPY_COPY=plain" },
	{ "unknown_level_is_named", unknown_level_is_named, "GDRCOPY_ENABLE_LOGGING=1" },
	{ "unknown_dma_settings_are_named", unknown_dma_settings_are_named,
	  "GDRCOPY_ENABLE_LOGGING=1" },
	{ "settings_are_read_at_open", settings_are_read_at_open, NULL },
	{ "forced_back_ends", forced_back_ends, "GDRCOPY_ENABLE_LOGGING=1" },
	{ "dmabuf_or_nothing", dmabuf_or_nothing, "GDRCOPY_ENABLE_LOGGING=1" },
	{ "dmabuf_works_when_the_driver_has_it", dmabuf_works_when_the_driver_has_it,
	  "GDRCOPY_BACKEND=auto GDRCOPY_USE_DMABUF_MMAP=1 GDRCOPY_EMU=driver=13030" },
	{ "unknown_back_end", unknown_back_end, "GDRCOPY_ENABLE_LOGGING=1" },
	{ "broken_emulator_settings", broken_emulator_settings,
	  "GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_EMU=colour=red" },
};

API_MAIN(cases)
