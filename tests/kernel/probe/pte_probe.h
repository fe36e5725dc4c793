/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* /dev/pte-probe: what stands in the caller's page tables. */
#ifndef PTE_PROBE_H
#define PTE_PROBE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PTE_PROBE_PATH "/dev/pte-probe"

enum pte_probe_type {
	PTE_PROBE_WB = 0,
	PTE_PROBE_WC = 1,
	PTE_PROBE_UC_MINUS = 2,
	PTE_PROBE_UC = 3,
	PTE_PROBE_OTHER = 4,
	PTE_PROBE_NOT_PRESENT = 5
};

struct pte_probe {
	__u64 va;		/* in */
	__u64 physical;		/* out */
	__u32 type;		/* out: enum pte_probe_type */
	__u32 writable;		/* out */
};

#define PTE_PROBE_LOOK _IOWR('E', 64, struct pte_probe)

#endif
