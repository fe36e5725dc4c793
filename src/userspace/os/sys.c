/* SPDX-License-Identifier: MIT */
/* The system calls of the back ends: negative errno as result, errno untouched. */
#include "os/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* The result of a call that answers -1 and errno on failure. */
static int take_result(int result, int saved_errno)
{
	int error = errno;

	errno = saved_errno;
	return result < 0 ? -error : result;
}

int gdri_os_open(const char *path, int flags)
{
	int saved = errno;
	int fd;

	do {
		fd = open(path, flags | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return take_result(fd, saved);
}

/* Linux frees the descriptor even when close() reports EINTR, so it is never repeated. */
int gdri_os_close(int fd)
{
	int saved = errno;

	return take_result(close(fd), saved);
}

int gdri_os_dup(int fd)
{
	int saved = errno;

	return take_result(fcntl(fd, F_DUPFD_CLOEXEC, 0), saved);
}

int gdri_os_ioctl(int fd, unsigned long request, void *arg)
{
	int saved = errno;
	int result;

	do {
		result = ioctl(fd, request, arg);
	} while (result < 0 && errno == EINTR);
	return take_result(result, saved);
}

int gdri_os_mmap(size_t length, int prot, int flags, int fd, off_t offset, void **out)
{
	int saved = errno;
	void *addr = mmap(NULL, length, prot, flags, fd, offset);

	if (addr == MAP_FAILED)
		return take_result(-1, saved);
	*out = addr;
	return 0;
}

int gdri_os_munmap(void *addr, size_t length)
{
	int saved = errno;

	return take_result(munmap(addr, length), saved);
}

/*
 * mremap only moves a mapping whose size stays the same when it is told where
 * to; reserving the target first keeps other threads from taking it.
 */
int gdri_os_move(void *addr, size_t length, void **out)
{
	int saved = errno;
	void *target = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	void *moved;
	int ret;

	if (target == MAP_FAILED)
		return take_result(-1, saved);
	moved = mremap(addr, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, target);
	if (moved == MAP_FAILED) {
		ret = take_result(-1, saved);
		gdri_os_munmap(target, length);
		return ret;
	}
	errno = saved;
	*out = moved;
	return 0;
}

int gdri_os_dontfork(void *addr, size_t length)
{
	int saved = errno;

	return take_result(madvise(addr, length, MADV_DONTFORK), saved);
}

int gdri_os_wipeonfork(void *addr, size_t length)
{
	int saved = errno;

	return take_result(madvise(addr, length, MADV_WIPEONFORK), saved);
}

/* Linux 5.14, glibc 2.35. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int gdri_os_populate(void *addr, size_t length)
{
	int saved = errno;

	return take_result(madvise(addr, length, MADV_POPULATE_WRITE), saved);
}

/*
 * The kernel copies out of this process's memory into a pipe and reports
 * EFAULT instead of raising a signal.  Pieces of PIPE_BUF bytes are written
 * whole or not at all and never block on an empty pipe.
 */
static bool peek_through_pipe(const char *addr, char *out, size_t length)
{
	size_t done = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	while (done < length) {
		size_t piece = length - done < PIPE_BUF ? length - done : PIPE_BUF;

		if (write(ends[1], addr + done, piece) != (ssize_t)piece ||
		    read(ends[0], out + done, piece) != (ssize_t)piece)
			break;
		done += piece;
	}
	close(ends[0]);
	close(ends[1]);
	return done == length;
}

/*
 * Container runtimes may forbid process_vm_readv, even towards the caller
 * itself (EPERM or ENOSYS); the pipe is slower but needs no permission.
 */
int gdri_os_peek(uint64_t addr, void *out, size_t length)
{
	struct iovec local = { .iov_base = out, .iov_len = length };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = length };
	int saved = errno;
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	bool whole = got >= 0 && (size_t)got == length;

	if (got < 0 && (errno == EPERM || errno == ENOSYS))
		whole = peek_through_pipe((const char *)(uintptr_t)addr, out, length);
	errno = saved;
	return whole ? 0 : -EFAULT;
}

int gdri_os_read_text(const char *path, char *out, size_t size)
{
	int saved = errno;
	size_t length = 0;
	ssize_t got;
	int fd = gdri_os_open(path, O_RDONLY);
	int ret = 0;

	if (fd < 0)
		return fd;
	while (length < size - 1) {
		got = read(fd, out + length, size - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			ret = -errno;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	out[length] = '\0';
	close(fd);
	errno = saved;
	return ret;
}

size_t gdri_os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}
