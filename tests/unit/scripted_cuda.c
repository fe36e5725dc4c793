/* SPDX-License-Identifier: MIT */
/* A CUDA driver of a few tables. */
#include "scripted_cuda.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "os/cuda.h"
#include "scripted_sys.h"

enum { OK = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, DEINITIALIZED = 4, INVALID_DEVICE = 101 };

struct scripted_cuda scripted_cuda;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned calls, fail_at;
static int fail_result;
static char primary[SCRIPTED_CUDA_DEVICES];
static __thread void *stack[4];
static __thread int stack_depth;

void scripted_cuda_start(const struct scripted_allocation *allocations, size_t count)
{
	scripted_cuda = (struct scripted_cuda){
		.version = 13030,
		.has_range_export = true,
		.initialised = true,
		.dma_buf = { 1, 1 },
		.allocations = allocations,
		.allocation_count = count,
	};
	calls = fail_at = 0;
	stack_depth = 0;
}

void scripted_cuda_fail(unsigned nth, int result)
{
	fail_at = nth ? calls + nth : 0;
	fail_result = result;
}

unsigned scripted_cuda_calls(void)
{
	return calls;
}

void *scripted_cuda_current(int *depth)
{
	*depth = stack_depth;
	return stack_depth ? stack[stack_depth - 1] : NULL;
}

void scripted_cuda_push(void *context)
{
	stack[stack_depth++] = context;
}

/* Counts a call; what keeps it from being carried out. */
static int enter_call(void)
{
	int result = OK;

	pthread_mutex_lock(&lock);
	calls++;
	if (fail_at != 0 && calls == fail_at)
		result = fail_result;
	else if (scripted_cuda.dead)
		result = DEINITIALIZED;
	else if (!scripted_cuda.initialised)
		result = NOT_INITIALIZED;
	pthread_mutex_unlock(&lock);
	return result;
}

static const struct scripted_allocation *find_allocation(uint64_t addr)
{
	for (size_t i = 0; i < scripted_cuda.allocation_count; i++)
		if (addr - scripted_cuda.allocations[i].base < scripted_cuda.allocations[i].size)
			return &scripted_cuda.allocations[i];
	return NULL;
}

/* The one call that works before cuInit. */
static int driver_get_version(int *version)
{
	int result = enter_call();

	if (result == NOT_INITIALIZED)
		result = OK;
	if (result == OK)
		result = scripted_cuda.version_result;
	if (result == OK)
		*version = scripted_cuda.version;
	return result;
}

static int device_get_count(int *count)
{
	int result = enter_call();

	if (result == OK)
		*count = SCRIPTED_CUDA_DEVICES;
	return result;
}

static int device_get(int *device, int ordinal)
{
	int result = enter_call();

	if (result == OK && (ordinal < 0 || ordinal >= SCRIPTED_CUDA_DEVICES))
		result = INVALID_DEVICE;
	if (result == OK)
		*device = ordinal;
	return result;
}

static int device_get_attribute(int *value, int attribute, int device)
{
	int result = enter_call();

	if (result != OK)
		return result;
	if (attribute == 124)
		*value = scripted_cuda.dma_buf[device];
	else if (attribute == 100)
		*value = scripted_cuda.coherent[device];
	else
		return INVALID_VALUE;
	return OK;
}

static int pointer_get_attribute(void *value, int attribute, gdri_cu_ptr ptr)
{
	const struct scripted_allocation *allocation = find_allocation(ptr);
	int result = enter_call();

	if (result != OK)
		return result;
	if (!allocation)
		return INVALID_VALUE;
	if (attribute == 2)
		memcpy(value, &allocation->memory_type, 4);
	else if (attribute == 8)
		memcpy(value, &allocation->managed, 4);
	else if (attribute == 9)
		memcpy(value, &allocation->device, 4);
	else if (attribute == 17)
		memcpy(value, &allocation->pool, 8);
	else
		return INVALID_VALUE;
	return OK;
}

