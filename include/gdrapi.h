/* SPDX-License-Identifier: MIT */
/*
 * gdrapi.h: CPU access to NVIDIA GPU memory, source- and binary-compatible
 * with GDRCopy 2.6.
 *
 * The life of a buffer:
 *
 *	gdr_open -> gdr_pin_buffer -> gdr_map -> copies, loads, stores
 *	         -> gdr_unmap -> gdr_unpin_buffer -> gdr_close
 *
 * Results.  Every int-returning call gives 0 or a positive errno value, and
 * strerror() explains each of them.  The calls set errno to nothing in
 * particular.  On failure the handle of a pin and the pointer of a map become
 * 0 and NULL; every other output keeps the value that it had.
 *
 * Threads.  Every call may be made from any thread at any time.  Two threads
 * may copy through one handle without a lock, as long as their ranges do not
 * overlap.  unmap, unpin and close refuse new copies and wait for running
 * ones; plain loads and stores through the mapped pointer are the caller's to
 * stop.
 *
 * Fork.  A child owns nothing of its parent: mappings are absent from it, and
 * calls on a session or handle of the parent fail with EACCES.  It may open a
 * session of its own.
 *
 * Handles that are stale, foreign, freed twice or invented give EINVAL.
 */
#ifndef GDRAPI_H
#define GDRAPI_H

#ifdef GDRCOPY_GDRAPI_H
#error "gdrcopy/gdrapi.h of version 3 is included already; a file uses one of the two interfaces"
#endif

#include <stddef.h>
#include <stdint.h>

#define GDR_API_MAJOR_VERSION 2
#define GDR_API_MINOR_VERSION 6
#define GDR_API_VERSION ((GDR_API_MAJOR_VERSION << 16) | GDR_API_MINOR_VERSION)

/* The oldest gdrdrv kernel module that the library speaks to. */
#define MINIMUM_GDRDRV_MAJOR_VERSION 2
#define MINIMUM_GDRDRV_MINOR_VERSION 0
#define MINIMUM_GDRDRV_VERSION \
	((MINIMUM_GDRDRV_MAJOR_VERSION << 16) | MINIMUM_GDRDRV_MINOR_VERSION)

/* GPU memory is pinned in pages of 64 KiB, whatever the host's page size. */
#define GPU_PAGE_SHIFT 16
#define GPU_PAGE_SIZE ((unsigned long)1 << GPU_PAGE_SHIFT)
#define GPU_PAGE_OFFSET (GPU_PAGE_SIZE - 1)
#define GPU_PAGE_MASK (~GPU_PAGE_OFFSET)

