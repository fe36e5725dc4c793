/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Symbols of nvidia.ko for the link check of gdrdrv.ko, with the checksums that
 * nv-p2p.h gives them.  This module is never installed, and refuses to load.
 */
#include <linux/module.h>

#include "probes.h"
#include "nv-p2p.h"

#ifdef GDRDRV_OPEN_DRIVER
#define EXPORT_P2P(symbol) EXPORT_SYMBOL_GPL(symbol)
#else
#define EXPORT_P2P(symbol) EXPORT_SYMBOL(symbol)
#endif

int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 uint64_t length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	return -EINVAL;
}
EXPORT_P2P(nvidia_p2p_get_pages);

int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	return -EINVAL;
}
EXPORT_P2P(nvidia_p2p_put_pages);

#if defined(GDRDRV_NV_PERSISTENT_CALLS)
int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags)
{
	return -EINVAL;
}
EXPORT_P2P(nvidia_p2p_get_pages_persistent);

int nvidia_p2p_put_pages_persistent(uint64_t virtual_address,
				    struct nvidia_p2p_page_table *page_table, uint32_t flags)
{
	return -EINVAL;
}
EXPORT_P2P(nvidia_p2p_put_pages_persistent);
#elif defined(GDRDRV_NV_PERSISTENT_VARIABLE)
int nvidia_p2p_cap_persistent_pages;
EXPORT_P2P(nvidia_p2p_cap_persistent_pages);
#endif

static int __init refuse_to_load(void)
{
	return -ENODEV;
}

module_init(refuse_to_load);
MODULE_DESCRIPTION("Symbols for building gdrdrv; not to be loaded");
MODULE_LICENSE("Dual MIT/GPL");
