/* SPDX-License-Identifier: MIT */
/* NVML's view of the emulated devices agrees with CUDA's. */
#include "nvml.h"

#include <string.h>

#include "helper_case.h"

static void identity(void)
{
	char text[96], id[32];
	nvmlDevice_t device, again;
	nvmlPciInfo_t pci;
	unsigned count, index;

	CHECK_EQ(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
	REQUIRE_EQ(nvmlInit(), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetCount(&count), NVML_SUCCESS);
	CHECK_EQ(count, 2);
	CHECK_EQ(nvmlDeviceGetHandleByIndex(2, &device), NVML_ERROR_INVALID_ARGUMENT);
	REQUIRE_EQ(nvmlDeviceGetHandleByIndex(1, &device), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetName(device, text, sizeof(text)), NVML_SUCCESS);
	CHECK(strstr(text, "Emulated") != NULL);
	CHECK_EQ(nvmlDeviceGetName(device, text, 4), NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQ(nvmlDeviceGetUUID(device, text, sizeof(text)), NVML_SUCCESS);
	CHECK_EQ(strlen(text), 40);
	CHECK_EQ(nvmlDeviceGetHandleByUUID(text, &again), NVML_SUCCESS);
	CHECK(again == device);
	CHECK_EQ(nvmlDeviceGetPciInfo(device, &pci), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetHandleByPciBusId(pci.busId, &again), NVML_SUCCESS);
	CHECK(again == device);
	CHECK_EQ(nvmlDeviceGetIndex(again, &index), NVML_SUCCESS);
	CHECK_EQ(index, 1);
	REQUIRE_CU(cuInit(0));
	CHECK_CU(cuDeviceGetPCIBusId(id, sizeof(id), 1));
	CHECK_EQ(nvmlDeviceGetHandleByPciBusId(id, &again), NVML_SUCCESS);
	CHECK(again == device);
	CHECK_EQ(nvmlDeviceGetHandleByPciBusId("0000:01:00.0", &again), NVML_ERROR_NOT_FOUND);
	CHECK_EQ(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
	CHECK(strcmp(text, "emulated") == 0);
	CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
	CHECK_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static void memory(void)
{
	nvmlBAR1Memory_t bar1;
	nvmlDevice_t device;
	nvmlMemory_t info;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_EQ(nvmlInit(), NVML_SUCCESS);
	REQUIRE_EQ(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
	REQUIRE_CU(cuMemAlloc(&ptr, 3 << 20));
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &info), NVML_SUCCESS);
	CHECK_EQ(info.total, 64 << 20);
	CHECK_EQ(info.used, 4 << 20);
	CHECK_EQ(info.free, 60 << 20);
	CHECK_EQ(nvmlDeviceGetBAR1MemoryInfo(device, &bar1), NVML_SUCCESS);
	CHECK_EQ(bar1.bar1Total, 32 << 20);
	CHECK_EQ(bar1.bar1Used, 0);
}

static void modes(void)
{
	nvmlDevice_t a, b;
	nvmlComputeMode_t mode;
	nvmlEnableState_t active;
	nvmlGpuP2PStatus_t status;
	nvmlGpuTopologyLevel_t level;
	unsigned current, pending;

	REQUIRE_EQ(nvmlInit(), NVML_SUCCESS);
	REQUIRE_EQ(nvmlDeviceGetHandleByIndex(0, &a), NVML_SUCCESS);
	REQUIRE_EQ(nvmlDeviceGetHandleByIndex(1, &b), NVML_SUCCESS);
	CHECK_EQ(nvmlDeviceGetComputeMode(a, &mode), NVML_SUCCESS);
	CHECK_EQ(mode, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
	CHECK_EQ(nvmlDeviceGetMigMode(a, &current, &pending), NVML_SUCCESS);
	CHECK_EQ(current, NVML_DEVICE_MIG_DISABLE);
	CHECK_EQ(nvmlDeviceGetNvLinkState(a, 0, &active), NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQ(nvmlDeviceGetP2PStatus(a, b, NVML_P2P_CAPS_INDEX_READ, &status), NVML_SUCCESS);
	CHECK_EQ(status, NVML_P2P_STATUS_NOT_SUPPORTED);
	CHECK_EQ(nvmlDeviceGetTopologyCommonAncestor(a, b, &level), NVML_SUCCESS);
	CHECK_EQ(level, NVML_TOPOLOGY_SYSTEM);
}

static const struct emu_case cases[] = {
	{ .name = "identity", .emu = "devices=2", .run = identity },
	{ .name = "memory", .emu = "mem=64M,bar1=32M", .run = memory },
	{ .name = "modes", .emu = "devices=2,exclusive,no-peer", .run = modes },
};

EMU_CASE_MAIN(cases)