#ifdef __cplusplus
extern "C" {
#endif

/* A session.  Opaque; made by gdr_open, gone after gdr_close. */
struct gdr;
typedef struct gdr *gdr_t;

/*
 * A pinned buffer.  64 opaque bits, never 0 for a live pin; passed by value.
 * Valid until gdr_unpin_buffer or the gdr_close of its session.
 */
typedef struct gdr_mh_s {
	unsigned long h;
} gdr_mh_t;

/* Flags of gdr_pin_buffer_v2: a bit mask. */
typedef enum gdr_pin_flags {
	GDR_PIN_FLAG_DEFAULT = 0,
	/*
	 * On a GPU with a coherent CPU link, reach the memory through PCIe all
	 * the same.  Fails on every other GPU (EOPNOTSUPP, or EINVAL where the
	 * back end does not know the flag).
	 */
	GDR_PIN_FLAG_FORCE_PCIE = 1
} gdr_pin_flags_t;

/* How the CPU reaches a mapping. */
typedef enum gdr_mapping_type {
	GDR_MAPPING_TYPE_NONE = 0,	/* not mapped */
	GDR_MAPPING_TYPE_WC = 1,	/* write-combined: stores merge, loads go to the device */
	GDR_MAPPING_TYPE_CACHING = 2,	/* ordinary cached memory on a coherent link */
	GDR_MAPPING_TYPE_DEVICE = 3,	/* device memory: naturally aligned accesses only */
	GDR_MAPPING_TYPE_MAX
} gdr_mapping_type_t;

/* Flags of gdr_map_v2: one value, not a bit mask. */
typedef enum gdr_map_flags {
	GDR_MAP_FLAG_DEFAULT = 0,		/* the back end's choice */
	GDR_MAP_FLAG_REQ_WC_MAPPING = 1,	/* this type or a failure */
	GDR_MAP_FLAG_REQ_CACHE_MAPPING = 2,
	GDR_MAP_FLAG_REQ_DEVICE_MAPPING = 3
} gdr_map_flags_t;

/* Attributes of gdr_get_attribute. */
typedef enum gdr_attr {
	/*
	 * 1: memory stays pinned and mapped after it was freed, until unpin.
	 * 0: freeing it revokes the mapping, and an access raises SIGBUS.
	 */
	GDR_ATTR_USE_PERSISTENT_MAPPING = 1,
	/* 1: GDR_PIN_FLAG_FORCE_PCIE is understood (not: that the GPU has a use for it). */
	GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE = 2,
	/* 1: the session maps dma-bufs of the CUDA driver; no kernel module is involved. */
	GDR_ATTR_USING_DMA_BUF_MMAP = 3,
	GDR_ATTR_MAX
} gdr_attr_t;

/*
 * What is known of a pinned buffer: the layout of GDRCopy before 2.4, 40 bytes.
 */
typedef struct gdr_info_v1 {
	uint64_t va;		/* pinned GPU address, rounded down to 64 KiB */
	uint64_t mapped_size;	/* bytes pinned from va on, whole GPU pages */
	uint32_t page_size;	/* bytes: 65536 */
	uint64_t tm_cycles;	/* cycles that pinning took in the kernel; 0: not measured */
	uint32_t cycles_per_ms;	/* rate of that counter; 0: not known */
	unsigned mapped : 1;	/* 1 between map and unmap */
	unsigned wc_mapping : 1; /* 1 when mapped write-combined */
} gdr_info_v1_t;

/* The layout since 2.4, 48 bytes; the 40 bytes of v1 are its prefix. */
typedef struct gdr_info_v2 {
	uint64_t va;
	uint64_t mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned mapped : 1;
	unsigned wc_mapping : 1;
	gdr_mapping_type_t mapping_type; /* NONE before map */
} gdr_info_v2_t;

typedef gdr_info_v2_t gdr_info_t;

/*
 * gdr_open - start a session
 *
 * Takes the first back end that works: the gdrdrv kernel module, CUDA's
 * mappable dma-bufs, the driver's resource manager (gdrcopy(7) has the list
 * and the variables that choose).  Initialises no CUDA, makes no context and
 * no thread, prints nothing.  May be called many times; sessions are
 * independent.
 *
 * Returns NULL when no back end could serve a pin.  With
 * GDRCOPY_ENABLE_LOGGING set, stderr then has one line per back end with the
 * step that failed and the remedy.
 */
gdr_t gdr_open(void);

/*
 * gdr_close - end a session
 *
 * Unmaps and unpins what is left, waits for running copies, and invalidates
 * g and all its handles.  Goes on after an error and returns the first one.
 * EINVAL: not a session (or closed already).  EACCES: a session of the parent.
 */
int gdr_close(gdr_t g);

/*
 * gdr_pin_buffer - pin GPU memory, so that it can be mapped
 * @addr: GPU virtual address; any byte inside one allocation of this process
 * @size: bytes, at least 1; the range must lie inside that allocation
 * @p2p_token, @va_space: for modules older than 2.5; otherwise ignored
 * @handle: out
 *
 * Whole GPU pages of 64 KiB are pinned.  A pin succeeds at any address, but
 * only one whose address is a multiple of 64 KiB can be mapped.  One buffer
 * may be pinned several times.  The caller's current CUDA context stays.
 *
 * EINVAL: not GPU memory of this process, size 0, a range that wraps or
 * leaves its allocation, managed or pool memory where the back end cannot pin
 * it, NULL handle.  ENOMEM: BAR1 or host memory is exhausted.
 */
int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token,
		   uint32_t va_space, gdr_mh_t *handle);

/*
 * gdr_pin_buffer_v2 - pin GPU memory with flags of gdr_pin_flags_t
 *
 * As gdr_pin_buffer with tokens 0; unknown flag bits give EINVAL.
 */
