#!/bin/bash
# SPDX-License-Identifier: MIT
# A plug-in with the static library in it is unloaded while a thread that copied
# sleeps: the kernel must not look for anything in the plug-in when it wakes up.
set -u
cd "$(dirname "$0")/../.." || exit 2
LIB=$(realpath "${GDRCOPY_LIBDIR:-src/userspace}")
EMU=$(realpath "${GDRCOPY_BUILD:-build}/emu")
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT

cat >"$WORK/plugin.c" <<'END'
#include <stdint.h>
#include "cuda.h"
#include "gdrapi.h"

static CUdeviceptr memory;
static gdr_mh_t handle;
static void *va;
static gdr_t g;

int plugin_start(void)
{
	CUcontext context;

	return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	       cuMemAlloc(&memory, 2 * GPU_PAGE_SIZE) || !(g = gdr_open()) ||
	       gdr_pin_buffer(g, memory, GPU_PAGE_SIZE, 0, 0, &handle) ||
	       gdr_map(g, handle, &va, GPU_PAGE_SIZE);
}

int plugin_copy(void)
{
	const uint64_t word = 1;

	return gdr_copy_to_mapping(handle, va, &word, sizeof(word));
}

int plugin_stop(void)
{
	return gdr_close(g) || cuMemFree(memory);
}
END

cat >"$WORK/program.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int (*start)(void), (*copy)(void), (*stop)(void);
static int wake[2], asleep[2];

/* Copies last of all, then sleeps until the plug-in is gone. */
static void *copy_and_sleep(void *arg)
{
	char byte = 0;

	*(int *)arg = copy();
	if (write(asleep[1], &byte, 1) != 1 || read(wake[0], &byte, 1) != 1)
		*(int *)arg = 99;
	for (clock_t end = clock() + CLOCKS_PER_SEC / 20; clock() < end;)
		continue;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	int rc[4];
	void *plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
	char byte = 0;

	if (!plugin || pipe(wake) || pipe(asleep))
		return fprintf(stderr, "%s\n", dlerror()), 2;
	start = (int (*)(void))dlsym(plugin, "plugin_start");
	copy = (int (*)(void))dlsym(plugin, "plugin_copy");
	stop = (int (*)(void))dlsym(plugin, "plugin_stop");
	if (start())
		return 3;
	for (int i = 0; i < 4; i++) {
		pthread_create(&threads[i], NULL, copy_and_sleep, &rc[i]);
		if (read(asleep[0], &byte, 1) != 1)
			return 4;
	}
	copy();
	if (stop() || dlclose(plugin))
		return 5;
	if (dlopen(argv[argc - 1], RTLD_NOW | RTLD_NOLOAD))
		return 6;
	for (int i = 0; i < 4; i++)
		if (write(wake[1], &byte, 1) != 1)
			return 7;
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		if (rc[i])
			return 8;
	}
	return 0;
}
END

gcc -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -Iinclude -Isrc/emu/include \
	-o "$WORK/plugin.so" "$WORK/plugin.c" -L"$LIB" -l:libgdrapi.a -L"$EMU" -lcuda -ldl -lpthread &&
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o "$WORK/program" "$WORK/program.c" -ldl -lpthread || {
	echo "not ok plugin-builds"
	exit 1
}
if LD_LIBRARY_PATH=$EMU GDRCOPY_BACKEND=emu "$WORK/program" "$WORK/plugin.so"; then
	echo "ok static-library-unloads"
else
	echo "not ok static-library-unloads (status $?)"
	exit 1
fi
