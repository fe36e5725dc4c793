/* SPDX-License-Identifier: MIT */
/* Sets the stand-in's knobs from a shell: emuctl coherent=1 table_flags=1 ...; none: defaults. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "bench.h"

static const struct {
	const char *name;
	size_t offset;
} knobs[] = {
	{ "scattered", offsetof(struct nvidia_emu_settings, scattered) },
	{ "table_flags", offsetof(struct nvidia_emu_settings, table_flags) },
	{ "coherent", offsetof(struct nvidia_emu_settings, coherent) },
	{ "reserve_wc", offsetof(struct nvidia_emu_settings, reserve_wc) },
};

static int set_knob(struct nvidia_emu_settings *settings, const char *text)
{
	size_t length = strcspn(text, "=");

	for (unsigned i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (strlen(knobs[i].name) == length && strncmp(knobs[i].name, text, length) == 0 &&
		    text[length] == '=') {
			*(uint32_t *)((char *)settings + knobs[i].offset) =
				(uint32_t)strtoul(text + length + 1, NULL, 0);
			return 0;
		}
	fprintf(stderr, "emuctl: %s is not understood\n", text);
	return 1;
}

int main(int argc, char **argv)
{
	struct nvidia_emu_settings settings = bench_defaults();
	int fd = open(NVIDIA_EMU_PATH, O_RDWR);

	for (int i = 1; i < argc; i++)
		if (set_knob(&settings, argv[i]) != 0)
			return 1;
	if (fd < 0 || ioctl(fd, NVIDIA_EMU_SET_SETTINGS, &settings) != 0) {
		perror("emuctl");
		return 1;
	}
	return 0;
}
