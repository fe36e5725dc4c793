/* SPDX-License-Identifier: MIT */
/*
 * gdrcopy/gdrapi.h: version 3 of the interface to GPU memory: copies between
 * hosts and devices and between devices, by handle.
 *
 *	gdr_open -> gdr_pin_buffer -> copies by handle, gdr_map for loads and stores
 *	         -> gdr_unpin -> gdr_close
 *
 * The same library, libgdrapi, has the interface of GDRCopy 2.6 as well
 * (<gdrapi.h> outside of this folder).  A file includes one of the two; a program
 * may have files of both kinds.  Sessions and handles of one are refused by
 * the other.
 *
 * Results.  Every call but gdr_strerror gives a gdr_result_t.  On failure the
 * handle of a pin or import and the pointer of a map become 0 and NULL; every
 * other output keeps its value.  With GDRCOPY_ENABLE_LOGGING in the environment
 * stderr has one line for each failure that names the remedy.
 *
 * Units.  Addresses, sizes and offsets are bytes.  Offsets count from the
 * address that was pinned.
 *
 * Roads.  A copy goes by the fastest of the CPU's loads and stores through a
 * window on the device, the device's copy engines, and peer links; docs/dma.md and
 * the variables GDRCOPY_DMA and GDRCOPY_ROUTE tell more.  No CUDA call is made in
 * a copy, and a kernel that runs or spins does not delay one.
 *
 * Order.  Copies return when their bytes have arrived.  What a thread wrote
 * by a copy or through a mapping is seen by its next copy, whichever road that
 * takes.  A kernel sees what was written before it was launched; a running one
 * that polls a flag sees the bytes that were copied before the flag was.
 *
 * Threads.  Every call may be made from any thread at any time.  gdr_unmap,
 * gdr_unpin and gdr_close refuse new copies and wait for running ones; loads and
 * stores through a mapped pointer are the caller's to stop.
 *
 * Fork.  A child owns nothing of its parent: mappings and registered host
 * memory are absent from it, and the parent's sessions give GDR_ERR_PERMISSION.
 */
#ifndef GDRCOPY_GDRAPI_H
#define GDRCOPY_GDRAPI_H

#ifdef GDRAPI_H
#error "gdrapi.h of version 2.6 is included already; a file uses one of the two interfaces"
#endif

#include <stddef.h>
#include <stdint.h>

#define GDR_API_MAJOR_VERSION 3
#define GDR_API_MINOR_VERSION 0
#define GDR_API_VERSION ((GDR_API_MAJOR_VERSION << 16) | GDR_API_MINOR_VERSION)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gdr_result {
	GDR_SUCCESS = 0,
	GDR_ERR_INVALID_ARG = 1,	/* an argument is wrong, or a range does not fit */
	GDR_ERR_NO_DEVICE = 2,		/* no back end opens: no driver, no GPU, no access */
	GDR_ERR_OP_NOT_SUPPORTED = 3,	/* this memory, platform or pair of GPUs cannot do it */
	GDR_ERR_PERMISSION = 4,		/* not allowed, or a session of the parent process */
	GDR_ERR_NO_MEMORY = 5,		/* host memory, BAR1 or the module's pool is exhausted */
	GDR_ERR_BUSY = 6,		/* mapped already, or in use */
	GDR_ERR_TIMEOUT = 7,		/* the device did not answer */
	GDR_ERR_IO = 8,			/* the copy failed; the destination's content is unknown */
	GDR_ERR_DRIVER_MISMATCH = 9,	/* the NVIDIA driver's interface is not one of the known */
	GDR_ERR_STALE_HANDLE = 10	/* not a live session or handle of this interface */
} gdr_result_t;

/* A constant text for any value; never NULL. */
const char *gdr_strerror(gdr_result_t result) __asm__("gdr_strerror_v3");

/* A session.  Opaque; made by gdr_open, gone after gdr_close. */
typedef struct gdr_context *gdr_t;

