/* SPDX-License-Identifier: MIT */
/* NVML for the emulated devices: what they are, and what this process uses of them. */
#include "nvml.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "gdrcopy_emu.h"
#include "identity.h"

#define NVML_API __attribute__((visibility("default")))

struct nvmlDevice_st {
	int index;
};

static struct nvmlDevice_st devices[EMU_MAX_DEVICES];
static unsigned initialised;	/* nvmlInit calls without their nvmlShutdown */

/* The emulated driver's private entry: memory use is known there alone. */
const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void);

static bool ready(void)
{
	return __atomic_load_n(&initialised, __ATOMIC_ACQUIRE) > 0;
}

#define NVML_ENTER()                                     \
	do {                                             \
		if (!ready())                            \
			return NVML_ERROR_UNINITIALIZED; \
	} while (0)

#define NVML_ENTER_DEVICE(device)                            \
	do {                                                 \
		NVML_ENTER();                                \
		if (!is_device(device))                      \
			return NVML_ERROR_INVALID_ARGUMENT;  \
	} while (0)

static bool is_device(nvmlDevice_t device)
{
	for (int i = 0; i < emu_config_get()->devices; i++)
		if (device == &devices[i])
			return true;
	return false;
}

NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	if (emu_config_get()->error[0] != '\0') {
		fprintf(stderr, "emulated NVML: %s\n", emu_config_get()->error);
		return NVML_ERROR_UNKNOWN;
	}
	for (int i = 0; i < EMU_MAX_DEVICES; i++)
		__atomic_store_n(&devices[i].index, i, __ATOMIC_RELAXED);
	__atomic_add_fetch(&initialised, 1, __ATOMIC_RELEASE);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

NVML_API nvmlReturn_t nvmlShutdown(void)
{
	NVML_ENTER();
	__atomic_sub_fetch(&initialised, 1, __ATOMIC_RELEASE);
	return NVML_SUCCESS;
}

NVML_API const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NO_PERMISSION:
		return "Insufficient Permissions";
	case NVML_ERROR_ALREADY_INITIALIZED:
		return "Already Initialized";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	default:
		return "Unknown Error";
	}
}

static nvmlReturn_t put_text(char *out, unsigned length, const char *text)
{
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	NVML_ENTER();
	return put_text(version, length, "emulated");
}

NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	NVML_ENTER();
	return put_text(version, length, "13.emulated");
}

/* Works before nvmlInit, as the real one does. */
NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = emu_config_get()->driver_version;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	NVML_ENTER();
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = (unsigned)emu_config_get()->devices;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	NVML_ENTER();
	if (!device || index >= (unsigned)emu_config_get()->devices)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
	unsigned domain, bus, slot, function = 0;

	NVML_ENTER();
	if (!id || !device || sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (domain < EMU_PCI_DOMAIN || bus != 0 || slot != 0 || function != 0 ||
	    domain - EMU_PCI_DOMAIN >= (unsigned)emu_config_get()->devices)
		return NVML_ERROR_NOT_FOUND;
	*device = &devices[domain - EMU_PCI_DOMAIN];
	return NVML_SUCCESS;
}

/* "GPU-" and the 16 bytes in groups of 4, 2, 2, 2 and 6. */
static void format_uuid(int index, char text[48])
{
	unsigned char uuid[16];
	size_t at = 4;

	emu_identity_uuid(index, uuid);
	strcpy(text, "GPU-");
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		at += (size_t)snprintf(text + at, 48 - at, "%02x", uuid[i]);
	}
}

NVML_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	char text[48];

	NVML_ENTER_DEVICE(device);
	format_uuid(device->index, text);
	return put_text(uuid, length, text);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char text[48];

	NVML_ENTER();
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < emu_config_get()->devices; i++) {
		format_uuid(i, text);
		if (strcmp(uuid, text) == 0) {
			*device = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	NVML_ENTER_DEVICE(device);
	if (!index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned)device->index;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	NVML_ENTER_DEVICE(device);
	return put_text(name, length, EMU_DEVICE_NAME);
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	NVML_ENTER_DEVICE(device);
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(pci, 0, sizeof(*pci));
	pci->domain = EMU_PCI_DOMAIN + (unsigned)device->index;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:00:00.0", pci->domain);
	snprintf(pci->busId, sizeof(pci->busId), "%08X:00:00.0", pci->domain);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	uint64_t used, bar1;

	NVML_ENTER_DEVICE(device);
	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	gdrcopy_emu_entry_v1()->usage(device->index, &used, &bar1);
	memory->total = emu_config_get()->memory;
	memory->used = used;
	memory->free = memory->total - used;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1)
{
	uint64_t memory, used;

	NVML_ENTER_DEVICE(device);
	if (!bar1)
		return NVML_ERROR_INVALID_ARGUMENT;
	gdrcopy_emu_entry_v1()->usage(device->index, &memory, &used);
	bar1->bar1Total = emu_config_get()->bar1;
	bar1->bar1Used = used;
	bar1->bar1Free = bar1->bar1Total - used;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	NVML_ENTER_DEVICE(device);
	if (!mode)
		return NVML_ERROR_INVALID_ARGUMENT;
	*mode = emu_config_get()->exclusive ? NVML_COMPUTEMODE_EXCLUSIVE_PROCESS :
					      NVML_COMPUTEMODE_DEFAULT;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current,
					   unsigned *pending)
{
	NVML_ENTER_DEVICE(device);
	if (!current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*current = *pending = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
							 int *minor)
{
	NVML_ENTER_DEVICE(device);
	if (!major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = emu_config_get()->coherent ? 10 : 9;
	*minor = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link,
					       nvmlEnableState_t *active)
{
	NVML_ENTER_DEVICE(device);
	(void)link;
	(void)active;
	return NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
							  nvmlGpuTopologyLevel_t *level)
{
	NVML_ENTER_DEVICE(a);
	if (!is_device(b) || !level)
		return NVML_ERROR_INVALID_ARGUMENT;
	*level = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b,
					     nvmlGpuP2PCapsIndex_t index,
					     nvmlGpuP2PStatus_t *status)
{
	bool access = index == NVML_P2P_CAPS_INDEX_READ || index == NVML_P2P_CAPS_INDEX_WRITE;

	NVML_ENTER_DEVICE(a);
	if (!is_device(b) || a == b || !status || (unsigned)index > NVML_P2P_CAPS_INDEX_PROP)
		return NVML_ERROR_INVALID_ARGUMENT;
	*status = access && emu_config_get()->peer ? NVML_P2P_STATUS_OK :
						     NVML_P2P_STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}
