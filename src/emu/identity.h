/* SPDX-License-Identifier: MIT */
/* What names an emulated device, in CUDA and in NVML. */
#ifndef EMU_IDENTITY_H
#define EMU_IDENTITY_H

#define EMU_DEVICE_NAME "Emulated GPU (gdrcopy)"

/*
 * Each device has a PCI domain of its own, from here on, and is slot 0 of bus
 * 0 there, so that no real device shares its id.
 */
#define EMU_PCI_DOMAIN 0xe000

void emu_identity_uuid(int device, unsigned char uuid[16]);

#endif
