/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The ioctl interface of /dev/gdrdrv, version 2.6: the only copy, shared by
 * the kernel module and the library.
 *
 * Every request reads and writes one struct below.  Released numbers and
 * layouts never change, odd ones included; a new request gets a new number and
 * raises GDRDRV_VERSION.  Results are 0 or an errno; EACCES means that another
 * process opened the file.
 *
 * A handle names one pinned range of one open file.  It is also the range's
 * place in the file: mmap with offset handle << PAGE_SHIFT, MAP_SHARED, read
 * and write, maps it from its first GPU page on.  0 is a valid handle.
 */
#ifndef GDRDRV_H
#define GDRDRV_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stddef.h>
#endif

#define GDRDRV_DEVICE_PATH "/dev/gdrdrv"

/* (major << 16) | minor of the module, and of the oldest library it serves. */
#define GDRDRV_VERSION 0x00020006
#define GDRDRV_MINIMUM_API_VERSION 0x00020000

enum gdrdrv_pin_flags {
	GDRDRV_PIN_FLAG_FORCE_PCIE = 1	/* not through a coherent CPU link */
};

enum gdrdrv_mapping_type {
	GDRDRV_MAPPING_TYPE_NONE = 0,	/* not mapped */
	GDRDRV_MAPPING_TYPE_WC = 1,
	GDRDRV_MAPPING_TYPE_CACHING = 2,
	GDRDRV_MAPPING_TYPE_DEVICE = 3
};

enum gdrdrv_attr {
	GDRDRV_ATTR_USE_PERSISTENT_MAPPING = 1,
	GDRDRV_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE = 2
};

/* Pins the GPU pages that [addr, addr + size) touches. */
struct gdrdrv_pin_buffer {
	__u64 addr;		/* in */
	__u64 size;		/* in */
	__u64 p2p_token;	/* in; 0 in persistent mode */
	__u32 va_space;		/* in; 0 in persistent mode */
	__u32 reserved;		/* never looked at */
	__u64 handle;		/* out */
};

/* The same without tokens; since module 2.5. */
struct gdrdrv_pin_buffer_v2 {
	__u64 addr;		/* in */
	__u64 size;		/* in */
	__u32 flags;		/* in; enum gdrdrv_pin_flags, others give EINVAL */
	__u32 reserved;		/* never looked at */
	__u64 handle;		/* out */
};

/* Revokes the mapping, if there is one, and releases the GPU pages. */
struct gdrdrv_unpin_buffer {
	__u64 handle;		/* in */
};

/* Whether the NVIDIA driver has taken the pages back: non-persistent mode only. */
struct gdrdrv_get_cb_flag {
	__u64 handle;		/* in */
	__u32 flag;		/* out */
	__u32 reserved;
};

struct gdrdrv_get_info {
	__u64 handle;		/* in */
	__u64 va;		/* out: pinned address, rounded down to a GPU page */
	__u64 mapped_size;	/* out: bytes from va on */
	__u32 page_size;	/* out: of the GPU, 65536 */
	__u32 tsc_khz;		/* out: rate of tm_cycles; 0 where there is no such counter */
	__u64 tm_cycles;	/* out: cycles that the NVIDIA driver's pin call took */
	__u32 mapped;		/* out: 1 between mmap and munmap */
	__u32 wc_mapping;	/* out: 1 when mapped write-combined */
};

/* The same with the kind of mapping; since module 2.4. */
struct gdrdrv_get_info_v2 {
	__u64 handle;
	__u64 va;
	__u64 mapped_size;
	__u32 page_size;
	__u32 tsc_khz;
	__u64 tm_cycles;
	__u32 mapping_type;	/* out; enum gdrdrv_mapping_type */
	__u32 reserved;
};

/* Since module 2.5. */
struct gdrdrv_get_attr {
	__u32 attr;		/* in; enum gdrdrv_attr */
	__u32 val;		/* out */
};

/* Asks for the type of the next mmap of this handle; since module 2.5. */
struct gdrdrv_req_mapping_type {
	__u64 handle;		/* in */
	__u32 mapping_type;	/* in */
	__u32 reserved;		/* never looked at */
};

struct gdrdrv_get_version {
	__u32 gdrdrv_version;		/* out */
	__u32 minimum_gdr_api_version;	/* out */
};

/*
 * The size that most numbers carry is that of a pointer on the 64-bit systems
 * where they were first used, not that of the struct: an old slip, now part
 * of the interface.  __u64 gives the same numbers everywhere.
 */
#define GDRDRV_IOCTL_TYPE 0xDA
#define GDRDRV_IOC_PIN_BUFFER _IOWR(GDRDRV_IOCTL_TYPE, 1, struct gdrdrv_pin_buffer)
#define GDRDRV_IOC_UNPIN_BUFFER _IOWR(GDRDRV_IOCTL_TYPE, 2, __u64)
#define GDRDRV_IOC_GET_CB_FLAG _IOWR(GDRDRV_IOCTL_TYPE, 3, __u64)
#define GDRDRV_IOC_GET_INFO _IOWR(GDRDRV_IOCTL_TYPE, 4, __u64)
#define GDRDRV_IOC_GET_INFO_V2 _IOWR(GDRDRV_IOCTL_TYPE, 5, __u64)
#define GDRDRV_IOC_GET_ATTR _IOWR(GDRDRV_IOCTL_TYPE, 6, __u64)
#define GDRDRV_IOC_PIN_BUFFER_V2 _IOWR(GDRDRV_IOCTL_TYPE, 7, struct gdrdrv_pin_buffer_v2)
#define GDRDRV_IOC_REQ_MAPPING_TYPE _IOWR(GDRDRV_IOCTL_TYPE, 8, __u64)
#define GDRDRV_IOC_GET_VERSION _IOWR(GDRDRV_IOCTL_TYPE, 255, __u64)