static int mem_get_address_range(gdri_cu_ptr *base, size_t *size, gdri_cu_ptr ptr)
{
	const struct scripted_allocation *allocation = find_allocation(ptr);
	int result = enter_call();

	if (result != OK)
		return result;
	if (!allocation || stack_depth == 0)
		return INVALID_VALUE;
	*base = allocation->base;
	*size = allocation->size;
	return OK;
}

static bool range_is_exportable(uint64_t start, size_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (start % page || size % page || size == 0)
		return false;
	if (!scripted_cuda.strict_ranges)
		return true;
	for (size_t i = 0; i < scripted_cuda.allocation_count; i++) {
		const struct scripted_allocation *allocation = &scripted_cuda.allocations[i];
		uint64_t end = allocation->base + allocation->size;

		if (start >= (allocation->base & ~(page - 1)) &&
		    start + size <= ((end + page - 1) & ~(page - 1)))
			return true;
	}
	return false;
}

static int mem_get_handle_for_address_range(void *handle, gdri_cu_ptr ptr, size_t size, int type,
					    unsigned long long flags)
{
	int result = enter_call();
	int fd;

	if (result != OK)
		return result;
	pthread_mutex_lock(&lock);
	scripted_cuda.exports++;
	scripted_cuda.export_start = ptr;
	scripted_cuda.export_size = size;
	scripted_cuda.export_flags = flags;
	pthread_mutex_unlock(&lock);
	if (scripted_cuda.export_result)
		return scripted_cuda.export_result;
	if (type != 1 || stack_depth == 0 || !range_is_exportable(ptr, size))
		return INVALID_VALUE;
	fd = scripted_sys_new_fd();
	if (fd < 0)
		return 304;	/* OPERATING_SYSTEM */
	memcpy(handle, &fd, sizeof(fd));
	return OK;
}

static int ctx_get_current(void **context)
{
	int result = enter_call();
	int depth;

	if (result == OK)
		*context = scripted_cuda_current(&depth);
	return result;
}

static int ctx_push_current(void *context)
{
	int result = enter_call();

	if (result == OK)
		scripted_cuda_push(context);
	return result;
}

/* Giving back works even in a call that is made to fail. */
static int ctx_pop_current(void **context)
{
	int depth, result = enter_call();

	*context = scripted_cuda_current(&depth);
	stack_depth--;
	return result;
}

static int primary_ctx_retain(void **context, int device)
{
	int result = enter_call();

	if (result != OK)
		return result;
	pthread_mutex_lock(&lock);
	scripted_cuda.primary_references[device]++;
	pthread_mutex_unlock(&lock);
	*context = &primary[device];
	return OK;
}

static int primary_ctx_release(int device)
{
	int result = enter_call();

	pthread_mutex_lock(&lock);
	scripted_cuda.primary_references[device]--;
	pthread_mutex_unlock(&lock);
	return result;
}

static int get_error_name(int result, const char **name)
{
	if (result != INVALID_VALUE)
		return INVALID_VALUE;
	*name = "CUDA_ERROR_INVALID_VALUE";
	return OK;
}

int gdri_os_cuda_load(struct gdri_cuda *cuda)
{
	if (scripted_cuda.load_error)
		return scripted_cuda.load_error;
	scripted_cuda.loads++;
	/* What is not here would crash: back end dmabuf has no business with it. */
	*cuda = (struct gdri_cuda){
		.library = &scripted_cuda,
		.driver_get_version = driver_get_version,
		.device_get_count = device_get_count,
		.device_get = device_get,
		.device_get_attribute = device_get_attribute,
		.pointer_get_attribute = pointer_get_attribute,
		.mem_get_address_range = mem_get_address_range,
		.ctx_get_current = ctx_get_current,
		.ctx_push_current = ctx_push_current,
		.ctx_pop_current = ctx_pop_current,
		.primary_ctx_retain = primary_ctx_retain,
		.primary_ctx_release = primary_ctx_release,
		.get_error_name = get_error_name,
	};
	if (scripted_cuda.has_range_export)
		cuda->mem_get_handle_for_address_range = mem_get_handle_for_address_range;
	return 0;
}

void gdri_os_cuda_unload(struct gdri_cuda *cuda)
{
	if (cuda->library)
		scripted_cuda.loads--;
	memset(cuda, 0, sizeof(*cuda));
}
