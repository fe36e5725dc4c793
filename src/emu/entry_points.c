/* SPDX-License-Identifier: MIT */
/* cuGetProcAddress: from a plain name and a CUDA version to a function. */
#include <dlfcn.h>
#include <string.h>

#include "emu.h"

/*
 * Plain names whose function has another name, with the CUDA version that
 * brought the form.  Newest first; all others are exported as they are called.
 */
static const struct {
	const char *name, *symbol;
	int since;
} versions[] = {
	{ "cuCtxCreate", "cuCtxCreate_v4", 12050 },
	{ "cuCtxCreate", "cuCtxCreate_v3", 11040 },
	{ "cuCtxCreate", "cuCtxCreate_v2", 3020 },
	{ "cuCtxDestroy", "cuCtxDestroy_v2", 4000 },
	{ "cuCtxPopCurrent", "cuCtxPopCurrent_v2", 4000 },
	{ "cuCtxPushCurrent", "cuCtxPushCurrent_v2", 4000 },
	{ "cuDeviceGetUuid", "cuDeviceGetUuid_v2", 11040 },
	{ "cuDeviceGetUuid", "cuDeviceGetUuid", 9020 },
	{ "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000 },
	{ "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", 11000 },
	{ "cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2", 11000 },
	{ "cuDeviceTotalMem", "cuDeviceTotalMem_v2", 3020 },
	{ "cuEventDestroy", "cuEventDestroy_v2", 4000 },
	{ "cuEventElapsedTime", "cuEventElapsedTime_v2", 12080 },
	{ "cuEventElapsedTime", "cuEventElapsedTime", 2000 },
	{ "cuGetProcAddress", "cuGetProcAddress_v2", 12000 },
	{ "cuGetProcAddress", "cuGetProcAddress", 11030 },
	{ "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 11000 },
	{ "cuMemAlloc", "cuMemAlloc_v2", 3020 },
	{ "cuMemAllocHost", "cuMemAllocHost_v2", 3020 },
	{ "cuMemFree", "cuMemFree_v2", 3020 },
	{ "cuMemGetAddressRange", "cuMemGetAddressRange_v2", 3020 },
	{ "cuMemGetInfo", "cuMemGetInfo_v2", 3020 },
	{ "cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2", 3020 },
	{ "cuMemHostRegister", "cuMemHostRegister_v2", 6050 },
	{ "cuMemcpyDtoD", "cuMemcpyDtoD_v2", 3020 },
	{ "cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", 3020 },
	{ "cuMemcpyDtoH", "cuMemcpyDtoH_v2", 3020 },
	{ "cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", 3020 },
	{ "cuMemcpyHtoD", "cuMemcpyHtoD_v2", 3020 },
	{ "cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", 3020 },
	{ "cuMemsetD16", "cuMemsetD16_v2", 3020 },
	{ "cuMemsetD32", "cuMemsetD32_v2", 3020 },
	{ "cuMemsetD8", "cuMemsetD8_v2", 3020 },
	{ "cuStreamDestroy", "cuStreamDestroy_v2", 4000 },
};

/* The exported function of this library, whatever else the process has loaded. */
static void *own_symbol(const char *symbol)
{
	Dl_info info;
	void *self, *entry;

	if (strncmp(symbol, "cu", 2) != 0 ||
	    !dladdr((const void *)(uintptr_t)cuDriverGetVersion, &info))
		return NULL;
	self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!self)
		return NULL;
	entry = dlsym(self, symbol);
	dlclose(self);
	return entry;
}

static void *find_entry(const char *name, int version, CUdriverProcAddressQueryResult *status)
{
	bool known = false;
	void *entry;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (strcmp(versions[i].name, name) != 0)
			continue;
		known = true;
		if (version >= versions[i].since) {
			*status = CU_GET_PROC_ADDRESS_SUCCESS;
			return own_symbol(versions[i].symbol);
		}
	}
	entry = known ? NULL : own_symbol(name);
	if (entry)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (known)
		*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return entry;
}

EMU_API CUresult cuGetProcAddress_v2(const char *symbol, void **entry, int version,
				     cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult found;

	if (!symbol || !entry || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_NOT_SUPPORTED;
	*entry = find_entry(symbol, version, &found);
	if (status)
		*status = found;
	/* As CUDA 12 does: the status tells, if the caller asked for it. */
	return *entry || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
EMU_API CUresult cuGetProcAddress(const char *symbol, void **entry, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, entry, version, flags, NULL);
}
