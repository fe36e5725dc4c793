/* SPDX-License-Identifier: MIT */
/* The private door between the emulated CUDA driver and the library's back end emu. */
#ifndef GDRCOPY_EMU_H
#define GDRCOPY_EMU_H

#include <stdint.h>

#define GDRCOPY_EMU_ABI 3
#define GDRCOPY_EMU_ENTRY "gdrcopy_emu_entry_v1"

/* Kinds of memory that a pin may meet. */
enum gdrcopy_emu_kind {
	GDRCOPY_EMU_MALLOC,	/* cuMemAlloc: part of a 2 MiB block, or blocks of its own */
	GDRCOPY_EMU_VMM,	/* cuMemCreate + cuMemMap */
	GDRCOPY_EMU_MANAGED,
	GDRCOPY_EMU_POOL,	/* cuMemAllocAsync */
	GDRCOPY_EMU_IPC,	/* opened from another process */
	GDRCOPY_EMU_HOST	/* page-locked host memory */
};

/* What stands behind a range of emulated GPU memory. */
struct gdrcopy_emu_range {
	uint64_t alloc_va;	/* start and size of an allocation that the range meets */
	uint64_t alloc_size;
	uint64_t object_va;	/* the memory object: a pin cannot cross its ends */
	uint64_t object_size;
	uint64_t file_offset;	/* of object_va inside fd */
	int fd;			/* the driver's; valid while the range is held; do not close */
	int device;
	enum gdrcopy_emu_kind kind;
	int rdma_capable;	/* the GPU's attribute; VMM: gpuDirectRDMACapable as well */
	void *memory;		/* what is held */
};

/* A copy engine of an emulated GPU. */
struct gdrcopy_emu_engine {
	unsigned number;	/* n of COPYn */
	unsigned width;		/* physical engines behind it */
	int shared;		/* another COPYn has the same ones */
};

/* An address space of an emulated GPU, for copy engines. */
struct gdrcopy_emu_space;

/*
 * A channel.  Ring, push buffer and USERD are emulated GPU memory, semaphore
 * and notifier host memory; none of it exists in a forked child.  The channel
 * runs in a thread of the driver.  The struct is the driver's as well.
 */
struct gdrcopy_emu_queue {
	volatile uint64_t *ring;
	uint32_t ring_entries;		/* a power of two */
	uint32_t push_words;		/* a power of two */
	volatile uint32_t *push;
	uint64_t push_address;
	volatile uint32_t *put;		/* GP_PUT and GP_GET of the USERD */
	volatile const uint32_t *get;
	volatile const uint32_t *semaphore;
	uint64_t semaphore_address;
	volatile const uint16_t *notifier;	/* not 0: an Xid number; the channel is dead */
	uint32_t copy_class;
};

struct gdrcopy_emu_entry {
	uint32_t abi;		/* GDRCOPY_EMU_ABI */
	uint32_t size;		/* sizeof(struct gdrcopy_emu_entry) */

	/* Why cuInit would fail in any case (GDRCOPY_EMU), as one line, or NULL. */
	const char *(*problem)(void);

	/* 1 when the emulated GPUs have a coherent CPU link (GDRCOPY_EMU=coherent). */
	int (*coherent)(void);

	/* 1 when the CPU can map write-combined (0: GDRCOPY_EMU=wc=0). */
	int (*write_combining)(void);

	/*
	 * Looks up [addr, addr + size), widened to whole 64 KiB pages, and keeps the
	 * physical memory until release(), even after the program freed it.  A range
	 * that leaves its memory object, or touches no allocation: -ERANGE, -EINVAL.
	 * -ENOTCONN: CUDA is not initialised in this process.  -EBUSY: a part of the
	 * object was exported as a mappable dma-buf.  Host memory has no object: fd
	 * is -1 and memory NULL.
	 */
	int (*hold)(uint64_t addr, uint64_t size, struct gdrcopy_emu_range *range);

