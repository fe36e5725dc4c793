/* SPDX-License-Identifier: MIT */
/* Where the GPU and the calling CPU sit. */
#ifndef TOOLS_TOPOLOGY_H
#define TOOLS_TOPOLOGY_H

/*
 * sysfs is the root of that file system ("/sys"), bus_id a PCI address without
 * function (0000:3b:00).  -1: the machine does not say.
 */
int topology_gpu_node(const char *sysfs, const char *bus_id);
int topology_cpu_node(void);

/* Keeps this thread on the CPUs of a node: 0 or a negative errno. */
int topology_bind(const char *sysfs, int node);

/* The warning for this pair of nodes, or NULL when there is nothing to say. */
const char *topology_warning(int gpu_node, int cpu_node);

#endif
