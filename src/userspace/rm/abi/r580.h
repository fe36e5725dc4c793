/* SPDX-License-Identifier: MIT */
/*
 * Numbers and layouts of NVIDIA's resource-manager interface, driver branch 580.
 *
 * Facts from the headers of the open kernel modules (tag 580.142), which each
 * section names; only what this library uses.  Every structure is checked by
 * size, since the driver refuses a request of any other size.
 */
#ifndef GDRI_RM_ABI_R580_H
#define GDRI_RM_ABI_R580_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Escapes: src/nvidia/arch/nvalloc/unix/include/{nv_escape,nv-ioctl-numbers}.h */
#define GDRI_RM_IOCTL(number, type) _IOWR('F', number, type)
enum {
	GDRI_RM_ESC_FREE = 0x29,
	GDRI_RM_ESC_CONTROL = 0x2a,
	GDRI_RM_ESC_ALLOC = 0x2b,
	GDRI_RM_ESC_DUP_OBJECT = 0x34,
	GDRI_RM_ESC_MAP_MEMORY = 0x4e,
	GDRI_RM_ESC_UNMAP_MEMORY = 0x4f,
	GDRI_RM_ESC_CARD_INFO = 200,
	GDRI_RM_ESC_REGISTER_FD = 201,
	GDRI_RM_ESC_CHECK_VERSION = 210
};

/* Client handles start here: src/nvidia/inc/libraries/resserv/resserv.h */
#define GDRI_RM_IS_CLIENT_HANDLE(handle) (((handle) & 0xfff00000u) == 0xc1d00000u)

/* Status codes: src/common/sdk/nvidia/inc/nvstatuscodes.h */
enum {
	GDRI_RM_OK = 0,
	GDRI_RM_BUSY_RETRY = 0x03,
	GDRI_RM_GPU_IS_LOST = 0x0f,
	GDRI_RM_IN_USE = 0x17,
	GDRI_RM_INSERT_DUPLICATE_NAME = 0x19,
	GDRI_RM_INSUFFICIENT_RESOURCES = 0x1a,
	GDRI_RM_INSUFFICIENT_PERMISSIONS = 0x1b,
	GDRI_RM_INVALID_ARGUMENT = 0x1f,
	GDRI_RM_INVALID_CLASS = 0x22,
	GDRI_RM_INVALID_CLIENT = 0x23,
	GDRI_RM_INVALID_LIMIT = 0x2e,
	GDRI_RM_INVALID_OBJECT_HANDLE = 0x33,
	GDRI_RM_INVALID_OBJECT_PARENT = 0x36,
	GDRI_RM_NO_MEMORY = 0x51,
	GDRI_RM_NOT_SUPPORTED = 0x56,
	GDRI_RM_OBJECT_NOT_FOUND = 0x57,
	GDRI_RM_STATE_IN_USE = 0x63,
	GDRI_RM_TIMEOUT = 0x65
};

/* Classes: src/common/sdk/nvidia/inc/class/cl*.h */
enum {
	GDRI_RM_CLASS_MEMORY_LOCAL_USER = 0x40,
	GDRI_RM_CLASS_ROOT_CLIENT = 0x41,
	GDRI_RM_CLASS_DEVICE = 0x80,
	GDRI_RM_CLASS_SUBDEVICE = 0x2080,
	GDRI_RM_CLASS_CONF_COMPUTE = 0xcb33
};

/* nvos.h: NVOS21_PARAMETERS */
struct gdri_rm_alloc {
	uint32_t client;
	uint32_t parent;
	uint32_t object;	/* in; out for the root client */
	uint32_t class_id;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};
_Static_assert(sizeof(struct gdri_rm_alloc) == 32, "NVOS21");

/* NVOS00_PARAMETERS */
struct gdri_rm_free {
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t status;
};
_Static_assert(sizeof(struct gdri_rm_free) == 16, "NVOS00");

/* NVOS54_PARAMETERS */
struct gdri_rm_control {
	uint32_t client;
	uint32_t object;
	uint32_t command;
	uint32_t flags;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};
_Static_assert(sizeof(struct gdri_rm_control) == 32, "NVOS54");

/* NVOS55_PARAMETERS */
struct gdri_rm_dup {
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t source_client;
	uint32_t source_object;
	uint32_t flags;
	uint32_t status;
};
_Static_assert(sizeof(struct gdri_rm_dup) == 28, "NVOS55");

/*
 * NVOS33_PARAMETERS with the descriptor of nv-unix-nvos-params-wrappers.h.
 * Bits 25:23 of the returned flags are the caching type of the mapping.
 */
