/* SPDX-License-Identifier: MIT */
/* Reads NUMA nodes from sysfs and binds to one. */
#include "topology.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	char *got;

	if (!file)
		return -errno;
	got = fgets(line, size, file);
	fclose(file);
	return got ? 0 : -EIO;
}

int topology_gpu_node(const char *sysfs, const char *bus_id)
{
	char path[256], line[32];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s.0/numa_node", sysfs, bus_id);
	return read_line(path, line, sizeof(line)) ? -1 : atoi(line);
}

int topology_cpu_node(void)
{
	unsigned cpu, node;

	return syscall(SYS_getcpu, &cpu, &node, NULL) ? -1 : (int)node;
}

/* list is like "0-15,32-47". */
static void parse_cpus(const char *list, cpu_set_t *cpus)
{
	unsigned long first, last;
	char *end;

	CPU_ZERO(cpus);
	while (*list >= '0' && *list <= '9') {
		first = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, cpus);
		list = *end == ',' ? end + 1 : end;
	}
}

int topology_bind(const char *sysfs, int node)
{
	char path[256], line[4096];
	cpu_set_t cpus;
	int ret;

	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", sysfs, node);
	ret = read_line(path, line, sizeof(line));
	if (ret)
		return ret;
	parse_cpus(line, &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus) ? -errno : 0;
}

const char *topology_warning(int gpu_node, int cpu_node)
{
	static char line[160];

	if (gpu_node < 0 || cpu_node < 0 || gpu_node == cpu_node)
		return NULL;
	snprintf(line, sizeof(line),
		 "the GPU is on NUMA node %d and this process runs on node %d, which costs up to "
		 "a third of the speed: add --bind", gpu_node, cpu_node);
	return line;
}
