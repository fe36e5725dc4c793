/* SPDX-License-Identifier: MIT */
/* Loading of the CUDA driver, and what its results become. */
#include "os/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void results_become_errno(void)
{
	static const struct { int result, error; } rows[] = {
		{ 0, 0 }, { 1, EINVAL }, { 2, ENOMEM }, { 3, ENODEV }, { 4, ENODEV },
		{ 34, ENODEV }, { 35, ENODEV }, { 46, EBUSY }, { 100, ENODEV }, { 101, EINVAL },
		{ 201, EINVAL }, { 400, EINVAL }, { 709, EINVAL }, { 800, EPERM },
		{ 801, EOPNOTSUPP }, { 803, ENODEV }, { 700, EIO }, { 719, EIO }, { 999, EIO },
		{ -1, EIO },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_EQ(gdri_os_cuda_errno(rows[i].result), -rows[i].error);
}

static bool loader_finds_cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		library = dlopen("libcuda.so", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		dlclose(library);
	return library != NULL;
}

static void missing_driver(void)
{
	struct gdri_cuda cuda, before;

	if (loader_finds_cuda())
		SKIP("this machine has a CUDA driver");
	memset(&cuda, 0x5a, sizeof(cuda));
	before = cuda;
	CHECK_EQ(gdri_os_cuda_load(&cuda), -ENOENT);
	CHECK(memcmp(&cuda, &before, sizeof(cuda)) == 0);
	memset(&cuda, 0, sizeof(cuda));
	gdri_os_cuda_unload(&cuda);
}

/*
 * The emulated driver, where it is built.  A library that is loaded already is
 * found by its SONAME, so opening it by path decides what the loader sees.
 */
static void *open_emulated_driver(void)
{
	static const char *const places[] = { "../../emu", "../../../emu" };
	char exe[PATH_MAX], path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	void *library = NULL;

	if (length < 0)
		return NULL;
	exe[length] = '\0';
	*strrchr(exe, '/') = '\0';
	for (int i = 0; i < 2 && !library; i++) {
		snprintf(path, sizeof(path), "%s/%s/libcuda.so.1", exe, places[i]);
		library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	}
	return library;
}

/* Every slot is filled, each with the function of its own name. */
static void check_symbols(const struct gdri_cuda *cuda)
{
	const struct { void *address; const char *name; } rows[] = {
		{ (void *)cuda->driver_get_version, "cuDriverGetVersion" },
		{ (void *)cuda->init, "cuInit" },
		{ (void *)cuda->device_get_count, "cuDeviceGetCount" },
		{ (void *)cuda->device_get, "cuDeviceGet" },
		{ (void *)cuda->device_get_attribute, "cuDeviceGetAttribute" },
		{ (void *)cuda->device_get_uuid, "cuDeviceGetUuid_v2" },
		{ (void *)cuda->pointer_get_attribute, "cuPointerGetAttribute" },
		{ (void *)cuda->mem_get_address_range, "cuMemGetAddressRange_v2" },
		{ (void *)cuda->ipc_get_mem_handle, "cuIpcGetMemHandle" },
		{ (void *)cuda->mem_alloc, "cuMemAlloc_v2" },
		{ (void *)cuda->mem_free, "cuMemFree_v2" },
		{ (void *)cuda->memcpy_dtoh, "cuMemcpyDtoH_v2" },
		{ (void *)cuda->memset_d8, "cuMemsetD8_v2" },
		{ (void *)cuda->ctx_get_current, "cuCtxGetCurrent" },
		{ (void *)cuda->ctx_set_current, "cuCtxSetCurrent" },
		{ (void *)cuda->ctx_push_current, "cuCtxPushCurrent_v2" },
		{ (void *)cuda->ctx_pop_current, "cuCtxPopCurrent_v2" },
		{ (void *)cuda->primary_ctx_retain, "cuDevicePrimaryCtxRetain" },
		{ (void *)cuda->primary_ctx_release, "cuDevicePrimaryCtxRelease_v2" },
		{ (void *)cuda->get_error_name, "cuGetErrorName" },
	};
	const struct { void *address; const char *name; } optional[] = {
		{ (void *)cuda->mem_retain_allocation_handle, "cuMemRetainAllocationHandle" },
		{ (void *)cuda->mem_release, "cuMemRelease" },
		{ (void *)cuda->mem_export_to_shareable_handle, "cuMemExportToShareableHandle" },
		{ (void *)cuda->mem_get_allocation_properties,
		  "cuMemGetAllocationPropertiesFromHandle" },
		{ (void *)cuda->mem_get_handle_for_address_range,
		  "cuMemGetHandleForAddressRange" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(rows[i].address != NULL);
		CHECK(rows[i].address == dlsym(cuda->library, rows[i].name));
	}
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		CHECK(optional[i].address == dlsym(cuda->library, optional[i].name));
}

static void present_driver(void)
{
	void *emulated = open_emulated_driver();
	struct gdri_cuda cuda;
	int version = 0;

	if (!emulated && !loader_finds_cuda())
		SKIP("neither an emulated nor a real CUDA driver is at hand");
	REQUIRE_EQ(gdri_os_cuda_load(&cuda), 0);
	check_symbols(&cuda);
	/* Before any cuInit. */
	CHECK_EQ(cuda.driver_get_version(&version), 0);
	CHECK(version >= 11000);
	/* The application may drop the library; the session still has it. */
	if (emulated)
		dlclose(emulated);
	CHECK_EQ(cuda.driver_get_version(&version), 0);
	gdri_os_cuda_unload(&cuda);
	CHECK(cuda.library == NULL);
	gdri_os_cuda_unload(&cuda);
}

static const struct harness_case cases[] = {
	{ "os_cuda_results_become_errno", results_become_errno },
	{ "os_cuda_missing_driver", missing_driver },
	{ "os_cuda_present_driver", present_driver },
};

HARNESS_MAIN(cases)
