/* SPDX-License-Identifier: MIT */
/* What names an emulated device, in CUDA and in NVML. */
#include "identity.h"

#include <string.h>

void emu_identity_uuid(int device, unsigned char uuid[16])
{
	memcpy(uuid, "gdrcopy-emulated", 16);
	uuid[15] = (unsigned char)device;
}
