/* SPDX-License-Identifier: MIT */
/* The system calls that back ends make, in one place, so that tests can script them. */
#ifndef GDRI_OS_SYS_H
#define GDRI_OS_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel's own ENOTSUPP, which drivers let out although strerror knows no such number. */
#define GDRI_OS_ENOTSUPP 524

/*
 * Each call returns 0 (or a descriptor) or a negative errno and leaves errno
 * alone.  ioctl and open are repeated on EINTR.  tests/unit/ links a scripted
 * version of this file's object in place of the real one.
 */
int gdri_os_open(const char *path, int flags);	/* adds O_CLOEXEC */
int gdri_os_close(int fd);
int gdri_os_dup(int fd);	/* with O_CLOEXEC */
int gdri_os_ioctl(int fd, unsigned long request, void *arg);
int gdri_os_mmap(size_t length, int prot, int flags, int fd, off_t offset, void **out);
int gdri_os_munmap(void *addr, size_t length);

/*
 * Moves a mapping to an address of the system's choice.  The old addresses
 * fault afterwards; what is mapped, and its DONTFORK mark, stay.
 */
int gdri_os_move(void *addr, size_t length, void **out);

/* A mapping that a forked child must not inherit (MADV_DONTFORK). */
int gdri_os_dontfork(void *addr, size_t length);

/* Fills the page table of a writable mapping (MADV_POPULATE_WRITE, Linux 5.14). */
int gdri_os_populate(void *addr, size_t length);

/* Memory that a forked child finds zeroed (MADV_WIPEONFORK, Linux 4.14). */
int gdri_os_wipeonfork(void *addr, size_t length);

/*
 * Reads this process's own memory at an address that may be invalid: 0 when
 * all length bytes were read, -EFAULT otherwise; never a signal.
 */
int gdri_os_peek(uint64_t addr, void *out, size_t length);

/* Reads at most size-1 bytes of a small text file and terminates them. */
int gdri_os_read_text(const char *path, char *out, size_t size);

size_t gdri_os_page_size(void);

#endif