	/* Works whatever happened to the context; memory may be NULL. */
	void (*release)(void *memory);

	/*
	 * A descriptor of the held range's whole memory object, for this and other
	 * processes; it keeps the memory until it is closed everywhere.  -EOPNOTSUPP:
	 * the memory's provider has no files to give away.
	 */
	int (*export_object)(const struct gdrcopy_emu_range *range, int *fd);

	/*
	 * Holds the object that such a descriptor names, as hold() does; it has no
	 * address here, so object_va is 0.  -EINVAL: it names none, or one of another size;
	 * -ENXIO: one of another GPU; -ENOTCONN as hold().
	 */
	int (*import_object)(int fd, int device, uint64_t size, struct gdrcopy_emu_range *range);

	/*
	 * A failure injected by GDRCOPY_EMU=fail=STEP[:N]: the errno (positive) that
	 * the N-th call of step "pin", "map" or "export" must answer, or 0.
	 */
	int (*injected)(const char *step);

	/*
	 * BAR1 accounting: reserves and gives back; -ENOMEM when the emulated
	 * window (GDRCOPY_EMU=bar1=BYTES) is full.
	 */
	int (*bar1_reserve)(int device, uint64_t bytes);
	void (*bar1_release)(int device, uint64_t bytes);

	/* Memory and BAR1 that this process uses on the device, for NVML. */
	void (*usage)(int device, uint64_t *memory, uint64_t *bar1);

	/*
	 * The model of copy-engine channels.  -EOPNOTSUPP: GDRCOPY_EMU=dma=0.
	 * -ENOTCONN: CUDA is not initialised in this process.  Each of these calls
	 * fails as GDRCOPY_EMU=fail=dma-STEP asks, STEP being the word after "dma_"
	 * (queue, map, host, ...).
	 */
	int (*dma_space)(int device, struct gdrcopy_emu_space **space);

	/* -EBUSY: it still has queues or views. */
	int (*dma_space_close)(struct gdrcopy_emu_space *space);

	/* Number of engines written, at most max. */
	int (*dma_engines)(struct gdrcopy_emu_space *space, struct gdrcopy_emu_engine *engines,
			   unsigned max);

	/* -EBUSY: no free channel (GDRCOPY_EMU=dma=busy). */
	int (*dma_queue)(struct gdrcopy_emu_space *space, unsigned engine,
			 struct gdrcopy_emu_queue **queue);

	/*
	 * Other than 0: the channel may still touch its memory at any time; queue
	 * and space stay as they are, for ever.
	 */
	int (*dma_close)(struct gdrcopy_emu_queue *queue);

	/* The doorbell: the channel looks at GP_PUT now.  One caller at a time. */
	void (*dma_knock)(struct gdrcopy_emu_queue *queue);

	/*
	 * Shows [offset, offset + length) of the range's memory object, which hold()
	 * gave; the view keeps the memory.  -EOPNOTSUPP: it is another GPU's, and
	 * GPUs cannot reach each other.
	 */
	int (*dma_map)(struct gdrcopy_emu_space *space, const struct gdrcopy_emu_range *range,
		       uint64_t offset, uint64_t length, uint64_t *address);

	/* Whole pages that can be read and written, mapped until dma_unmap(). */
	int (*dma_host)(struct gdrcopy_emu_space *space, void *base, uint64_t length,
			uint64_t *address);

	/* Waits for engines that are touching the view; later accesses fault. */
	int (*dma_unmap)(struct gdrcopy_emu_space *space, uint64_t address);

	/* GPU memory that lives as long as the space. */
	int (*dma_scratch)(struct gdrcopy_emu_space *space, uint64_t length, void **base,
			   uint64_t *address);
};

/* extern const struct gdrcopy_emu_entry *gdrcopy_emu_entry_v1(void); */
typedef const struct gdrcopy_emu_entry *(*gdrcopy_emu_entry_fn)(void);

#endif
