/* SPDX-License-Identifier: MIT */
/* Loads the CUDA driver at run time and resolves the calls that back ends make. */
#include "os/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * Where each symbol goes.  Names ending in _v2 are those that cuda.h's macros
 * select; the plain ones beside them have the 32-bit signatures of CUDA 3 or
 * older rules for contexts.  A required call exists in every libcuda since
 * CUDA 11 (driver 450); the others came later and are NULL where missing.
 */
struct symbol {
	const char *name;
	const char *older_name;	/* same signature, tried second */
	size_t offset;
	bool required;
};

#define SYMBOL(member, name, required) \
	{ name, NULL, offsetof(struct gdri_cuda, member), required }

static const struct symbol symbols[] = {
	SYMBOL(driver_get_version, "cuDriverGetVersion", true),
	SYMBOL(init, "cuInit", true),
	SYMBOL(device_get_count, "cuDeviceGetCount", true),
	SYMBOL(device_get, "cuDeviceGet", true),
	SYMBOL(device_get_attribute, "cuDeviceGetAttribute", true),
	/* _v2 (CUDA 11.4) answers the instance on MIG, else the same. */
	{ "cuDeviceGetUuid_v2", "cuDeviceGetUuid", offsetof(struct gdri_cuda, device_get_uuid),
	  true },
	SYMBOL(pointer_get_attribute, "cuPointerGetAttribute", true),
	SYMBOL(pointer_set_attribute, "cuPointerSetAttribute", false),
	SYMBOL(mem_get_address_range, "cuMemGetAddressRange_v2", true),
	SYMBOL(ipc_get_mem_handle, "cuIpcGetMemHandle", true),
	SYMBOL(mem_create, "cuMemCreate", false),
	SYMBOL(mem_retain_allocation_handle, "cuMemRetainAllocationHandle", false),
	SYMBOL(mem_release, "cuMemRelease", false),
	SYMBOL(mem_export_to_shareable_handle, "cuMemExportToShareableHandle", false),
	SYMBOL(mem_get_allocation_properties, "cuMemGetAllocationPropertiesFromHandle", false),
	SYMBOL(mem_get_handle_for_address_range, "cuMemGetHandleForAddressRange", false),
	SYMBOL(mem_alloc, "cuMemAlloc_v2", true),
	SYMBOL(mem_free, "cuMemFree_v2", true),
	SYMBOL(memcpy_dtoh, "cuMemcpyDtoH_v2", true),
	SYMBOL(memset_d8, "cuMemsetD8_v2", true),
	SYMBOL(ctx_get_current, "cuCtxGetCurrent", true),
	SYMBOL(ctx_set_current, "cuCtxSetCurrent", true),
	SYMBOL(ctx_push_current, "cuCtxPushCurrent_v2", true),
	SYMBOL(ctx_pop_current, "cuCtxPopCurrent_v2", true),
	SYMBOL(primary_ctx_retain, "cuDevicePrimaryCtxRetain", true),
	SYMBOL(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", true),
	SYMBOL(get_error_name, "cuGetErrorName", true),
};

static bool resolve_symbol(struct gdri_cuda *cuda, const struct symbol *symbol)
{
	void *address = dlsym(cuda->library, symbol->name);

	if (!address && symbol->older_name)
		address = dlsym(cuda->library, symbol->older_name);
	/* ISO C has no cast from object to function pointer; POSIX gives them one size. */
	memcpy((char *)cuda + symbol->offset, &address, sizeof(address));
	return address || !symbol->required;
}

int gdri_os_cuda_load(struct gdri_cuda *cuda)
{
	struct gdri_cuda loaded = { .library = NULL };

	loaded.library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!loaded.library)
		loaded.library = dlopen("libcuda.so", RTLD_LAZY | RTLD_LOCAL);
	if (!loaded.library)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		if (!resolve_symbol(&loaded, &symbols[i])) {
			dlclose(loaded.library);
			return -ENOSYS;
		}
	}
	*cuda = loaded;
	return 0;
}

void gdri_os_cuda_unload(struct gdri_cuda *cuda)
{
	if (cuda->library)
		dlclose(cuda->library);
	memset(cuda, 0, sizeof(*cuda));
}
