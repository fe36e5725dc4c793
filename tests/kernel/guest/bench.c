/* SPDX-License-Identifier: MIT */
/* Shared parts of the guest's test programs. */
#include "bench.h"

#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define VIDEO_GROUP 44

static int gpu = -1;
static uint64_t next_va = 1ull << 44;

int bench_gpu(void)
{
	if (gpu < 0)
		gpu = open(NVIDIA_EMU_PATH, O_RDWR | O_CLOEXEC);
	REQUIRE(gpu >= 0);
	return gpu;
}

void bench_forget_gpu(void)
{
	if (gpu >= 0)
		close(gpu);
	gpu = -1;
}

struct buffer bench_alloc_on(int device, uint64_t size)
{
	uint64_t rounded = (size + NVIDIA_EMU_OBJECT_ALIGN - 1) & ~(NVIDIA_EMU_OBJECT_ALIGN - 1);
	struct nvidia_emu_alloc alloc = { .size = rounded, .device = (uint32_t)device };
	struct nvidia_emu_bind bind;

	REQUIRE_EQ(ioctl(bench_gpu(), NVIDIA_EMU_ALLOC, &alloc), 0);
	bind = (struct nvidia_emu_bind){ .va = next_va, .size = rounded, .offset = alloc.offset };
	REQUIRE_EQ(ioctl(gpu, NVIDIA_EMU_BIND, &bind), 0);
	/* A gap on both sides: addresses beyond the end are nobody's. */
	next_va += 2 * rounded;
	return (struct buffer){ .va = bind.va, .size = rounded, .offset = alloc.offset };
}

struct buffer bench_alloc(uint64_t size)
{
	return bench_alloc_on(0, size);
}

void bench_free(struct buffer *buffer)
{
	struct nvidia_emu_free args = { .offset = buffer->offset };

	CHECK_EQ(ioctl(bench_gpu(), NVIDIA_EMU_FREE, &args), 0);
}

volatile uint32_t *bench_view(const struct buffer *buffer)
{
	void *view = mmap(NULL, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED, bench_gpu(),
			  (off_t)buffer->offset);

	REQUIRE(view != MAP_FAILED);
	return view;
}

void bench_close_view(volatile uint32_t *view, const struct buffer *buffer)
{
	munmap((void *)view, buffer->size);
}

unsigned bench_revoke(const struct buffer *buffer)
{
	struct nvidia_emu_revoke args = { 0 };

	if (buffer) {
		args.va = buffer->va;
		args.size = buffer->size;
	}
	CHECK_EQ(ioctl(bench_gpu(), NVIDIA_EMU_REVOKE, &args), 0);
	return args.fired;
}

uint64_t bench_physical(const struct buffer *buffer, uint64_t at)
{
	struct nvidia_emu_where args = { .offset = buffer->offset + at };

	CHECK_EQ(ioctl(bench_gpu(), NVIDIA_EMU_WHERE, &args), 0);
	return args.physical;
}

struct nvidia_emu_stats bench_stats(void)
{
	struct nvidia_emu_stats stats = { 0 };

	CHECK_EQ(ioctl(bench_gpu(), NVIDIA_EMU_GET_STATS, &stats), 0);
	return stats;
}

struct nvidia_emu_settings bench_defaults(void)
{
	return (struct nvidia_emu_settings){ .page_size_type = 1 };
}

void bench_set(const struct nvidia_emu_settings *settings)
{
	struct nvidia_emu_settings copy = *settings;

	CHECK_EQ(ioctl(bench_gpu(), NVIDIA_EMU_SET_SETTINGS, &copy), 0);
}

void bench_start(void)
{
	struct nvidia_emu_settings settings = bench_defaults();

	bench_set(&settings);
	CHECK_NO_PINS();
}

void bench_end(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	struct nvidia_emu_stats stats = bench_stats();

	bench_set(&settings);
	CHECK_EQ(stats.pins, 0);
	CHECK_EQ(stats.pinned_pages, 0);
	CHECK_EQ(stats.misuse, 0);
}

