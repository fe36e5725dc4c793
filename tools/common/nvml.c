/* SPDX-License-Identifier: MIT */
/* Asks NVML for the BAR1 window of a GPU. */
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>

typedef struct nvml_device *nvml_device;

/* nvmlBAR1Memory_t. */
struct bar1_memory {
	unsigned long long total, free, used;
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*find)(const char *bus_id, nvml_device *device);
	int (*bar1)(nvml_device device, struct bar1_memory *memory);
};

static const char *load(struct nvml *nvml)
{
	nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library)
		return "libnvidia-ml.so.1 cannot be loaded";
	*(void **)&nvml->init = dlsym(nvml->library, "nvmlInit_v2");
	*(void **)&nvml->shutdown = dlsym(nvml->library, "nvmlShutdown");
	*(void **)&nvml->find = dlsym(nvml->library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml->bar1 = dlsym(nvml->library, "nvmlDeviceGetBAR1MemoryInfo");
	if (nvml->init && nvml->shutdown && nvml->find && nvml->bar1)
		return NULL;
	return "libnvidia-ml.so.1 lacks a call";
}

static const char *ask(const struct nvml *nvml, const char *bus_id, struct nvml_bar1 *bar1)
{
	struct bar1_memory memory = { 0 };
	static char line[64];
	nvml_device device;
	char address[24];
	int ret;

	ret = nvml->init();
	if (ret) {
		snprintf(line, sizeof(line), "nvmlInit answers %d", ret);
		return line;
	}
	snprintf(address, sizeof(address), "%s.0", bus_id);
	ret = nvml->find(address, &device);
	if (!ret)
		ret = nvml->bar1(device, &memory);
	nvml->shutdown();
	if (ret) {
		snprintf(line, sizeof(line), "NVML answers %d", ret);
		return line;
	}
	bar1->total = memory.total;
	bar1->used = memory.used;
	return NULL;
}

const char *nvml_read_bar1(const char *bus_id, struct nvml_bar1 *bar1)
{
	struct nvml nvml = { 0 };
	const char *why = load(&nvml);

	if (!why)
		why = ask(&nvml, bus_id, bar1);
	if (nvml.library)
		dlclose(nvml.library);
	return why;
}
