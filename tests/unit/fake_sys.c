/* SPDX-License-Identifier: MIT */
/* The simulated os layer: descriptors, files, mappings, and failures on request. */
#include "fake_rm.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_parts.h"
#include "os/sys.h"

#define FIRST_DESCRIPTOR 1000
#define DESCRIPTOR_LIMIT 256	/* as ulimit -n */
#define FILE_COUNT 1024
#define MAPPING_COUNT 20000

const struct gdri_log fake_quiet = { .level = GDRI_LOG_OFF };
struct fake_machine fake_machine;

static struct shared {
	pthread_mutex_t lock;
	struct fake_file file[FILE_COUNT];
} *shared;

/* This process's own. */
static int descriptor[DESCRIPTOR_LIMIT];	/* file index + 1 */
static unsigned peak;
static struct { void *base; size_t length; } mapping[MAPPING_COUNT];
static unsigned fail_at, recycle_at, calls;
static uint64_t recycle_address;
static uint32_t fail_status;
static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;

void *fake_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

void fake_lock(void)
{
	pthread_mutex_lock(&shared->lock);
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&shared->lock);
}

void fake_reset(const struct fake_machine *machine)
{
	if (!shared) {
		pthread_mutexattr_t attributes;

		shared = fake_shared(sizeof(*shared));
		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		pthread_mutex_init(&shared->lock, &attributes);
		pthread_mutexattr_destroy(&attributes);
	}
	fake_machine = machine ? *machine : (struct fake_machine){ 0 };
	memset(shared->file, 0, sizeof(shared->file));
	memset(descriptor, 0, sizeof(descriptor));
	memset(mapping, 0, sizeof(mapping));
	peak = 0;
	fake_fail_at(0, 0);
	fake_rm_reset();
	fake_cuda_reset();
}

/* True when this call is the one that must fail. */
static bool fails_now(void)
{
	bool now, recycle;

	pthread_mutex_lock(&local_lock);
	now = ++calls == fail_at;
	recycle = calls == recycle_at;
	pthread_mutex_unlock(&local_lock);
	if (recycle)
		fake_cuda_recycle(recycle_address);
	return now;
}

void fake_fail_at(unsigned call, uint32_t status)
{
	fail_at = call;
	fail_status = status;
	recycle_at = 0;
	calls = 0;
}

void fake_recycle_at(unsigned call, uint64_t address)
{
	recycle_at = call;
	recycle_address = address;
	calls = 0;
}

unsigned fake_calls(void)
{
	return calls;
}

struct fake_file *fake_file(int index)
{
	return index >= 0 ? &shared->file[index] : NULL;
}

int fake_file_of(int fd)
{
	const int slot = fd - FIRST_DESCRIPTOR;

	return slot >= 0 && slot < DESCRIPTOR_LIMIT ? descriptor[slot] - 1 : -1;
}

/* The lock is held. */
int fake_file_open(enum fake_file_kind kind, int minor)
{
	for (int i = 0; i < FILE_COUNT; i++) {
		if (shared->file[i].references)
			continue;
		shared->file[i] = (struct fake_file){
			.kind = kind, .minor = minor, .control = -1, .window = -1, .memory = -1,
			.owner = getpid(),
		};
		return i;
	}
	abort();
}

/* The lock is held. */
int fake_descriptor_new(int file)
{
	unsigned used = 0;
	int found = -1;

	for (int i = 0; i < DESCRIPTOR_LIMIT; i++) {
		used += descriptor[i] != 0;
		if (!descriptor[i] && found < 0)
			found = i;
	}
	if (found < 0)
		return -EMFILE;
	descriptor[found] = file + 1;
	if (shared->file[file].owner == getpid())
		shared->file[file].references++;
	if (used + 1 > peak)
		peak = used + 1;
	return FIRST_DESCRIPTOR + found;
}

bool fake_device_is_open(int control, int minor)
{
	for (int i = 0; i < FILE_COUNT; i++) {
		const struct fake_file *file = &shared->file[i];

		if (file->references && file->kind == FAKE_FILE_DEVICE &&
		    file->control == control && file->minor == minor)
			return true;
	}
	return false;
}

static int open_path(const char *path, enum fake_file_kind *kind, int *minor)
{
	*minor = -1;
	*kind = FAKE_FILE_OTHER;
	if (strcmp(path, "/dev/nvidiactl") == 0) {
		*kind = FAKE_FILE_CONTROL;
		return fake_machine.no_control_file ? -ENOENT : 0;
	}
	if (strcmp(path, "/dev/dxg") == 0)
		return fake_machine.wsl ? 0 : -ENOENT;
	if (strcmp(path, "/tmp/nvidia-mps/control") == 0)
		return fake_machine.mps ? 0 : -ENXIO;
	if (sscanf(path, "/dev/nvidia%d", minor) == 1) {
		*kind = FAKE_FILE_DEVICE;
		for (int gpu = 0; gpu < FAKE_GPUS; gpu++)
			if (fake_rm_minor(gpu) == (unsigned)*minor)
				return 0;
	}
	return -ENOENT;
}

int gdri_os_open(const char *path, int flags)
{
	enum fake_file_kind kind;
	int minor, rc;

	(void)flags;
	if (fails_now())
		return -EMFILE;
	rc = open_path(path, &kind, &minor);
	if (rc)
		return rc;
	fake_lock();
	rc = fake_descriptor_new(fake_file_open(kind, minor));
	fake_unlock();
	return rc;
}

