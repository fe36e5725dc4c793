/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Memory types of views: write-combined, cached, device. */
#include "internal.h"

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/pci.h>
#ifdef CONFIG_X86
#include <asm/cpufeature.h>
#include <asm/pgtable_types.h>
#endif
#ifdef CONFIG_AMD_MEM_ENCRYPT
#include <linux/mem_encrypt.h>
#endif

static bool needs_device_type;

#ifdef CONFIG_ARM64
/* Root ports of BlueField-3, which take no write-combined accesses. */
static bool has_root_port(unsigned int device)
{
	struct pci_dev *found = pci_get_device(0x15b3, device, NULL);

	pci_dev_put(found);
	return found;
}
#endif

void gdrdrv_pgprot_init(void)
{
#ifdef CONFIG_ARM64
	needs_device_type = has_root_port(0xa2da) || has_root_port(0xa2db);
	if (needs_device_type)
		pr_info("BlueField-3: views are made as device memory\n");
#endif
}

bool gdrdrv_pgprot_is_device(void)
{
	return needs_device_type;
}

/*
 * GPU memory of a coherent platform may be ordinary memory to the kernel.
 * Proprietary drivers know no platform like this that our kernels run on.
 */
bool gdrdrv_pgprot_is_ram(u64 physical)
{
#ifdef GDRDRV_OPEN_DRIVER
	return page_is_ram(physical >> PAGE_SHIFT);
#else
	return false;
#endif
}

#ifdef CONFIG_X86
/* pgprot_writecombine() is GPL-only here. */
static pgprot_t write_combine(pgprot_t prot)
{
	return __pgprot((pgprot_val(prot) & ~_PAGE_CACHE_MASK) |
			cachemode2protval(_PAGE_CACHE_MODE_WC));
}
#else
static pgprot_t write_combine(pgprot_t prot)
{
	return pgprot_writecombine(prot);
}
#endif

/*
 * In a confidential guest, or under memory encryption, device memory must be
 * mapped unencrypted.  What does that is GPL-only.
 */
#if defined(GDRDRV_OPEN_DRIVER) && defined(pgprot_decrypted)
static int share_with_device(pgprot_t *prot)
{
	*prot = pgprot_decrypted(*prot);
	return 0;
}
#else
static bool memory_is_encrypted(void)
{
#ifdef CONFIG_AMD_MEM_ENCRYPT
	if (sme_me_mask)
		return true;
#endif
#ifdef X86_FEATURE_TDX_GUEST
	if (boot_cpu_has(X86_FEATURE_TDX_GUEST))
		return true;
#endif
	return false;
}

static int share_with_device(pgprot_t *prot)
{
	if (!memory_is_encrypted())
		return 0;
	pr_err_ratelimited("encrypted memory (confidential computing) needs the open NVIDIA driver\n");
	return -EOPNOTSUPP;
}
#endif

int gdrdrv_pgprot_apply(struct vm_area_struct *vma, u32 type)
{
	pgprot_t prot = vma->vm_page_prot;
	int ret = 0;

	switch (type) {
	case GDRDRV_MAPPING_TYPE_WC:
		prot = write_combine(prot);
		ret = share_with_device(&prot);
		break;
	case GDRDRV_MAPPING_TYPE_DEVICE:
		prot = pgprot_device(prot);
		ret = share_with_device(&prot);
		break;
	}
	if (!ret)
		vma->vm_page_prot = prot;
	return ret;
}