/*
 * gdr_open - start a session
 * @g: out
 *
 * As gdr_open of 2.6: takes the first back end that works, initialises no CUDA,
 * makes no thread, prints nothing, takes at most 2 ms.  Several sessions are
 * independent of each other.
 *
 * NO_DEVICE: no back end opens; the log says why for each.  NO_MEMORY.
 */
gdr_result_t gdr_open(gdr_t *g) __asm__("gdr_open_v3");

/*
 * gdr_close - end a session
 *
 * Unmaps, unpins and unregisters what is left (and says so in the log), waits
 * for running copies.  STALE_HANDLE: closed already, or never opened.
 */
gdr_result_t gdr_close(gdr_t g) __asm__("gdr_close_v3");

/* Flags of gdr_pin_buffer: a bit mask. */
enum {
	/*
	 * Sets CUDA's attribute SYNC_MEMOPS on the memory: cudaMemcpy and cudaMemset on
	 * it then wait until they are complete, so that what they write is seen by the
	 * next copy.  OP_NOT_SUPPORTED for memory of cuMemCreate.
	 */
	GDR_PIN_BUFFER_SYNC = 1 << 0,
	/* Size, and later offsets and lengths, need not be multiples of 4096. */
	GDR_PIN_BUFFER_UNALIGNED = 1 << 1
};

/*
 * gdr_pin_buffer - make GPU memory known to the session
 * @addr: from cudaMalloc, cuMemAlloc or cuMemMap; any byte of an allocation
 * @size: a multiple of 4096 unless GDR_PIN_BUFFER_UNALIGNED is given; not 0
 * @flags: GDR_PIN_BUFFER_*
 * @device_id: the CUDA ordinal, in this process, of the GPU that has the memory
 * @handle: out; never 0 for a live pin
 *
 * The memory stays valid for the handle until gdr_unpin, also when it is freed
 * meanwhile (with the gdrdrv module in its non-persistent mode it does not).  The
 * range must lie in one allocation.  The first pin of a device opens its copy
 * engines, which takes about 10 ms.
 *
 * INVALID_ARG: not GPU memory of this process, size 0, not a multiple, wraps or leaves
 * the allocation, unknown flags, a device id that does not exist or is not the
 * memory's.  OP_NOT_SUPPORTED: managed memory, memory of a stream-ordered pool,
 * memory of another process.  NO_MEMORY.
 */
gdr_result_t gdr_pin_buffer(gdr_t g, uint64_t addr, size_t size, uint32_t flags, int device_id,
			    uint64_t *handle) __asm__("gdr_pin_buffer_v3");

/*
 * gdr_unpin - give a pin back
 *
 * Waits for running copies; a mapping that is left ends.  May come after the
 * memory was freed.  STALE_HANDLE: not a live handle of this session.
 */
gdr_result_t gdr_unpin(gdr_t g, uint64_t handle) __asm__("gdr_unpin_v3");

/*
 * gdr_map - show pinned memory to the CPU
 * @va: out; the CPU's address of the pinned byte
 * @size: a multiple of 4096 unless the pin is UNALIGNED, at most the pinned size,
 *	not 0
 *
 * Write-combined on PCIe: stores are fast and posted, loads take a round trip.
 * BUSY: mapped already.  NO_MEMORY: BAR1 has no room.
 */
gdr_result_t gdr_map(gdr_t g, uint64_t handle, void **va, size_t size) __asm__("gdr_map_v3");

/*
 * gdr_unmap - end a mapping
 * @va: as gdr_map gave it; @size: as given to gdr_map
 *
 * INVALID_ARG: not mapped, or another address or size.  Copies by handle go on
 * working.
 */
gdr_result_t gdr_unmap(gdr_t g, uint64_t handle, void *va, size_t size) __asm__("gdr_unmap_v3");

