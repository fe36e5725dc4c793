/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What differs between kernels.  conftest.sh finds out and writes probes.h. */
#ifndef GDRDRV_COMPAT_H
#define GDRDRV_COMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/timex.h>
#include <linux/version.h>

#include "probes.h"

/*
 * Adds flags to a VMA that mmap is still making.  vm_flags_set() would take the
 * VMA's lock, through a symbol that is GPL-only from 7.2 on; nobody else can see
 * this VMA yet, so that the form without the lock is right.
 */
static inline void gdrdrv_vma_add_flags(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef GDRDRV_HAVE_VM_FLAGS_INIT
	vm_flags_init(vma, vma->vm_flags | flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void gdrdrv_mm_wait_for_writers(struct mm_struct *mm)
{
#ifdef GDRDRV_HAVE_MMAP_LOCK
	mmap_read_lock(mm);
	mmap_read_unlock(mm);
#else
	down_read(&mm->mmap_sem);
	up_read(&mm->mmap_sem);
#endif
}

/* Only x86 tells the rate of its counter; reading the one of arm64 is GPL-only. */
static inline u64 gdrdrv_cycles(void)
{
#ifdef CONFIG_X86
	return get_cycles();
#else
	return 0;
#endif
}

/*
 * From 5.10 on kernel_read() takes only files that have read_iter, and says so
 * in the log for any other.  No declaration shows the difference.
 */
static inline bool gdrdrv_kernel_can_read(const struct file *file)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 10, 0)
	return file->f_op->read_iter && !file->f_op->read;
#else
	return file->f_op->read_iter || file->f_op->read;
#endif
}

#endif
