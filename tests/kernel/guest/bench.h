/* SPDX-License-Identifier: MIT */
/*
 * What the guest's test programs share: GPU memory of the stand-in, raw calls
 * to /dev/gdrdrv, and a look at page tables.  No library of ours is involved.
 * Calls return 0 or a negative errno unless they end the case on failure.
 */
#ifndef KERNEL_BENCH_H
#define KERNEL_BENCH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gdrdrv.h"
#include "harness.h"
#include "nvidia_emu.h"
#include "pte_probe.h"

#define GPU_PAGE 65536ull
#define KERNEL_ENOTSUPP 524	/* of the NVIDIA driver; not EOPNOTSUPP */

/* GPU memory with a device address in this process. */
struct buffer {
	uint64_t va, size, offset;
};

int bench_gpu(void);		/* this process's /dev/nvidia-emu */
void bench_forget_gpu(void);	/* in a forked child: the next call opens its own */
struct buffer bench_alloc(uint64_t size);
struct buffer bench_alloc_on(int device, uint64_t size);
void bench_free(struct buffer *buffer);
/* The GPU's own view of the bytes. */
volatile uint32_t *bench_view(const struct buffer *buffer);
void bench_close_view(volatile uint32_t *view, const struct buffer *buffer);
unsigned bench_revoke(const struct buffer *buffer);
uint64_t bench_physical(const struct buffer *buffer, uint64_t at);

struct nvidia_emu_stats bench_stats(void);
struct nvidia_emu_settings bench_defaults(void);
void bench_set(const struct nvidia_emu_settings *settings);
/* Every case starts with this: default settings, nothing pinned. */
void bench_start(void);
/* And ends with this: nothing pinned, nobody misused the interface. */
void bench_end(void);
#define CHECK_NO_PINS() CHECK_EQ(bench_stats().pins, 0)

int drv_open(void);
bool drv_persistent(int fd);
int drv_call(int fd, unsigned long request, void *args);
int drv_pin(int fd, uint64_t va, uint64_t size, uint64_t *handle);
int drv_unpin(int fd, uint64_t handle);
int drv_map(int fd, uint64_t handle, uint64_t size, void **map);
int drv_info(int fd, uint64_t handle, struct gdrdrv_get_info_v2 *info);
int drv_callback_flag(int fd, uint64_t handle, uint32_t *flag);
int drv_request(int fd, uint64_t handle, uint32_t type);

/* The signal that a read of *at raises, or 0 and the value. */
int bench_touch(const volatile uint32_t *at, uint32_t *value);

struct pte_probe bench_probe(const volatile void *va);

/* Writes "value" to a file; -errno. */
int bench_write_file(const char *path, const char *value);
long bench_read_number(const char *path);

/* Gives up root for good; the group may open /dev/gdrdrv. */
void bench_become_user(uid_t uid);

#endif
