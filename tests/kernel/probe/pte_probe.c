/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reads a page table entry of the caller: emulation shows a lost memory type nowhere else. */
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "pte_probe.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static int read_entry(struct vm_area_struct *vma, unsigned long va, u64 *protection, u64 *pfn)
{
	struct follow_pfnmap_args args = { .vma = vma, .address = va };
	int ret = follow_pfnmap_start(&args);

	if (ret)
		return ret;
	*protection = pgprot_val(args.pgprot);
	*pfn = args.pfn;
	follow_pfnmap_end(&args);
	return 0;
}
#else
static int read_entry(struct vm_area_struct *vma, unsigned long va, u64 *protection, u64 *pfn)
{
	spinlock_t *lock;
	pte_t *pte;
	int ret = follow_pte(vma->vm_mm, va, &pte, &lock);

	if (ret)
		return ret;
	*protection = pgprot_val(pte_pgprot(*pte));
	*pfn = pte_pfn(*pte);
	pte_unmap_unlock(pte, lock);
	return 0;
}
#endif

#ifdef CONFIG_X86
/* Linux programs the PAT so that these bits choose among the first four types. */
static u32 decode(u64 protection)
{
	if (protection & _PAGE_PAT)
		return PTE_PROBE_OTHER;
	return (protection & _PAGE_PWT ? 1 : 0) | (protection & _PAGE_PCD ? 2 : 0);
}

static u32 writable(u64 protection)
{
	return !!(protection & _PAGE_RW);
}
#else
static u32 decode(u64 protection)
{
	switch ((protection & PTE_ATTRINDX_MASK) >> 2) {
	case MT_NORMAL:
		return PTE_PROBE_WB;
	case MT_NORMAL_NC:
		return PTE_PROBE_WC;
	case MT_DEVICE_nGnRE:
	case MT_DEVICE_nGnRnE:
		return PTE_PROBE_UC;
	}
	return PTE_PROBE_OTHER;
}

static u32 writable(u64 protection)
{
	return !(protection & PTE_RDONLY);
}
#endif

static int look(struct pte_probe *args)
{
	struct vm_area_struct *vma;
	u64 protection, pfn;
	int ret = -EFAULT;

	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, args->va);
	if (vma && vma->vm_start <= args->va) {
		ret = 0;
		args->type = PTE_PROBE_NOT_PRESENT;
		if (read_entry(vma, args->va, &protection, &pfn) == 0) {
			args->type = decode(protection);
			args->writable = writable(protection);
			args->physical = (pfn << PAGE_SHIFT) | (args->va & ~PAGE_MASK);
		}
	}
	mmap_read_unlock(current->mm);
	return ret;
}

static long control(struct file *file, unsigned int command, unsigned long arg)
{
	struct pte_probe args;
	int ret;

	if (command != PTE_PROBE_LOOK)
		return -ENOTTY;
	if (copy_from_user(&args, (void __user *)arg, sizeof(args)))
		return -EFAULT;
	ret = look(&args);
	if (ret == 0 && copy_to_user((void __user *)arg, &args, sizeof(args)))
		ret = -EFAULT;
	return ret;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = control,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "pte-probe",
	.mode = 0666,
	.fops = &operations,
};
module_misc_device(device);
MODULE_DESCRIPTION("Reads page table entries for tests");
MODULE_LICENSE("GPL");
