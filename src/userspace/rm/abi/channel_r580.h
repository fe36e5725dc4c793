/* SPDX-License-Identifier: MIT */
/*
 * The part of the resource-manager interface that channels need, driver branch
 * 580: facts from the headers of the open kernel modules (tag 580.105.08), which
 * each section names.
 */
#ifndef GDRI_RM_ABI_CHANNEL_R580_H
#define GDRI_RM_ABI_CHANNEL_R580_H

#include <stddef.h>
#include <stdint.h>

/* Escapes: nv_escape.h */
enum {
	GDRI_RM_ESC_ALLOC_MEMORY = 0x27,
	GDRI_RM_ESC_MAP_MEMORY_DMA = 0x57,
	GDRI_RM_ESC_UNMAP_MEMORY_DMA = 0x58
};

/* Classes: src/common/sdk/nvidia/inc/class/cl*.h */
enum {
	GDRI_RM_CLASS_MEMORY_VIRTUAL = 0x70,
	GDRI_RM_CLASS_MEMORY_OS_DESCRIPTOR = 0x71,
	GDRI_RM_CLASS_VASPACE = 0x90f1,
	GDRI_RM_CLASS_CHANNEL_GROUP = 0xa06c
};

/* class/cl0080.h: the device has no address space of its own; objects name theirs. */
#define GDRI_RM_VA_MODE_MULTIPLE 2

/*
 * nvos.h: NVOS02_PARAMETERS with the descriptor of
 * nv-unix-nvos-params-wrappers.h.  memory is an address of this process.
 */
struct gdri_rm_alloc_memory {
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t class_id;
	uint32_t flags;
	uint32_t pad0;
	uint64_t memory;
	uint64_t limit;		/* size - 1 */
	uint32_t status;
	uint32_t pad1;
	int32_t fd;
	uint32_t pad2;
};
_Static_assert(sizeof(struct gdri_rm_alloc_memory) == 56, "NVOS02 with fd");

/* NVOS02_FLAGS: scattered pages, cached by the CPU, no mapping by the driver. */
#define GDRI_RM_ALLOC_MEMORY_FLAGS (1u << 4 | 1u << 12 | 1u << 30)

/* nvos.h: NVOS46_PARAMETERS */
struct gdri_rm_map_dma {
	uint32_t client;
	uint32_t device;
	uint32_t dma;		/* the virtual memory object */
	uint32_t memory;
	uint64_t offset;
	uint64_t length;
	uint32_t flags;
	uint32_t flags2;
	uint32_t kind;
	uint32_t pad0;
	uint64_t address;	/* out: for the device */
	uint32_t status;
	uint32_t pad1;
};
_Static_assert(sizeof(struct gdri_rm_map_dma) == 64, "NVOS46");
_Static_assert(offsetof(struct gdri_rm_map_dma, address) == 48, "NVOS46");
#define GDRI_RM_MAP_DMA_SNOOP (1u << 4)	/* the device's accesses are coherent with CPU caches */

/* nvos.h: NVOS47_PARAMETERS; size 0: all of the mapping */
struct gdri_rm_unmap_dma {
	uint32_t client;
	uint32_t device;
	uint32_t dma;
	uint32_t memory;
	uint32_t flags;
	uint32_t pad0;
	uint64_t address;
	uint64_t size;
	uint32_t status;
	uint32_t pad1;
};
_Static_assert(sizeof(struct gdri_rm_unmap_dma) == 48, "NVOS47");

/* nvos.h: NV_VASPACE_ALLOCATION_PARAMETERS; zeroed: the driver chooses */
struct gdri_rm_vaspace_params {
	uint32_t index;
	uint32_t flags;
	uint64_t size;
	uint64_t start;
	uint64_t limit;
	uint32_t big_page_size;
	uint32_t pad0;
	uint64_t base;
	uint32_t pasid;
	uint32_t pad1;
};
_Static_assert(sizeof(struct gdri_rm_vaspace_params) == 56, "NV_VASPACE_ALLOCATION_PARAMETERS");

/* class/cl0070.h: NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS; zeroes: all of the space */
struct gdri_rm_virtual_params {
	uint64_t offset;
	uint64_t limit;
	uint32_t vaspace;
	uint32_t pad0;
};
_Static_assert(sizeof(struct gdri_rm_virtual_params) == 24,
	       "NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS");

/* nvos.h: NV_MEMORY_ALLOCATION_PARAMS */
struct gdri_rm_memory_params {
	uint32_t owner;
	uint32_t type;
	uint32_t flags;
	uint32_t width;
	uint32_t height;
	int32_t pitch;
	uint32_t attr;
	uint32_t attr2;
	uint32_t format;
	uint32_t compression_coverage;
	uint32_t zcull_coverage;
	uint32_t pad0;
	uint64_t range_low;
	uint64_t range_high;
	uint64_t size;
	uint64_t alignment;
	uint64_t offset;
	uint64_t limit;
	uint64_t address;
	uint32_t tag_offset;
	uint32_t vaspace;
	uint32_t internal_flags;
	uint32_t tag;
	int32_t numa_node;
	uint32_t pad1;
};
_Static_assert(sizeof(struct gdri_rm_memory_params) == 128, "NV_MEMORY_ALLOCATION_PARAMS");
#define GDRI_RM_MEMORY_CONTIGUOUS (2u << 27)	/* NVOS32_ATTR_PHYSICALITY_CONTIGUOUS */

