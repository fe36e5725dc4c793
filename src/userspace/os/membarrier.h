/* SPDX-License-Identifier: MIT */
/* membarrier(2): a barrier in every thread of this process, paid by the caller alone. */
#ifndef GDRI_OS_MEMBARRIER_H
#define GDRI_OS_MEMBARRIER_H

#include <sys/syscall.h>
#include <unistd.h>

/* As in linux/membarrier.h, which old distributions lack; the last two are of Linux 5.10. */
enum gdri_os_membarrier_command {
	GDRI_OS_MEMBARRIER_QUERY = 0,
	GDRI_OS_MEMBARRIER_FENCE = 1 << 3,
	GDRI_OS_MEMBARRIER_FENCE_REGISTER = 1 << 4,
	GDRI_OS_MEMBARRIER_RSEQ = 1 << 7,
	GDRI_OS_MEMBARRIER_RSEQ_REGISTER = 1 << 8
};

/* The kernel's answer; -1 where it refuses.  QUERY answers with the commands that it knows. */
static inline long gdri_os_membarrier(enum gdri_os_membarrier_command command)
{
	return syscall(SYS_membarrier, (int)command, 0, 0);
}

#endif