/* Layouts and numbers are checked by whoever includes this file. */
#ifdef __cplusplus
#define GDRDRV_ASSERT(condition) static_assert(condition, #condition)
#else
#define GDRDRV_ASSERT(condition) _Static_assert(condition, #condition)
#endif
#define GDRDRV_ASSERT_SIZE(type, size) GDRDRV_ASSERT(sizeof(struct type) == (size))
#define GDRDRV_ASSERT_AT(type, member, offset) \
	GDRDRV_ASSERT(offsetof(struct type, member) == (offset))

GDRDRV_ASSERT_SIZE(gdrdrv_pin_buffer, 40);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer, addr, 0);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer, size, 8);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer, p2p_token, 16);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer, va_space, 24);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer, handle, 32);
GDRDRV_ASSERT_SIZE(gdrdrv_pin_buffer_v2, 32);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer_v2, addr, 0);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer_v2, size, 8);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer_v2, flags, 16);
GDRDRV_ASSERT_AT(gdrdrv_pin_buffer_v2, handle, 24);
GDRDRV_ASSERT_SIZE(gdrdrv_unpin_buffer, 8);
GDRDRV_ASSERT_AT(gdrdrv_unpin_buffer, handle, 0);
GDRDRV_ASSERT_SIZE(gdrdrv_get_cb_flag, 16);
GDRDRV_ASSERT_AT(gdrdrv_get_cb_flag, handle, 0);
GDRDRV_ASSERT_AT(gdrdrv_get_cb_flag, flag, 8);
GDRDRV_ASSERT_SIZE(gdrdrv_get_info, 48);
GDRDRV_ASSERT_AT(gdrdrv_get_info, handle, 0);
GDRDRV_ASSERT_AT(gdrdrv_get_info, va, 8);
GDRDRV_ASSERT_AT(gdrdrv_get_info, mapped_size, 16);
GDRDRV_ASSERT_AT(gdrdrv_get_info, page_size, 24);
GDRDRV_ASSERT_AT(gdrdrv_get_info, tsc_khz, 28);
GDRDRV_ASSERT_AT(gdrdrv_get_info, tm_cycles, 32);
GDRDRV_ASSERT_AT(gdrdrv_get_info, mapped, 40);
GDRDRV_ASSERT_AT(gdrdrv_get_info, wc_mapping, 44);
GDRDRV_ASSERT_SIZE(gdrdrv_get_info_v2, 48);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, handle, 0);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, va, 8);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, mapped_size, 16);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, page_size, 24);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, tsc_khz, 28);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, tm_cycles, 32);
GDRDRV_ASSERT_AT(gdrdrv_get_info_v2, mapping_type, 40);
GDRDRV_ASSERT_SIZE(gdrdrv_get_attr, 8);
GDRDRV_ASSERT_AT(gdrdrv_get_attr, attr, 0);
GDRDRV_ASSERT_AT(gdrdrv_get_attr, val, 4);
GDRDRV_ASSERT_SIZE(gdrdrv_req_mapping_type, 16);
GDRDRV_ASSERT_AT(gdrdrv_req_mapping_type, handle, 0);
GDRDRV_ASSERT_AT(gdrdrv_req_mapping_type, mapping_type, 8);
GDRDRV_ASSERT_SIZE(gdrdrv_get_version, 8);
GDRDRV_ASSERT_AT(gdrdrv_get_version, gdrdrv_version, 0);
GDRDRV_ASSERT_AT(gdrdrv_get_version, minimum_gdr_api_version, 4);
GDRDRV_ASSERT(GDRDRV_IOC_PIN_BUFFER == 0xc028da01);
GDRDRV_ASSERT(GDRDRV_IOC_UNPIN_BUFFER == 0xc008da02);
GDRDRV_ASSERT(GDRDRV_IOC_GET_CB_FLAG == 0xc008da03);
GDRDRV_ASSERT(GDRDRV_IOC_GET_INFO == 0xc008da04);
GDRDRV_ASSERT(GDRDRV_IOC_GET_INFO_V2 == 0xc008da05);
GDRDRV_ASSERT(GDRDRV_IOC_GET_ATTR == 0xc008da06);
GDRDRV_ASSERT(GDRDRV_IOC_PIN_BUFFER_V2 == 0xc020da07);
GDRDRV_ASSERT(GDRDRV_IOC_REQ_MAPPING_TYPE == 0xc008da08);
GDRDRV_ASSERT(GDRDRV_IOC_GET_VERSION == 0xc008daff);

#endif
