/* SPDX-License-Identifier: MIT */
/* Asks the kernel which of the routines' instructions an arm64 CPU has. */
#include "copy/cpu/arm64/routines.h"

#include <sys/auxv.h>

/* Linux: include/uapi/linux/auxvec.h and arch/arm64/include/uapi/asm/hwcap.h. */
#ifndef AT_HWCAP3
#define AT_HWCAP3 29
#endif
#define CPU_HAS_ASIMD (1ul << 1)	/* AT_HWCAP */
#define CPU_HAS_LS64 (1ul << 3)		/* AT_HWCAP3 */

unsigned gdri_copy_arm64_detect(void)
{
	unsigned found = 0;

	if (getauxval(AT_HWCAP) & CPU_HAS_ASIMD)
		found |= GDRI_COPY_ARM64_NEON;
	if (getauxval(AT_HWCAP3) & CPU_HAS_LS64)
		found |= GDRI_COPY_ARM64_LS64;
	return found;
}
