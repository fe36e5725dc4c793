/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * /dev/nvidia-emu: GPU memory of the stand-in for nvidia.ko, and the knobs of the tests.
 *
 * Physical memory is the BAR of a PCI device, in 64 KiB pages.  An object is
 * what cuMemAlloc makes: some pages.  It has a place in the device file, where
 * mmap reaches it as the GPU itself would.  Binding it gives it a device
 * address in the calling process; nvidia_p2p_get_pages takes such addresses.
 * Objects belong to the open file and go with it.
 */
#ifndef NVIDIA_EMU_H
#define NVIDIA_EMU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define NVIDIA_EMU_PATH "/dev/nvidia-emu"
#define NVIDIA_EMU_PAGE 65536ull
#define NVIDIA_EMU_OBJECT_ALIGN (2ull << 20)	/* of sizes and places in the file */

struct nvidia_emu_alloc {
	__u64 size;		/* in; a multiple of NVIDIA_EMU_OBJECT_ALIGN */
	__u32 device;		/* in; 0 is the first BAR */
	__u32 reserved;
	__u64 offset;		/* out: place in the file; the bytes are zero */
};

struct nvidia_emu_free {
	__u64 offset;		/* in; fires the callbacks of pins, undoes bindings */
};

/* A binding that exists already is counted; unbinding counts down. */
struct nvidia_emu_bind {
	__u64 va;		/* in; multiples of 64 KiB */
	__u64 size;
	__u64 offset;		/* place in the file, inside one object */
};

/* Fires the callbacks of pins that meet the range in this process; size 0: of all pins. */
struct nvidia_emu_revoke {
	__u64 va;		/* in */
	__u64 size;		/* in */
	__u32 fired;		/* out */
	__u32 reserved;
};

struct nvidia_emu_settings {
	__u32 scattered;	/* new objects get pages in no order */
	__u32 table_version;	/* of new page tables; 0: that of the header */
	__u32 page_size_type;	/* of new page tables; 1: 64 KiB */
	__u32 table_flags;	/* of new page tables, where the layout has them */
	__u32 fail_every;	/* each N-th get call fails; 0: none */
	__u32 fail_errno;	/* with this (positive) */
	__u32 get_delay_ms;
	__u32 put_delay_ms;
	__u32 callback_delay_ms;	/* before the callback */
	__u32 revoke_in_get;	/* callbacks fire before get_pages returns */
	__u32 reserve_wc;	/* the stand-in holds a write-combining reservation of the BARs */
	__u32 coherent;		/* forced BAR1 mappings are possible */
	__u32 bar1_pages;	/* more pinned pages than this: ENOMEM; 0: no limit */
	__u32 reserved[3];
};

struct nvidia_emu_stats {
	__u64 objects;		/* alive, pinned ones included */
	__u64 used_pages;	/* of all BARs */
	__u64 total_pages;
	__u64 bindings;
	__u64 pins;		/* alive, both kinds */
	__u64 persistent_pins;
	__u64 pinned_pages;
	__u64 gets;		/* calls so far */
	__u64 puts;
	__u64 late_puts;	/* of pins that a callback had ended: allowed */
	__u64 callbacks;
	__u64 misuse;		/* calls that no client may make; each is in the log */
};

struct nvidia_emu_where {
	__u64 offset;		/* in: place in the file */
	__u64 physical;		/* out: bus address */
};

#define NVIDIA_EMU_ALLOC _IOWR('E', 1, struct nvidia_emu_alloc)
#define NVIDIA_EMU_FREE _IOW('E', 2, struct nvidia_emu_free)
#define NVIDIA_EMU_BIND _IOW('E', 3, struct nvidia_emu_bind)
#define NVIDIA_EMU_UNBIND _IOW('E', 4, struct nvidia_emu_bind)
#define NVIDIA_EMU_REVOKE _IOWR('E', 5, struct nvidia_emu_revoke)
#define NVIDIA_EMU_GET_SETTINGS _IOR('E', 6, struct nvidia_emu_settings)
#define NVIDIA_EMU_SET_SETTINGS _IOW('E', 7, struct nvidia_emu_settings)
#define NVIDIA_EMU_GET_STATS _IOR('E', 8, struct nvidia_emu_stats)
#define NVIDIA_EMU_WHERE _IOWR('E', 9, struct nvidia_emu_where)

#endif