int gdri_os_dup(int fd)
{
	int rc = -EBADF;

	if (fails_now())
		return -EMFILE;
	fake_lock();
	if (fake_file_of(fd) >= 0)
		rc = fake_descriptor_new(fake_file_of(fd));
	fake_unlock();
	return rc;
}

/* Closing frees the descriptor even where it reports an error, as on Linux. */
int gdri_os_close(int fd)
{
	const bool fail = fails_now();
	const int index = fake_file_of(fd);

	if (index < 0)
		return -EBADF;
	fake_lock();
	descriptor[fd - FIRST_DESCRIPTOR] = 0;
	if (shared->file[index].owner == getpid() && --shared->file[index].references == 0) {
		if (shared->file[index].kind == FAKE_FILE_CONTROL)
			fake_rm_file_closed(index);
		shared->file[index].kind = FAKE_FILE_NONE;
	}
	fake_unlock();
	return fail ? -EIO : 0;
}

int gdri_os_ioctl(int fd, unsigned long request, void *arg)
{
	const bool fail = fails_now();
	const int index = fake_file_of(fd);
	int rc;

	if (index < 0)
		return -EBADF;
	if (fail && !fail_status)
		return -EIO;
	fake_lock();
	rc = fake_rm_ioctl(index, request, arg, fail ? fail_status : 0);
	fake_unlock();
	return rc;
}

static void note_mapping(void *base, size_t length)
{
	pthread_mutex_lock(&local_lock);
	for (int i = 0; i < MAPPING_COUNT; i++) {
		if (mapping[i].base)
			continue;
		mapping[i].base = base;
		mapping[i].length = length;
		pthread_mutex_unlock(&local_lock);
		return;
	}
	abort();
}

static int map_device(int fd, size_t length, int prot, off_t offset, void **out)
{
	struct fake_file *file = fake_file(fake_file_of(fd));
	uint64_t start = 0;
	int memfd = -1;
	int rc;

	if (!file || file->kind != FAKE_FILE_DEVICE || offset != 0 || file->window < 0)
		return -ENXIO;
	fake_lock();
	rc = fake_rm_window_memory(file->window, length, &memfd, &start);
	fake_unlock();
	if (rc)
		return rc;
	*out = mmap(NULL, length, prot, MAP_SHARED, memfd, (off_t)start);
	if (*out == MAP_FAILED)
		return -errno;
	note_mapping(*out, length);
	return 0;
}

int gdri_os_mmap(size_t length, int prot, int flags, int fd, off_t offset, void **out)
{
	void *base;

	if (fails_now())
		return -ENOMEM;
	if (fd >= 0)
		return map_device(fd, length, prot, offset, out);
	base = mmap(NULL, length, prot, flags, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	*out = base;
	return 0;
}

int gdri_os_munmap(void *addr, size_t length)
{
	const bool fail = fails_now();

	pthread_mutex_lock(&local_lock);
	for (int i = 0; i < MAPPING_COUNT; i++)
		if (mapping[i].base == addr && mapping[i].length == length)
			mapping[i].base = NULL;
	pthread_mutex_unlock(&local_lock);
	munmap(addr, length);
	return fail ? -EINVAL : 0;
}

int gdri_os_move(void *addr, size_t length, void **out)
{
	(void)addr;
	(void)length;
	(void)out;
	return -ENOSYS;
}

int gdri_os_dontfork(void *addr, size_t length)
{
	if (fails_now())
		return -EINVAL;
	return madvise(addr, length, MADV_DONTFORK) ? -errno : 0;
}

int gdri_os_wipeonfork(void *addr, size_t length)
{
	if (fails_now())
		return -EINVAL;
	return madvise(addr, length, MADV_WIPEONFORK) ? -errno : 0;
}

int gdri_os_populate(void *addr, size_t length)
{
	(void)addr;
	(void)length;
	return -EINVAL;
}

int gdri_os_peek(uint64_t addr, void *out, size_t length)
{
	return fails_now() ? -EFAULT : fake_cuda_peek(addr, out, length);
}

int gdri_os_read_text(const char *path, char *out, size_t size)
{
	(void)path;
	(void)out;
	(void)size;
	return -ENOENT;
}

size_t gdri_os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

struct fake_usage fake_usage(void)
{
	struct fake_usage usage = { 0 };

	fake_lock();
	for (int i = 0; i < DESCRIPTOR_LIMIT; i++)
		usage.descriptors += descriptor[i] != 0;
	fake_rm_count(&usage);
	fake_unlock();
	for (int i = 0; i < MAPPING_COUNT; i++)
		usage.mappings += mapping[i].base != NULL;
	fake_cuda_count(&usage);
	return usage;
}

bool fake_usage_equal(struct fake_usage a, struct fake_usage b)
{
	bool equal = memcmp(&a, &b, sizeof(a)) == 0;

	if (!equal)
		fprintf(stderr, "usage: fds %u/%u clients %u/%u objects %u/%u windows %u/%u "
			"mappings %u/%u retained %u/%u\n", a.descriptors, b.descriptors, a.clients,
			b.clients, a.objects, b.objects, a.windows, b.windows, a.mappings,
			b.mappings, a.retained, b.retained);
	return equal;
}

unsigned fake_peak_descriptors(void)
{
	return peak;
}

int fake_foreign_descriptor(void)
{
	int fd;

	fake_lock();
	fd = fake_descriptor_new(fake_file_open(FAKE_FILE_CONTROL, -1));
	fake_unlock();
	return fd;
}