int gdr_pin_buffer_v2(gdr_t g, unsigned long addr, size_t size, uint32_t flags,
		      gdr_mh_t *handle);

/*
 * gdr_unpin_buffer - give a pin back
 *
 * A mapping that is left is torn down first, after running copies.  The
 * handle is invalid afterwards, also when an error is returned.  May come
 * after the GPU memory was freed.
 */
int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle);

/*
 * gdr_get_callback_flag - has the driver taken the pages back?
 * @flag: out; 1 after the memory of a non-persistent pin was freed, else 0
 */
int gdr_get_callback_flag(gdr_t g, gdr_mh_t handle, int *flag);

/*
 * gdr_get_info - what is known of a pinned buffer
 *
 * The source name means the 48-byte form.  The exported function gdr_get_info
 * fills 40 bytes, for programs that were compiled before 2.4.
 */
int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info);
int gdr_get_info_v2(gdr_t g, gdr_mh_t handle, gdr_info_v2_t *info);
#define gdr_get_info gdr_get_info_v2

/*
 * gdr_map - make a pinned buffer visible to the CPU
 * @va: out; the CPU address of the pinned address
 * @size: bytes, at least 1, at most what was pinned; rounded up to host pages
 *
 * Stores through *va are posted: they reach GPU memory some time after the
 * instruction.  A load through the mapping, or a read of it by
 * gdr_copy_from_mapping, waits for the stores before it.
 *
 * EAGAIN: mapped already (one mapping a handle).  EINVAL: the pinned address
 * is not a multiple of 64 KiB, or size is 0 or more than was pinned.
 */
int gdr_map(gdr_t g, gdr_mh_t handle, void **va, size_t size);

/*
 * gdr_map_v2 - map with one of gdr_map_flags_t
 *
 * EOPNOTSUPP or EINVAL: the platform cannot give the requested type.
 */
int gdr_map_v2(gdr_t g, gdr_mh_t handle, void **ptr_va, size_t size, int flags);

/*
 * gdr_unmap - end a mapping
 * @va: as gdr_map gave it
 * @size: as given to gdr_map; the whole mapping ends whatever it says
 *
 * Waits for running copies.  EINVAL: not mapped, or va is not its mapping.
 */
int gdr_unmap(gdr_t g, gdr_mh_t handle, void *va, size_t size);

/*
 * gdr_copy_to_mapping - write to GPU memory
 * @map_d_ptr: inside the mapping of handle
 * @h_ptr: host memory
 * @size: bytes; 0 does nothing
 *
 * Returns when the bytes are handed to the bus in order with the caller's
 * later stores; they are posted from there.  Each byte is stored once and no
 * byte outside the range is touched.  A copy of 1, 2, 4 or 8 bytes to an
 * address aligned to its size is one store of that size; nothing else is
 * atomic.
 *
 * EINVAL: the handle is not mapped, or the range leaves the mapping.
 */
int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size);

/*
 * gdr_copy_from_mapping - read from GPU memory
 *
 * As gdr_copy_to_mapping, the other way.  The bytes come from the device, so
 * the call also waits for this thread's earlier stores to it.  On PCIe, reads
 * by the CPU are 10 to 1000 times slower than writes.
 */
int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr, size_t size);

/* gdr_runtime_get_version - the version of this library: 2 and 6 */
void gdr_runtime_get_version(int *major, int *minor);

/*
 * gdr_driver_get_version - the version of the kernel module
 *
 * Back ends without a module of ours answer 2 and 6.
 */
int gdr_driver_get_version(gdr_t g, int *major, int *minor);

/* gdr_get_attribute - value of an attribute of gdr_attr_t; EINVAL: unknown */
int gdr_get_attribute(gdr_t g, gdr_attr_t attr, int *v);

/*
 * gdr_get_mapping_type_string - a constant, printable name
 * EINVAL: not a mapping type; *pstr stays as it is.
 */
int gdr_get_mapping_type_string(gdr_mapping_type_t mapping_type, const char **pstr);

#ifdef __cplusplus
}
#endif

#endif