struct gdri_rm_map {
	uint32_t client;
	uint32_t device;
	uint32_t memory;
	uint32_t pad0;
	uint64_t offset;
	uint64_t length;
	uint64_t linear;	/* out: names the mapping towards unmap */
	uint32_t status;
	uint32_t flags;
	int32_t fd;
	uint32_t pad1;
};
_Static_assert(sizeof(struct gdri_rm_map) == 56, "NVOS33 with fd");

#define GDRI_RM_MAP_CACHING(flags) (((flags) >> 23) & 7)
enum {
	GDRI_RM_CACHING_CACHED = 0,
	GDRI_RM_CACHING_WRITE_COMBINED = 2,
	GDRI_RM_CACHING_WRITE_BACK = 5
};

/* NVOS34_PARAMETERS */
struct gdri_rm_unmap {
	uint32_t client;
	uint32_t device;
	uint32_t memory;
	uint32_t pad0;
	uint64_t linear;
	uint32_t status;
	uint32_t flags;
};
_Static_assert(sizeof(struct gdri_rm_unmap) == 32, "NVOS34");

/* nv-ioctl.h: nv_ioctl_rm_api_version_t; command '2' asks, nothing is compared. */
#define GDRI_RM_VERSION_QUERY ((uint32_t)'2')
struct gdri_rm_version {
	uint32_t command;
	uint32_t reply;		/* 1: version holds the driver's version */
	char version[64];
};
_Static_assert(sizeof(struct gdri_rm_version) == 72, "nv_ioctl_rm_api_version");

/* nv-ioctl.h: nv_ioctl_register_fd_t, on a /dev/nvidiaN descriptor */
struct gdri_rm_register {
	int32_t control_fd;
};

/*
 * nv-ioctl.h: nv_ioctl_card_info_t, an array of as many as the request has
 * room for.  (Control 0x3d07, which would give the minor number of one GPU,
 * answers "not supported" on Linux.)
 */
#define GDRI_RM_MAX_GPUS 32	/* nvlimits.h: NV_MAX_DEVICES */
struct gdri_rm_card {
	uint8_t valid;
	uint8_t pad0[3];
	uint32_t pci_domain;
	uint8_t pci_bus;
	uint8_t pci_slot;
	uint8_t pci_function;
	uint8_t pad1;
	uint16_t vendor;
	uint16_t device;
	uint32_t gpu;
	uint16_t interrupt;
	uint8_t pad2[2];
	uint64_t register_base;
	uint64_t register_size;
	uint64_t memory_base;	/* BAR1 */
	uint64_t memory_size;
	uint32_t minor;		/* the number N of /dev/nvidiaN */
	uint8_t name[10];
	uint8_t pad3[2];
};
_Static_assert(sizeof(struct gdri_rm_card) == 72, "nv_ioctl_card_info");
_Static_assert(offsetof(struct gdri_rm_card, gpu) == 16, "nv_ioctl_card_info");
_Static_assert(offsetof(struct gdri_rm_card, minor) == 56, "nv_ioctl_card_info");

/* class/cl0080.h: NV0080_ALLOC_PARAMETERS */
struct gdri_rm_device_params {
	uint32_t device_instance;
	uint32_t client_share;
	uint32_t target_client;
	uint32_t target_device;
	uint32_t flags;
	uint32_t pad0;
	uint64_t va_size;
	uint64_t va_start;
	uint64_t va_limit;
	uint32_t va_mode;
	uint32_t pad1;
};
_Static_assert(sizeof(struct gdri_rm_device_params) == 56, "NV0080_ALLOC_PARAMETERS");

/* class/cl2080.h: NV2080_ALLOC_PARAMETERS */
struct gdri_rm_subdevice_params {
	uint32_t subdevice_id;
};

/* class/clcb33.h: NV_CONFIDENTIAL_COMPUTE_ALLOC_PARAMS */
struct gdri_rm_conf_compute_params {
	uint32_t client;
};

/*
 * Controls of the root client: ctrl/ctrl0000/ctrl0000{client,gpu,unix}.h
 */
#define GDRI_RM_CTRL_GET_HANDLE_INFO 0xd02u
enum { GDRI_RM_HANDLE_INFO_PARENT = 1, GDRI_RM_HANDLE_INFO_CLASS = 2 };
struct gdri_rm_handle_info {
	uint32_t object;
	uint32_t index;
	uint64_t result;
};
_Static_assert(sizeof(struct gdri_rm_handle_info) == 16, "0xd02");

