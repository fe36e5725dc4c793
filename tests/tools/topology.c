/* SPDX-License-Identifier: MIT */
/* NUMA nodes from a made-up sysfs, whose path is the first argument. */
#include "common/topology.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static int failed;

static void check(int good, const char *name)
{
	printf("%s topology: %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

int main(int argc, char **argv)
{
	const char *sysfs = argc > 1 ? argv[1] : "";
	const char *line;
	cpu_set_t cpus;

	check(topology_gpu_node(sysfs, "0000:3b:00") == 1, "node of a GPU");
	check(topology_gpu_node(sysfs, "0000:5e:00") == -1, "a GPU without a node");
	check(topology_gpu_node(sysfs, "0000:ff:00") == -1, "no such GPU");
	check(topology_warning(1, 1) == NULL, "same node, no warning");
	check(topology_warning(-1, 0) == NULL, "unknown node, no warning");
	check(topology_warning(0, -1) == NULL, "unknown CPU node, no warning");
	line = topology_warning(1, 0);
	check(line && strstr(line, "node 1") && strstr(line, "node 0") && strstr(line, "--bind"),
	      "different nodes, a warning that names both");
	check(topology_bind(sysfs, 7) < 0, "binding to a node that is not there");
	check(topology_bind(sysfs, 1) == 0 && sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
	      CPU_COUNT(&cpus) == 1 && CPU_ISSET(0, &cpus), "binding to the CPUs of a node");
	return failed;
}
