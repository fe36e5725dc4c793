/* SPDX-License-Identifier: MIT */
/* Opens a session and maps a buffer for a tool. */
#include "mapping.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "report.h"

#define LOGGING_HINT "GDRCOPY_ENABLE_LOGGING=1 shows the reason"

void gdr_check(int error, const char *call)
{
	if (error)
		fail("%s failed with %d (%s); " LOGGING_HINT, call, error, strerror(error));
}

gdr_t session_open(void)
{
	gdr_t g = gdr_open();

	if (!g)
		fail("gdr_open error: Is gdrdrv driver installed and loaded? "
		     "(GDRCOPY_ENABLE_LOGGING=1 shows what each back end lacks)");
	return g;
}

void pin_failed(const struct gpu *gpu, size_t size, int error)
{
	if (!gpu->rdma)
		fail_with(TOOL_UNSUPPORTED,
			  "GPU %d (%s) has no GPUDirect RDMA support, so its memory cannot be "
			  "pinned: use a data-centre or professional GPU", gpu->ordinal, gpu->name);
	if (error == ENOMEM)
		fail("pinning %zu bytes failed: BAR1 or host memory is exhausted "
		     "(gdrcopy_info shows the use of BAR1; try a smaller size)", size);
	fail("gdr_pin_buffer failed with %d (%s) for %zu bytes; " LOGGING_HINT, error,
	     strerror(error), size);
}

static void map_failed(int map_flags, int error)
{
	const char *type = "default";

	gdr_get_mapping_type_string((gdr_mapping_type_t)map_flags, &type);
	if (map_flags != GDR_MAP_FLAG_DEFAULT)
		fail("a mapping of type %s is refused here with %d (%s): try -M default", type,
		     error, strerror(error));
	gdr_check(error, "gdr_map");
}

void mapping_open(const struct gpu *gpu, const struct gpu_buffer *buffer, int map_flags,
		  struct mapping *mapping)
{
	int error;

	mapping->size = buffer->size;
	mapping->g = session_open();
	error = gdr_pin_buffer(mapping->g, buffer->ptr, buffer->size, 0, 0, &mapping->handle);
	if (error)
		pin_failed(gpu, buffer->size, error);
	error = gdr_map_v2(mapping->g, mapping->handle, &mapping->base, mapping->size, map_flags);
	if (error)
		map_failed(map_flags, error);
	GDR(gdr_get_info, mapping->g, mapping->handle, &mapping->info);
	mapping->ptr = (char *)mapping->base + (buffer->ptr - mapping->info.va);
}

void mapping_unmap(struct mapping *mapping)
{
	GDR(gdr_unmap, mapping->g, mapping->handle, mapping->base, mapping->size);
}

void mapping_unpin(struct mapping *mapping)
{
	GDR(gdr_unpin_buffer, mapping->g, mapping->handle);
}

void session_close(struct mapping *mapping)
{
	GDR(gdr_close, mapping->g);
}

void mapping_close(struct mapping *mapping)
{
	mapping_unmap(mapping);
	mapping_unpin(mapping);
	session_close(mapping);
}

/* The file of the mapping that holds an address; path is "" for memory without one. */
static void find_path(const void *ptr, char *path, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[1024];
	int at;

	path[0] = '\0';
	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) != 2)
			continue;
		if ((unsigned long)ptr < start || (unsigned long)ptr >= end)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, size, "%s", line + at);
		break;
	}
	fclose(maps);
}

const char *mapping_backend(const struct mapping *mapping)
{
	static const struct {
		const char *prefix;
		const char *backend;
	} known[] = {
		{ "/dev/gdrdrv", "gdrdrv" },
		{ "/dev/nvidia", "nvrm" },
		{ "/memfd:", "emu" }
	};
	const char *asked = getenv("GDRCOPY_BACKEND");
	char path[512];
	int dmabuf = 0;

	/* Emulated dma-bufs are memfds, so the attribute is asked first. */
	if (!gdr_get_attribute(mapping->g, GDR_ATTR_USING_DMA_BUF_MMAP, &dmabuf) && dmabuf)
		return "dmabuf";
	find_path(mapping->base, path, sizeof(path));
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(path, known[i].prefix, strlen(known[i].prefix)) == 0)
			return known[i].backend;
	/* A forced back end that could not be had would have failed at open. */
	return asked && asked[0] ? asked : "unknown";
}

void mapping_report(const struct mapping *mapping)
{
	const char *routine = getenv("GDRCOPY_COPY");
	const char *type = "unknown";

	gdr_get_mapping_type_string(mapping->info.mapping_type, &type);
	say("back end: %s\nmapping type: %s\n", mapping_backend(mapping), type);
	if (routine && routine[0])
		say("copy routine: %s (GDRCOPY_COPY)\n", routine);
	json_string("back_end", mapping_backend(mapping));
	json_string("mapping_type", type);
	json_string("copy_routine", routine && routine[0] ? routine : "automatic");
}