/* Whether two handles of one client name the same memory (the same descriptor in the RM). */
#define GDRI_RM_CTRL_OBJECTS_ARE_DUPLICATES 0xd07u
struct gdri_rm_duplicates {
	uint32_t object1;
	uint32_t object2;
	uint8_t duplicates;
	uint8_t pad0[3];
};
_Static_assert(sizeof(struct gdri_rm_duplicates) == 12, "0xd07");

#define GDRI_RM_CTRL_GET_ID_INFO_V2 0x205u
struct gdri_rm_id_info {
	uint32_t gpu;
	uint32_t flags;
	uint32_t device_instance;
	uint32_t subdevice_instance;
	uint32_t sli_status;
	uint32_t board;
	uint32_t gpu_instance;
	int32_t numa_node;
};
_Static_assert(sizeof(struct gdri_rm_id_info) == 32, "0x205");

#define GDRI_RM_EXPORT_TYPE_RM 1
struct gdri_rm_exported_object {
	uint32_t type;
	uint32_t device;
	uint32_t parent;
	uint32_t object;
};

/* fd: a freshly opened /dev/nvidiactl, which then holds a duplicate of the object. */
#define GDRI_RM_CTRL_EXPORT_TO_FD 0x3d05u
struct gdri_rm_export {
	struct gdri_rm_exported_object object;
	int32_t fd;
	uint32_t flags;
};
_Static_assert(sizeof(struct gdri_rm_export) == 24, "0x3d05");

#define GDRI_RM_CTRL_IMPORT_FROM_FD 0x3d06u
struct gdri_rm_import {
	int32_t fd;
	struct gdri_rm_exported_object object;
};
_Static_assert(sizeof(struct gdri_rm_import) == 20, "0x3d06");

/* What a descriptor holds; it has the GPU-instance member since branch 545. */
#define GDRI_RM_CTRL_GET_EXPORT_INFO 0x3d08u
struct gdri_rm_export_info {
	int32_t fd;
	uint32_t device_instance;	/* of the device that the exporter named */
	uint32_t gpu_instance;		/* of MIG */
	uint16_t max_objects;
	uint8_t metadata[64];
	uint8_t pad0[2];
};
_Static_assert(sizeof(struct gdri_rm_export_info) == 80, "0x3d08");

/* Control of a memory object: ctrl/ctrl0041.h */
#define GDRI_RM_CTRL_GET_SURFACE_INFO 0x410110u
enum {
	GDRI_RM_SURFACE_SIZE_LO = 2,
	GDRI_RM_SURFACE_SIZE_HI = 3,
	GDRI_RM_SURFACE_ADDRESS_SPACE = 9
};
enum { GDRI_RM_ADDRESS_SPACE_VIDMEM = 2 };
struct gdri_rm_info_entry {
	uint32_t index;
	uint32_t data;
};
struct gdri_rm_surface_info {
	uint32_t count;
	uint32_t pad0;
	uint64_t list;
};
_Static_assert(sizeof(struct gdri_rm_surface_info) == 16, "0x410110");

/* Control of a device: ctrl/ctrl0080/ctrl0080gpu.h */
#define GDRI_RM_CTRL_GET_VIRTUALIZATION_MODE 0x800289u
enum { GDRI_RM_VIRTUALIZATION_VGX_GUEST = 2 };
struct gdri_rm_virtualization_mode {
	uint32_t mode;
	uint8_t is_grid_build;
	uint8_t pad0[3];
};
_Static_assert(sizeof(struct gdri_rm_virtualization_mode) == 8, "0x800289");

/* Control of a subdevice: ctrl/ctrl2080/ctrl2080gpu.h; SMC is the driver's word for MIG. */
#define GDRI_RM_CTRL_GPU_GET_INFO_V2 0x20800102u
#define GDRI_RM_GPU_INFO_MAX 70	/* 66 in branch 575 */
enum { GDRI_RM_GPU_INFO_SMC_MODE = 0x2a };
enum { GDRI_RM_SMC_MODE_ENABLED = 1 };
struct gdri_rm_gpu_info {
	uint32_t count;
	struct gdri_rm_info_entry entry[GDRI_RM_GPU_INFO_MAX];
};
_Static_assert(sizeof(struct gdri_rm_gpu_info) == 564, "0x20800102");

/* Control of a confidential-computing object: ctrl/ctrlcb33.h */
#define GDRI_RM_CTRL_CONF_COMPUTE_CAPABILITIES 0xcb330101u
struct gdri_rm_conf_compute {
	uint8_t cpu_capability;
	uint8_t gpu_capability;
	uint8_t environment;
	uint8_t feature;	/* not 0: some mode is on */
	uint8_t devtools;
	uint8_t multi_gpu;
};
_Static_assert(sizeof(struct gdri_rm_conf_compute) == 6, "0xcb330101");

#endif
