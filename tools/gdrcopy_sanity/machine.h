/* SPDX-License-Identifier: MIT */
/* What is known of the GPU and the library before the first test. */
#ifndef SANITY_MACHINE_H
#define SANITY_MACHINE_H

#include <stdbool.h>

#include "common/versions.h"
#include "verdict.h"

struct machine {
	int ordinal;		/* the GPU under test */
	int gpu_count;
	struct versions versions;
	char gpu_name[128];
	char bus_id[16];
	int compute_mode;
	int compute_major;
	bool coherent;		/* CPU and GPU share a coherent link */
	bool rdma;
	bool persistent;	/* attribute 1: mappings outlive the memory */
	bool force_pcie;	/* attribute 2 */
	bool dmabuf;		/* attribute 3 */
	bool gdrdrv;		/* the kernel module is behind the session */

	/* When not PASSED: what befalls every test, and why, in one line. */
	enum verdict verdict;
	char reason[512];
};

extern struct machine machine;

/*
 * Looks in a forked process, since the runner must never initialise CUDA: a
 * process that did cannot hand a working CUDA to its children.
 */
void machine_probe(int ordinal, unsigned timeout_s);

#endif