/*
 * gdr_copy_to_device - copy between two pinned buffers
 * @src_handle, @dst_handle: of this session; the same or different GPUs, or one buffer
 * @src_offset, @dst_offset, @length: multiples of 4096 unless both pins are UNALIGNED;
 *	inside both buffers; a length of 0 does nothing
 *
 * Neither buffer needs to be mapped.  Ranges of one memory that overlap are
 * copied as memmove does.  Between GPUs that do not reach each other the bytes go
 * through host memory, unless GDRCOPY_STRICT_P2P=1 or GDRCOPY_ROUTE=peer is set:
 * then OP_NOT_SUPPORTED.
 *
 * IO: the engine died while it copied, and what the destination holds is unknown.
 */
gdr_result_t gdr_copy_to_device(gdr_t g, uint64_t src_handle, uint64_t dst_handle,
				uint64_t src_offset, uint64_t dst_offset, size_t length)
	__asm__("gdr_copy_to_device_v3");

/*
 * gdr_copy_from_host, gdr_copy_to_host - copy between host and pinned memory
 * @offset: of the device's side; @host: any memory of this process; @size: any
 *
 * Any alignment and length, on every pin.  A copy of 1, 2, 4 or 8 bytes at a
 * device address that is a multiple of its size is one access; nothing else is
 * atomic.  Host memory that gdr_host_register knows is copied without a detour.
 */
gdr_result_t gdr_copy_from_host(gdr_t g, uint64_t handle, uint64_t offset, const void *host,
				size_t size) __asm__("gdr_copy_from_host_v3");
gdr_result_t gdr_copy_to_host(gdr_t g, uint64_t handle, uint64_t offset, void *host, size_t size)
	__asm__("gdr_copy_to_host_v3");

/*
 * gdr_host_register, gdr_host_unregister - pin host memory for the copy engines
 * @ptr, @size: whole pages around the range are pinned until unregister
 *
 * Costs about 50 us for each MiB; pays for memory that is copied often.  Ranges may
 * not share a page.  Unregister takes the same ptr and waits for copies.
 * The pages are absent from forked children.
 *
 * INVALID_ARG: NULL, size 0, wraps, overlaps a registered range, not registered.
 * NO_MEMORY: the driver cannot pin so much (ulimit -l).  A session whose machine has no
 * copy engines takes note of the range and copies by the CPU.
 */
gdr_result_t gdr_host_register(gdr_t g, void *ptr, size_t size)
	__asm__("gdr_host_register_v3");
gdr_result_t gdr_host_unregister(gdr_t g, void *ptr) __asm__("gdr_host_unregister_v3");

/*
 * gdr_flush - wait until stores have reached the devices
 *
 * Covers what this thread stored through mappings of the session, and what
 * other threads had stored before they returned from a copy or executed a
 * store fence of their own.  One load through BAR1 for each device that has a
 * pin, about 1 us.
 */
gdr_result_t gdr_flush(gdr_t g) __asm__("gdr_flush_v3");

/* What is known of a pinned buffer.  The caller sets size to sizeof(gdr_info_t). */
typedef struct gdr_info {
	uint64_t size;		/* in: of this struct; out: bytes that were filled */
	uint64_t addr;		/* that was pinned; 0: imported */
	uint64_t length;	/* that was pinned */
	int32_t device_id;
	uint32_t flags;		/* of the pin */
	uint32_t mapping_type;	/* of the CPU's window: 0 none, 1 write-combined, 2 cached, 3 device */
	uint32_t has_engine;	/* 1: copy engines reach it */
	uint64_t read_crossover;	/* host copies of fewer bytes go by the CPU; UINT64_MAX: all */
	uint64_t write_crossover;
} gdr_info_t;

gdr_result_t gdr_get_info(gdr_t g, uint64_t handle, gdr_info_t *info) __asm__("gdr_get_info_v3");

