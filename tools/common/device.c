/* SPDX-License-Identifier: MIT */
/* Lists the GPUs and selects one. */
#include "device.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "report.h"
#include "topology.h"
#include "versions.h"

static int attribute_of(CUdevice device, int attribute)
{
	int value = 0;

	CU(cuDeviceGetAttribute, &value, attribute, device);
	return value;
}

void gpu_describe(int ordinal, struct gpu *gpu)
{
	int rdma = 0;

	*gpu = (struct gpu){ .ordinal = ordinal };
	CU(cuDeviceGet, &gpu->device, ordinal);
	CU(cuDeviceGetName, gpu->name, sizeof(gpu->name), gpu->device);
	snprintf(gpu->bus_id, sizeof(gpu->bus_id), "%04x:%02x:%02x",
		 attribute_of(gpu->device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) & 0xffff,
		 attribute_of(gpu->device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) & 0xff,
		 attribute_of(gpu->device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) & 0xff);
	/* Drivers before 11.3 do not know the attribute; there a pin has to tell. */
	if (CU_TRY(cuDeviceGetAttribute, &rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
		   gpu->device) != CUDA_SUCCESS)
		rdma = 1;
	gpu->rdma = rdma != 0;
	gpu->emulated = strncmp(gpu->name, "Emulated GPU", strlen("Emulated GPU")) == 0;
	gpu->numa_node = topology_gpu_node("/sys", gpu->bus_id);
}

/* A thread on the wrong node measures the link between the sockets. */
static void place_thread(const struct gpu *gpu, bool bind)
{
	const char *warning;
	int ret;

	if (bind && gpu->numa_node >= 0) {
		ret = topology_bind("/sys", gpu->numa_node);
		if (ret)
			warn("cannot bind to NUMA node %d: %s", gpu->numa_node, strerror(-ret));
	}
	warning = topology_warning(gpu->numa_node, topology_cpu_node());
	if (warning)
		warn("%s", warning);
}

static void report_gpu(const struct gpu *gpu)
{
	json_open_object("gpu");
	json_uint("id", (uint64_t)gpu->ordinal);
	json_string("name", gpu->name);
	json_string("bus_id", gpu->bus_id);
	json_bool("emulated", gpu->emulated);
	json_bool("gpu_direct_rdma", gpu->rdma);
	if (gpu->numa_node >= 0)
		json_uint("numa_node", (uint64_t)gpu->numa_node);
	json_close();
}

void gpu_select(int ordinal, bool bind, struct gpu *gpu)
{
	int count = 0;

	cuda_driver_load();
	CU(cuDeviceGetCount, &count);
	if (count == 0)
		fail("CUDA finds no GPU: check CUDA_VISIBLE_DEVICES and nvidia-smi");
	for (int i = 0; i < count; i++) {
		gpu_describe(i, gpu);
		say("GPU id:%d; name: %s; Bus id: %s\n", i, gpu->name, gpu->bus_id);
	}
	if (ordinal >= count)
		fail("there is no GPU %d: -d takes 0 to %d", ordinal, count - 1);
	say("selecting device %d\n", ordinal);
	gpu_describe(ordinal, gpu);
	CU(cuDevicePrimaryCtxRetain, &gpu->ctx, gpu->device);
	CU(cuCtxSetCurrent, gpu->ctx);
	versions_report();
	report_gpu(gpu);
	if (gpu->emulated)
		say("GPU is emulated: figures say nothing about hardware\n");
	place_thread(gpu, bind);
}

void gpu_release(struct gpu *gpu)
{
	CU(cuCtxSetCurrent, NULL);
	CU(cuDevicePrimaryCtxRelease, gpu->device);
}