int drv_open(void)
{
	int fd = open(GDRDRV_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	REQUIRE(fd >= 0);
	return fd;
}

int drv_call(int fd, unsigned long request, void *args)
{
	return ioctl(fd, request, args) == 0 ? 0 : -errno;
}

bool drv_persistent(int fd)
{
	struct gdrdrv_get_attr args = { .attr = GDRDRV_ATTR_USE_PERSISTENT_MAPPING };

	CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_ATTR, &args), 0);
	return args.val == 1;
}

int drv_pin(int fd, uint64_t va, uint64_t size, uint64_t *handle)
{
	struct gdrdrv_pin_buffer_v2 args = { .addr = va, .size = size };
	int ret = drv_call(fd, GDRDRV_IOC_PIN_BUFFER_V2, &args);

	if (ret == 0)
		*handle = args.handle;
	return ret;
}

int drv_unpin(int fd, uint64_t handle)
{
	struct gdrdrv_unpin_buffer args = { .handle = handle };

	return drv_call(fd, GDRDRV_IOC_UNPIN_BUFFER, &args);
}

int drv_map(int fd, uint64_t handle, uint64_t size, void **map)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  (off_t)(handle * 4096));

	if (base == MAP_FAILED)
		return -errno;
	*map = base;
	return 0;
}

int drv_info(int fd, uint64_t handle, struct gdrdrv_get_info_v2 *info)
{
	*info = (struct gdrdrv_get_info_v2){ .handle = handle };
	return drv_call(fd, GDRDRV_IOC_GET_INFO_V2, info);
}

int drv_callback_flag(int fd, uint64_t handle, uint32_t *flag)
{
	struct gdrdrv_get_cb_flag args = { .handle = handle };
	int ret = drv_call(fd, GDRDRV_IOC_GET_CB_FLAG, &args);

	*flag = args.flag;
	return ret;
}

int drv_request(int fd, uint64_t handle, uint32_t type)
{
	struct gdrdrv_req_mapping_type args = { .handle = handle, .mapping_type = type };

	return drv_call(fd, GDRDRV_IOC_REQ_MAPPING_TYPE, &args);
}

static __thread sigjmp_buf touch_end;

static void end_touch(int number)
{
	siglongjmp(touch_end, number);
}

int bench_touch(const volatile uint32_t *at, uint32_t *value)
{
	struct sigaction action = { .sa_handler = end_touch }, old_bus, old_segv;
	volatile uint32_t seen = 0;
	int number;

	sigaction(SIGBUS, &action, &old_bus);
	sigaction(SIGSEGV, &action, &old_segv);
	number = sigsetjmp(touch_end, 1);
	if (number == 0)
		seen = *at;
	sigaction(SIGBUS, &old_bus, NULL);
	sigaction(SIGSEGV, &old_segv, NULL);
	if (number == 0 && value)
		*value = seen;
	return number;
}

struct pte_probe bench_probe(const volatile void *va)
{
	struct pte_probe args = { .va = (uintptr_t)va };
	int fd = open(PTE_PROBE_PATH, O_RDWR | O_CLOEXEC);

	REQUIRE(fd >= 0);
	CHECK_EQ(ioctl(fd, PTE_PROBE_LOOK, &args), 0);
	close(fd);
	return args;
}

int bench_write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		ret = -errno;
	close(fd);
	return ret;
}

long bench_read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long number = -1;

	if (file) {
		if (fscanf(file, "%ld", &number) != 1)
			number = -1;
		fclose(file);
	}
	return number;
}

void bench_become_user(uid_t uid)
{
	gid_t group = VIDEO_GROUP;

	REQUIRE_EQ(setgroups(1, &group), 0);
	REQUIRE_EQ(setresgid(VIDEO_GROUP, VIDEO_GROUP, VIDEO_GROUP), 0);
	REQUIRE_EQ(setresuid(uid, uid, uid), 0);
}
