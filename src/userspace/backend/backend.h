/* SPDX-License-Identifier: MIT */
/* What a back end is: the operations that turn a GPU address into a mapping. */
#ifndef GDRI_BACKEND_H
#define GDRI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/config.h"
#include "gdrapi.h"

#define GDRI_GPU_PAGE_SIZE ((uint64_t)65536)

/*
 * Why a back end cannot open: the step that failed, its number (errno, RM
 * status, CUDA result) and what to do about it, as one line without newline.
 * Core prints it as an error only when no back end opens, at debug otherwise.
 */
struct gdri_reason {
	char text[256];
};

void gdri_backend_reason(struct gdri_reason *why, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct gdri_backend_ops;

/*
 * One open session of a back end.  Each back end embeds this as the first
 * member of its own type.  open() allocates it, close() frees it.
 *
 * fd points at the descriptor that stands at offset 0 behind gdr_t (interface
 * facts 2.1).  A back end that has one uses *fd at each call, since 2.6's
 * sanity program swaps it for one that it received from another process, and
 * pin and map must then fail.  A back end must survive any value in it.
 */
struct gdri_backend_session {
	const struct gdri_backend_ops *ops;
	const struct gdri_config *config;
	const int *fd;
};

/* A pinned range, filled by pin().  All sizes in bytes. */
struct gdri_pin {
	uint64_t va;		/* address rounded down to 64 KiB */
	uint64_t size;		/* from va on, a multiple of 64 KiB (gdrdrv: as the module says) */
	uint64_t addr;		/* as the caller gave it */
	uint64_t length;	/* as the caller gave it */
	uint32_t page_size;
	uint32_t driver_handle;	/* gdrdrv's 32-bit handle; others: a number of their own */
	uint64_t tm_cycles;
	uint32_t tsc_khz;
	void *priv;		/* the back end's own record; released by unpin() */
};

/*
 * The memory object behind a pin, for copy engines: either range of client, or
 * emulated of emulator.  The ranges stay until the unpin.
 */
struct gdri_rm_client;
struct gdri_rm_range;
struct gdrcopy_emu_range;
struct gdrcopy_emu_entry;

struct gdri_backend_memory {
	struct gdri_rm_client *client;
	const struct gdri_rm_range *range;
	const struct gdrcopy_emu_range *emulated;
	const struct gdrcopy_emu_entry *emulator;
};

/*
 * What an exporter says of a range that another process imports.  Core has
 * compared it with itself: offset + length lies in object_size and length is not 0.
 */
struct gdri_backend_share {
	int device;		/* CUDA's ordinal, in this process, of the exporter's GPU */
	uint64_t object_size;
	uint64_t offset;	/* of the range in the memory object */
	uint64_t length;
};

/*
 * The range of an import has no GPU address in this process: its pin.va and
 * pin.addr count from here, which is none, plus the offset in its memory object.
 */
#define GDRI_BACKEND_IMPORT_BASE (UINT64_C(1) << 62)

/* A mapping, filled by map(). */
struct gdri_mapping {
	void *base;		/* CPU address of pin.va */
	size_t length;		/* whole host pages */
	gdr_mapping_type_t type;
	/*
	 * All its pages are in the page table before map() returns and stay there, so
	 * that no access of a CPU faults.  Restartable sequences need it (core/rseq.h).
	 */
	bool is_populated;
	void *priv;
};

/*
 * Results are 0 or a negative errno; outputs are written on success alone.
 * The function that decides an error logs one line that names the fix.
 *
 * Core's promises: arguments are checked for NULL, size 0 and wrap-around;
 * addr and length as the caller gave them; map() only with the address of a
 * multiple of 64 KiB and 0 < size <= pin.size, size already rounded up to
 * host pages; calls on one pin never overlap; unmap() before unpin() and
 * after the last copy has left; close() after everything else; never from
 * another process than the one that opened.
 *
 * A back end's promises: calls for different pins of one session may come
 * from several threads at once; nothing is left behind by a failure; the
 * caller's current CUDA context is the same afterwards; unpin, unmap and
 * close work after the GPU memory was freed and after libcuda's own shutdown,
 * so they make no CUDA calls; no output except through the log; bounded time.
 */
struct gdri_backend_ops {
	enum gdri_backend_id id;
	const char *name;

	/*
	 * Checks that pins could work, in at most 2 ms: no cuInit, no context, no
	 * GPU memory.  *fd: the descriptor to stand behind gdr_t, or -1.  On
	 * failure why is filled and nothing is kept.
	 */
	int (*open)(const struct gdri_config *config, struct gdri_backend_session **session,
		    int *fd, struct gdri_reason *why);

	/*
	 * Releases the session, its descriptor (the one it opened itself; a value
	 * that was swapped in is not its business) included.  Goes on after an
	 * error and returns the first one.
	 */
	int (*close)(struct gdri_backend_session *session);

	/* (major << 16) | minor of the kernel module; others answer 2.6. */
	int (*get_version)(struct gdri_backend_session *session, uint32_t *version);

	/* attr is 1, 2 or 3. */
	int (*get_attribute)(struct gdri_backend_session *session, int attr, int *value);

	/* flags: GDR_PIN_FLAG_*, unknown bits included (they give -EINVAL). */
	int (*pin)(struct gdri_backend_session *session, uint64_t addr, size_t size,
		   uint32_t flags, uint64_t p2p_token, uint32_t va_space, struct gdri_pin *pin);
	int (*unpin)(struct gdri_backend_session *session, struct gdri_pin *pin);

	/* flags: GDR_MAP_FLAG_*, already known to be one of the four values. */
	int (*map)(struct gdri_backend_session *session, struct gdri_pin *pin, size_t size,
		   int flags, struct gdri_mapping *mapping);

	/* The mapping is gone afterwards, whatever is returned. */
	int (*unmap)(struct gdri_backend_session *session, struct gdri_pin *pin,
		     struct gdri_mapping *mapping);

	/* 1 when the driver has taken the pages of a non-persistent pin back. */
	int (*get_callback_flag)(struct gdri_backend_session *session, struct gdri_pin *pin,
				 int *flag);

	/*
	 * Updates the fields of pin that the back end learns late (tm_cycles,
	 * size).  Optional: the default does nothing.
	 */
	int (*refresh)(struct gdri_backend_session *session, struct gdri_pin *pin);

	/*
	 * NULL where the back end knows no memory objects.  pin may be NULL: then
	 * only client or emulator is filled.
	 */
	void (*get_memory)(struct gdri_backend_session *session, const struct gdri_pin *pin,
			   struct gdri_backend_memory *memory);

	/*
	 * Both or none, and with get_memory.  export_memory: a new descriptor of the
	 * pin's whole memory object, which keeps the memory; the caller closes it.
	 * import_memory: a pin of what such a descriptor names; it stays the caller's.
	 * -EINVAL: it names no memory object, or another one than share says.
	 */
	int (*export_memory)(struct gdri_backend_session *session, const struct gdri_pin *pin,
			     int *fd);
	int (*import_memory)(struct gdri_backend_session *session,
			     const struct gdri_backend_share *share, int fd,
			     struct gdri_pin *pin);
};

/* In the order in which they are tried; emu is picked by name only. */
extern const struct gdri_backend_ops gdri_backend_gdrdrv;
extern const struct gdri_backend_ops gdri_backend_dmabuf;
extern const struct gdri_backend_ops gdri_backend_nvrm;
extern const struct gdri_backend_ops gdri_backend_emu;

/* Default for every operation; backends that leave one out name it here. */
int gdri_backend_no_callback_flag(struct gdri_backend_session *session, struct gdri_pin *pin,
				  int *flag);	/* 0, flag 0 */
int gdri_backend_no_refresh(struct gdri_backend_session *session, struct gdri_pin *pin);
int gdri_backend_version_2_6(struct gdri_backend_session *session, uint32_t *version);

/*
 * Opens the back end that config asks for, or the first that works.  When none
 * does, every reason is logged as an error and -ENODEV is returned.
 */
int gdri_backend_open(const struct gdri_config *config, struct gdri_backend_session **session,
		      int *fd);

#endif
