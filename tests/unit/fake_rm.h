/* SPDX-License-Identifier: MIT */
/*
 * A simulated driver for tests: the os layer of the library (os/sys.h), a
 * resource manager behind /dev/nvidia*, and a CUDA driver whose memory lives
 * in that manager.  Memory is backed by memfds, so a mapping shows at once
 * whose bytes it reaches.
 *
 * The manager's state is shared with forked children, as the real one is; the
 * descriptor table is each process's own.
 */
#ifndef TESTS_UNIT_FAKE_RM_H
#define TESTS_UNIT_FAKE_RM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/log.h"
#include "os/cuda.h"

#define FAKE_GPUS 3
#define FAKE_GRANULE ((uint64_t)2 << 20)

/* Errors that the code under test logs are part of most cases; they go nowhere. */
extern const struct gdri_log fake_quiet;

/* How the simulated machine differs from the usual one; zero is the usual one. */
struct fake_machine {
	const char *version;		/* NULL: "580.159.04" */
	int cuda_version;		/* 0: 13000 */
	bool no_control_file;
	bool wsl;
	bool mps;
	bool conf_compute;
	bool no_conf_compute_class;
	uint32_t smc_mode;		/* of every GPU */
	uint32_t virtualization;
	uint32_t map_caching;		/* 0: write-combined */
	bool no_libcuda;
	/* The CUDA driver's opaque data. */
	unsigned blob_shift;		/* the IPC handle's words lie that much later */
	bool blob_wrong_id;
	bool blob_names_neighbour;	/* client and object words name the block made before */
	unsigned record_shift;		/* the record's pointer lies that many words later */
	bool record_names_neighbour;
	bool only_private_records;	/* the line above holds for those alone */
	bool record_wrong_size;
	bool record_wrong_id;
	bool no_block_attributes;	/* as CUDA before 12 */
	bool kernel_running;		/* calls that wait for kernels fail the test */
	uint64_t memory_limit;		/* 0: none; bytes of GPU memory */
	uint32_t import_class;		/* of what is imported; 0: video memory */
};

/* Starts over with an empty machine. */
void fake_reset(const struct fake_machine *machine);
extern struct fake_machine fake_machine;

/* The CUDA driver of this process. */
const struct gdri_cuda *fake_cuda(void);
void fake_cuda_init(int ordinal);	/* cuInit and a context on that device, made current */
void fake_cuda_of_child(int ordinal);	/* a forked child that stands for another program */
uint64_t fake_mem_alloc(size_t size);	/* cuMemAlloc in the current context */
uint64_t fake_mem_managed(size_t size);
uint64_t fake_mem_pool(size_t size);
uint64_t fake_mem_host(size_t size);
uint64_t fake_mem_ipc_opened(size_t size);	/* another process's */
uint64_t fake_mem_vmm(size_t size, bool exportable);	/* created, mapped, handle released */

/* Two VMM allocations side by side in one reservation; the address of the first. */
uint64_t fake_mem_vmm_pair(size_t size1, size_t size2);
void fake_mem_free(uint64_t address);
void *fake_bytes(uint64_t address);	/* the memory behind a device address */
void *fake_current_context(void);
void fake_set_current_context(void *context);
bool fake_waited(void);			/* a call that waits for kernels was made meanwhile */

/* Frees address and allocates the same size anew there inside the n-th CUDA call from now. */
void fake_replace_at(unsigned call, uint64_t address);

/*
 * Frees address before the n-th call of the os layer from now and allocates
 * the same size elsewhere, which may get the freed object's handle: a marked
 * stranger's buffer.
 */
void fake_recycle_at(unsigned call, uint64_t address);

/*
 * Injection: the n-th call of the os layer from now fails (0: none).  An ioctl
 * fails as a whole or, with status, by that answer of the manager.
 * fake_calls() counts the calls since.
 */
void fake_fail_at(unsigned call, uint32_t status);
void fake_fail_cuda_at(unsigned call, int result);
unsigned fake_calls(void);
unsigned fake_cuda_calls(void);

/* What the library holds at this moment; the CUDA driver's own things are left out. */
struct fake_usage {
	unsigned descriptors;
	unsigned clients;
	unsigned objects;
	unsigned windows;	/* in the manager */
	unsigned mappings;	/* in the address space, of descriptors */
	unsigned retained;	/* VMM handles retained or created and not released */
};
struct fake_usage fake_usage(void);
bool fake_usage_equal(struct fake_usage a, struct fake_usage b);
unsigned fake_peak_descriptors(void);

/* A descriptor of another process's session, as received over a socket. */
int fake_foreign_descriptor(void);

#endif
