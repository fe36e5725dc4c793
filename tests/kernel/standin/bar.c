/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Finds the PCI devices whose memory BARs stand for GPU memory. */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "standin.h"

/* QEMU's ivshmem-plain: BAR 2 is 64-bit prefetchable memory, like BAR 1 of a GPU. */
#define MEMORY_VENDOR 0x1af4
#define MEMORY_DEVICE 0x1110
#define MEMORY_BAR 2

struct standin_bar standin_bars[STANDIN_MAX_BARS];
unsigned int standin_bar_count;

static int add_bar(struct pci_dev *pci)
{
	struct standin_bar *bar = &standin_bars[standin_bar_count];
	int ret = pci_enable_device(pci);

	if (ret)
		return ret;
	*bar = (struct standin_bar){
		.pci = pci,
		.base = pci_resource_start(pci, MEMORY_BAR),
		.size = pci_resource_len(pci, MEMORY_BAR),
	};
	bar->pages = bar->size >> STANDIN_PAGE_SHIFT;
	bar->used = vzalloc(bar->pages);
	if (!bar->used) {
		pci_disable_device(pci);
		return -ENOMEM;
	}
	memset(bar->uuid, 0xa0 + standin_bar_count, sizeof(bar->uuid));
	standin_bar_count++;
	standin_stats.total_pages += bar->pages;
	pr_info("nvidia_emu: GPU %u: %llu MiB at 0x%llx\n", standin_bar_count - 1,
		bar->size >> 20, bar->base);
	return 0;
}

int standin_bars_find(void)
{
	struct pci_dev *pci = NULL;
	int ret;

	while ((pci = pci_get_device(MEMORY_VENDOR, MEMORY_DEVICE, pci)) != NULL &&
	       standin_bar_count < STANDIN_MAX_BARS) {
		pci_dev_get(pci);
		ret = add_bar(pci);
		if (ret) {
			pci_dev_put(pci);
			pci_dev_put(pci);
			standin_bars_release();
			return ret;
		}
	}
	pci_dev_put(pci);
	return standin_bar_count > 0 ? 0 : -ENODEV;
}

void standin_bars_release(void)
{
	standin_bars_reserve_wc(false);
	while (standin_bar_count > 0) {
		struct standin_bar *bar = &standin_bars[--standin_bar_count];

		vfree(bar->used);
		pci_disable_device(bar->pci);
		pci_dev_put(bar->pci);
	}
}

/* On real machines the NVIDIA driver may or may not hold one for BAR 1. */
int standin_bars_reserve_wc(bool hold)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < standin_bar_count; i++) {
		struct standin_bar *bar = &standin_bars[i];

		if (bar->wc_reservation == hold)
			continue;
		if (hold)
			ret = arch_io_reserve_memtype_wc(bar->base, bar->size);
		else
			arch_io_free_memtype_wc(bar->base, bar->size);
		if (ret)
			return ret;
		bar->wc_reservation = hold;
	}
	return ret;
}