/* The state of a pinned buffer now.  The caller sets size to sizeof(gdr_status_t). */
typedef struct gdr_status {
	uint64_t size;		/* in: of this struct; out: bytes that were filled */
	uint32_t mapped;	/* 1 between gdr_map and gdr_unmap */
	uint32_t freed;		/* 1: the program freed the memory, or the address is another's; 0: imported */
	uint32_t revoked;	/* 1: the driver took the pages back (non-persistent gdrdrv) */
	uint32_t reserved;
} gdr_status_t;

/*
 * gdr_query - whether a buffer is still what it was
 *
 * Asks the CUDA driver; not for the way of a copy.  A write without effect is
 * usually one of these: freed, or a mapping that was ended.  A warning in the log
 * says of freed memory too, here and at the next gdr_map.
 */
gdr_result_t gdr_query(gdr_t g, uint64_t handle, gdr_status_t *status) __asm__("gdr_query_v3");

enum { GDR_EXPORT_VERSION = 1 };

/* Flags of gdr_export: a bit mask. */
enum {
	/* Export although the importer then reaches more than the pinned bytes. */
	GDR_EXPORT_WHOLE_OBJECT = 1 << 0
};

/*
 * A pinned buffer for another process of this machine; to be passed on with the
 * descriptor, unchanged.  gdr_export's caller sets size to sizeof(gdr_export_desc_t).
 */
typedef struct gdr_export_desc {
	uint64_t size;		/* in: of this struct; out: bytes that were filled */
	uint32_t version;	/* GDR_EXPORT_VERSION */
	uint32_t flags;		/* GDR_PIN_BUFFER_UNALIGNED, or 0 */
	unsigned char uuid[16];	/* of the GPU */
	uint64_t object_size;	/* bytes of the memory object that the buffer is part of */
	uint64_t offset;	/* of the buffer in it */
	uint64_t length;	/* of the buffer */
} gdr_export_desc_t;

/*
 * gdr_export - make a pinned buffer available to another process
 * @flags: GDR_EXPORT_*
 * @desc: in: its size; out: what the buffer is
 * @fd: out; a new descriptor (O_CLOEXEC), the caller's to pass on (SCM_RIGHTS) and to close
 *
 * The descriptor names the driver's whole memory object, and keeps its memory:
 * until it is closed everywhere, and what was imported from it is unpinned, the
 * bytes stay, whatever becomes of the pin and of the allocation.  cudaMalloc puts
 * small allocations, up to 1 MiB or so, into one object, and rounds the size of
 * others up to 2 MiB.
 *
 * INVALID_ARG: unknown flags, NULL, a size smaller than the struct.  PERMISSION: the
 * object has more bytes than the buffer, and GDR_EXPORT_WHOLE_OBJECT is not given.
 * OP_NOT_SUPPORTED: back ends gdrdrv and dmabuf.  NO_MEMORY: no descriptor is left.
 */
gdr_result_t gdr_export(gdr_t g, uint64_t handle, uint32_t flags, gdr_export_desc_t *desc, int *fd)
	__asm__("gdr_export_v3");

/*
 * gdr_import - pin a buffer that another process exported
 * @desc, @fd: from gdr_export; fd stays the caller's and may be closed afterwards
 * @device_id: the CUDA ordinal, in this process, of the GPU that has the memory
 * @handle: out; as of gdr_pin_buffer, and ended by gdr_unpin
 *
 * CUDA must be initialised (cuInit); no context is needed.  The buffer has no GPU
 * address in this process: gdr_get_info gives 0.  What overlaps in one gdr_copy_to_device
 * between an import and a pin of the same memory is copied in any order.
 *
 * INVALID_ARG: fd is not of gdr_export, a field of desc is not the object's, or the
 * memory is not on that device.  NO_MEMORY.  OP_NOT_SUPPORTED: as gdr_export.
 */
gdr_result_t gdr_import(gdr_t g, const gdr_export_desc_t *desc, int fd, int device_id,
			uint64_t *handle) __asm__("gdr_import_v3");

#ifdef __cplusplus
}
#endif

#endif
