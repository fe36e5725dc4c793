/* SPDX-License-Identifier: MIT */
/* Asks CUDA and the library, in a child, what the tests have to know. */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "child.h"
#include "common/cuda_driver.h"
#include "gdrapi.h"
#include "layout.h"

struct machine machine;

static void settle(struct machine *m, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void settle(struct machine *m, enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(m->reason, sizeof(m->reason), format, args);
	va_end(args);
	m->verdict = verdict;
}

static int device_attribute(CUdevice device, int attribute)
{
	int value = 0;

	return CU_TRY(cuDeviceGetAttribute, &value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

static void look_at_gpu(struct machine *m, CUdevice device)
{
	CU_TRY(cuDeviceGetName, m->gpu_name, (int)sizeof(m->gpu_name), device);
	snprintf(m->bus_id, sizeof(m->bus_id), "%04x:%02x:%02x",
		 (unsigned)device_attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) & 0xffff,
		 (unsigned)device_attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) & 0xff,
		 (unsigned)device_attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) & 0xff);
	m->compute_mode = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
	m->compute_major = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	m->coherent = device_attribute(device,
		CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) != 0;
	m->rdma = device_attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED) != 0;
	if (!m->rdma)
		settle(m, VERDICT_WAIVED, "GPU %d (%s) does not support GPUDirect RDMA, which "
		       "every test needs: all tests are waived", m->ordinal, m->gpu_name);
}

static bool session_attribute(gdr_t g, gdr_attr_t attribute)
{
	int value = 0;

	return gdr_get_attribute(g, attribute, &value) == 0 && value == 1;
}

static void look_at_library(struct machine *m)
{
	gdr_t g = gdr_open();

	if (!g) {
		settle(m, VERDICT_FAILED, "gdr_open error: Is gdrdrv driver installed and loaded? "
		       "(GDRCOPY_ENABLE_LOGGING=1 names the step that failed)");
		return;
	}
	m->persistent = session_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING);
	m->force_pcie = session_attribute(g, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE);
	m->dmabuf = session_attribute(g, GDR_ATTR_USING_DMA_BUF_MMAP);
	m->gdrdrv = layout_fd_is_gdrdrv(layout_fd(g));
	gdr_close(g);
}

static void look(const void *arg)
{
	struct machine *m = *(struct machine *const *)arg;
	const char *why = cuda_driver_try_load();
	CUdevice device;

	versions_read(&m->versions);
	if (why) {
		settle(m, VERDICT_FAILED, "%s", why);
		return;
	}
	CU_TRY(cuDeviceGetCount, &m->gpu_count);
	if (CU_TRY(cuDeviceGet, &device, m->ordinal) != CUDA_SUCCESS) {
		settle(m, VERDICT_FAILED, "there is no GPU %d: CUDA sees %d", m->ordinal,
		       m->gpu_count);
		return;
	}
	look_at_gpu(m, device);
	if (m->verdict == VERDICT_PASSED)
		look_at_library(m);
}

void machine_probe(int ordinal, unsigned timeout_s)
{
	struct machine *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct child_end end = { .status = 0 };
	int error;

	if (shared == MAP_FAILED) {
		perror("mmap");
		exit(EXIT_FAILURE);
	}
	shared->ordinal = ordinal;
	error = child_run(look, &shared, timeout_s, &end);
	if (error)
		settle(shared, VERDICT_FAILED, "fork failed: %s", strerror(error));
	else if (end.timed_out)
		settle(shared, VERDICT_FAILED, "CUDA and gdr_open gave no answer in %u s",
		       timeout_s);
	else if (end.status != 0)
		settle(shared, VERDICT_FAILED, "CUDA or gdr_open ended the process (%s %d)",
		       WIFSIGNALED(end.status) ? "signal" : "exit status",
		       WIFSIGNALED(end.status) ? WTERMSIG(end.status) : WEXITSTATUS(end.status));
	machine = *shared;
	munmap(shared, sizeof(*shared));
}
