/* SPDX-License-Identifier: MIT */
/* Where the memory of emulated GPUs comes from. */
#ifndef EMU_PROVIDER_H
#define EMU_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#define EMU_BLOCK_SIZE ((uint64_t)2 << 20)

/* A run of physical memory: bytes [offset, offset + size) of a file. */
struct emu_extent {
	int fd;			/* belongs to the provider; valid until free() */
	int device;
	uint64_t offset;	/* a multiple of EMU_BLOCK_SIZE */
	uint64_t size;
	bool own_file;		/* fd is this extent's alone and can be given away */
};

/*
 * All calls return 0 or a negative errno and are made under the driver's lock.
 * A provider does not count: the driver keeps the sum below the GPU's memory.
 */
struct emu_provider {
	const char *name;

	/*
	 * size: a multiple of EMU_BLOCK_SIZE.  shareable: the memory will be handed
	 * to other processes as a descriptor of its own; -EOPNOTSUPP where the
	 * provider cannot.  The bytes read as zero.
	 */
	int (*allocate)(int device, uint64_t size, bool shareable, struct emu_extent *extent);

	/*
	 * The memory is gone afterwards and may be handed out again.  The driver
	 * calls this when neither an allocation nor a pin refers to the extent.
	 */
	void (*release)(struct emu_extent *extent);

	/*
	 * Tells where in this process's device addresses a part of the extent lies,
	 * and that it lies there no longer.  The same part may be bound several
	 * times and is then unbound as often.  NULL where nobody asks by address.
	 */
	int (*bind)(const struct emu_extent *extent, uint64_t offset, uint64_t size, uint64_t va);
	void (*unbind)(const struct emu_extent *extent, uint64_t offset, uint64_t size,
		       uint64_t va);
};

extern const struct emu_provider emu_provider_memfd;
extern const struct emu_provider emu_provider_bar;	/* needs tests/kernel/standin */

#endif
