/* SPDX-License-Identifier: MIT */
/* NVIDIA's management library, loaded at run time: the one figure that CUDA does not give. */
#ifndef TOOLS_NVML_H
#define TOOLS_NVML_H

#include <stdint.h>

/* Bytes of the window through which a CPU reaches GPU memory. */
struct nvml_bar1 {
	uint64_t total;
	uint64_t used;
};

/*
 * bus_id is a PCI address without function.  NULL, or why the answer is
 * missing, as one line.
 */
const char *nvml_read_bar1(const char *bus_id, struct nvml_bar1 *bar1);

#endif
