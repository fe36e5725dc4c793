/* SPDX-License-Identifier: MIT */
/* Between the parts of the simulated driver: fake_sys.c, fake_rm.c, fake_cuda.c. */
#ifndef TESTS_UNIT_FAKE_PARTS_H
#define TESTS_UNIT_FAKE_PARTS_H

#include "fake_rm.h"

/* Memory that forked children share; zeroed. */
void *fake_shared(size_t size);

/* Guards the manager and the files, across processes. */
void fake_lock(void);
void fake_unlock(void);

/* Files: what descriptors refer to.  -1: no such descriptor. */
enum fake_file_kind {
	FAKE_FILE_NONE,
	FAKE_FILE_CONTROL,
	FAKE_FILE_DEVICE,
	FAKE_FILE_EXPORT,
	FAKE_FILE_OTHER
};
struct fake_file {
	enum fake_file_kind kind;
	int minor;
	int control;		/* file that a device file is registered with, or -1 */
	int window;		/* that waits for mmap, or -1 */
	bool mapped_once;
	int memory;		/* of an export: index of the memory */
	bool exported;		/* a control file that an object was exported to; holds the memory */
	unsigned instance;	/* of the device that the exporter named */
	unsigned references;
	int owner;		/* process id; only its closes count */
};
struct fake_file *fake_file(int index);
int fake_file_of(int fd);
int fake_file_open(enum fake_file_kind kind, int minor);	/* a file index */
int fake_descriptor_new(int file);
bool fake_device_is_open(int control, int minor);

/* The manager. */
void fake_rm_reset(void);
int fake_rm_ioctl(int file, unsigned long request, void *arg, uint32_t injected_status);
void fake_rm_file_closed(int file);
int fake_rm_window_memory(int window, size_t length, int *memfd, uint64_t *offset);
void fake_rm_count(struct fake_usage *usage);
unsigned fake_rm_minor(int gpu);
uint32_t fake_rm_bus(int gpu);

/* CUDA's side of the manager. */
struct fake_name {
	uint32_t client;
	uint32_t object;
};
uint32_t fake_rm_driver_client(int process);
struct fake_name fake_rm_driver_memory(uint32_t client, int gpu, uint64_t size);
void fake_rm_driver_free(struct fake_name name);
int fake_rm_memory_of(struct fake_name name);
void *fake_rm_bytes(int memory);
uint64_t fake_rm_used(void);

void fake_cuda_reset(void);
void fake_cuda_recycle(uint64_t address);
void fake_cuda_count(struct fake_usage *usage);
int fake_cuda_peek(uint64_t addr, void *out, size_t length);

#endif
