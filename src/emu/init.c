/* SPDX-License-Identifier: MIT */
/* Start of the emulated driver: cuInit, versions, and the rule for forked children. */
#include "emu.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * was_initialised is copied by fork and *alive is wiped, so a child of an
 * initialised process sees the first without the second.
 */
static bool was_initialised;
static int *alive;

void emu_lock(void)
{
	pthread_mutex_lock(&lock);
}

void emu_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

bool emu_ready(void)
{
	return __atomic_load_n(&was_initialised, __ATOMIC_ACQUIRE) && *alive;
}

/* Calls that make something fail for want of memory, the others for no reason. */
static CUresult default_failure(const char *call)
{
	if (strstr(call, "Alloc") || strstr(call, "Create") || strstr(call, "Register"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_ERROR_UNKNOWN;
}

static CUresult injected(const char *call)
{
	int result;

	if (emu_config_injected(call, (int)default_failure(call), &result))
		return (CUresult)result;
	return CUDA_SUCCESS;
}

CUresult emu_enter(const char *call)
{
	if (!emu_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	return injected(call);
}

CUresult emu_result(int negative_errno)
{
	switch (negative_errno) {
	case 0:
		return CUDA_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
	case -EMFILE:
	case -ENFILE:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case -EOPNOTSUPP:
		return CUDA_ERROR_NOT_SUPPORTED;
	case -EINVAL:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
}

static CUresult create_fork_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (madvise(page, size, MADV_WIPEONFORK) != 0) {
		munmap(page, size);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	alive = page;
	*alive = 1;
	return CUDA_SUCCESS;
}

/* Threads of streams and what they run must outlive the program's dlclose. */
static void stay_loaded(void)
{
	Dl_info info;
	void *self;

	if (!dladdr(&lock, &info))
		return;
	self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (self)
		dlclose(self);
}

static CUresult initialise(void)
{
	const struct emu_config *config = emu_config_get();
	CUresult ret;

	if (config->error[0] != '\0') {
		fprintf(stderr, "emulated CUDA driver: %s\n", config->error);
		return CUDA_ERROR_SYSTEM_NOT_READY;
	}
	if (config->devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	ret = create_fork_page();
	stay_loaded();
	if (ret == CUDA_SUCCESS)
		__atomic_store_n(&was_initialised, true, __ATOMIC_RELEASE);
	return ret;
}

EMU_API CUresult cuInit(unsigned flags)
{
	CUresult ret = CUDA_SUCCESS;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (__atomic_load_n(&was_initialised, __ATOMIC_ACQUIRE) && !*alive)
		return CUDA_ERROR_NOT_INITIALIZED;
	ret = injected(__func__);
	if (ret != CUDA_SUCCESS)
		return ret;
	emu_lock();
	if (!was_initialised)
		ret = initialise();
	emu_unlock();
	return ret;
}

EMU_API CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = emu_config_get()->driver_version;
	return CUDA_SUCCESS;
}
