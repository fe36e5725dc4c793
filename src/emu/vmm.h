/* SPDX-License-Identifier: MIT */
/* Physical handles of cuMemCreate, shared by mapping and export. */
#ifndef EMU_VMM_H
#define EMU_VMM_H

#include "memory.h"

struct emu_vmm_handle {
	struct emu_vmm_handle *next;
	struct emu_block *block;
	CUmemAllocationProp prop;
	unsigned refs;		/* users and mappings */
	unsigned users;		/* what cuMemRelease gives back */
};

/* All with the lock held. */
struct emu_vmm_handle *emu_vmm_find(CUmemGenericAllocationHandle value);
struct emu_vmm_handle *emu_vmm_add(struct emu_block *block, const CUmemAllocationProp *prop);
void emu_vmm_put(struct emu_vmm_handle *handle);

#endif
