/* SPDX-License-Identifier: MIT */
/* The kernels that the emulator knows. */
#include "kernels.h"

extern const struct emu_kernel emu_kernel_add_one;
extern const struct emu_kernel emu_kernel_pplat;
extern const struct emu_kernel emu_kernel_wait_flag;

const struct emu_kernel *const emu_kernel_table[] = {
	&emu_kernel_add_one,
	&emu_kernel_pplat,
	&emu_kernel_wait_flag,
	NULL,
};