/* nvos.h: NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS */
struct gdri_rm_channel_group_params {
	uint32_t error;
	uint32_t ecc_error;
	uint32_t vaspace;
	uint32_t engine_type;
	uint8_t vgpu_plugin;
	uint8_t pad0[3];
};
_Static_assert(sizeof(struct gdri_rm_channel_group_params) == 20,
	       "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS");

/* alloc/alloc_channel.h: NV_MEMORY_DESC_PARAMS, reserved for the driver */
struct gdri_rm_memory_desc {
	uint64_t base;
	uint64_t size;
	uint32_t address_space;
	uint32_t cache_attribute;
};

/* alloc/alloc_channel.h: NV_CHANNEL_ALLOC_PARAMS */
struct gdri_rm_channel_params {
	uint32_t error;			/* memory for notifiers, from its first byte on */
	uint32_t buffer;
	uint64_t ring_address;		/* for the device */
	uint32_t ring_entries;
	uint32_t flags;
	uint32_t context_share;
	uint32_t vaspace;		/* 0: the group's */
	uint32_t userd_memory[8];
	uint64_t userd_offset[8];
	uint32_t engine_type;
	uint32_t channel_id;
	uint32_t subdevice;
	uint32_t ecc_error;
	struct gdri_rm_memory_desc instance;
	struct gdri_rm_memory_desc userd;
	struct gdri_rm_memory_desc ramfc;
	struct gdri_rm_memory_desc method_buffer;
	uint32_t physical_group;
	uint32_t internal_flags;
	struct gdri_rm_memory_desc error_notifier;
	struct gdri_rm_memory_desc ecc_notifier;
	uint32_t process;
	uint32_t subprocess;
	uint32_t encrypt_iv[3];
	uint32_t decrypt_iv[3];
	uint32_t nonce[8];
	uint32_t tpc_config;
	uint32_t pad0;
};
_Static_assert(sizeof(struct gdri_rm_channel_params) == 368, "NV_CHANNEL_ALLOC_PARAMS");
_Static_assert(offsetof(struct gdri_rm_channel_params, userd_offset) == 64,
	       "NV_CHANNEL_ALLOC_PARAMS");

/* nvtypes.h: NvNotification; the first of a channel's notifiers tells its errors */
struct gdri_rm_notification {
	uint64_t timestamp;
	uint32_t info32;	/* ROBUST_CHANNEL_*: the number of an Xid */
	uint16_t info16;
	uint16_t status;	/* 0xffff: an error */
};
_Static_assert(sizeof(struct gdri_rm_notification) == 16, "NvNotification");

/* class/clb0b5sw.h: NVB0B5_ALLOCATION_PARAMETERS; version 1 takes an engine type */
struct gdri_rm_copy_params {
	uint32_t version;
	uint32_t engine_type;
};

/* nvos.h: NV_HOPPER_USERMODE_A_PARAMS */
struct gdri_rm_usermode_params {
	uint8_t bar1_mapping;
	uint8_t privileged;
};
#define GDRI_RM_USERMODE_SIZE 0x10000	/* class/clc361.h */
#define GDRI_RM_USERMODE_DOORBELL 0x90	/* NVC361_NOTIFY_CHANNEL_PENDING */

/* USERD: class/clc86f.h, Nvc86fControl */
#define GDRI_RM_USERD_SIZE 512
#define GDRI_RM_USERD_GP_GET 0x88
#define GDRI_RM_USERD_GP_PUT 0x8c

/* Control of a channel group: ctrl/ctrla06c.h */
#define GDRI_RM_CTRL_GROUP_SCHEDULE 0xa06c0101u
struct gdri_rm_schedule {
	uint8_t enable;
	uint8_t skip_submit;
	uint8_t skip_enable;
};

/* Control of a channel: ctrl/ctrlc36f.h */
#define GDRI_RM_CTRL_WORK_SUBMIT_TOKEN 0xc36f0108u
struct gdri_rm_submit_token {
	uint32_t token;
};

/* Control of a device: ctrl/ctrl0080/ctrl0080gpu.h */
#define GDRI_RM_CTRL_GET_CLASS_LIST_V2 0x800292u
#define GDRI_RM_MAX_CLASSES 200	/* NV0080_CTRL_GPU_CLASSLIST_MAX_SIZE */
struct gdri_rm_class_list {
	uint32_t count;
	uint32_t class_id[GDRI_RM_MAX_CLASSES];
};

/* Engine types: class/cl2080.h; COPY0 to COPY9 follow each other */
#define GDRI_RM_ENGINE_COPY0 9u
#define GDRI_RM_MAX_COPY_ENGINES 10u

/* Controls of a subdevice: ctrl/ctrl2080/{ctrl2080gpu,ctrl2080ce}.h */
#define GDRI_RM_CTRL_GET_ENGINES_V2 0x20800170u
#define GDRI_RM_MAX_ENGINES 84	/* NV2080_GPU_MAX_ENGINES_LIST_SIZE */
struct gdri_rm_engine_list {
	uint32_t count;
	uint32_t type[GDRI_RM_MAX_ENGINES];
};

#define GDRI_RM_CTRL_CE_PCE_MASK 0x20802a02u
struct gdri_rm_pce_mask {
	uint32_t engine_type;
	uint32_t mask;		/* a bit for each physical engine */
};

#endif
