/* SPDX-License-Identifier: MIT */
/* Two kernels that the emulator knows; src/emu/kernels/selftest.c has this text's hash. */
#ifndef TESTS_EMU_SELFTEST_PTX_H
#define TESTS_EMU_SELFTEST_PTX_H

/*
 * add_one(u32 *words, u32 count): one thread adds 1 to one word.
 * wait_flag(u32 *flag, u32 value): waits until flag[0] is value, then stores
 * value + 1 to flag[1].
 */
static const char selftest_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry add_one(.param .u64 words, .param .u32 count)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .b32 %r<6>;\n"
	"	.reg .b64 %rd<3>;\n"
	"	ld.param.u64 %rd0, [words];\n"
	"	ld.param.u32 %r0, [count];\n"
	"	mov.u32 %r1, %ctaid.x;\n"
	"	mov.u32 %r2, %ntid.x;\n"
	"	mov.u32 %r3, %tid.x;\n"
	"	mad.lo.u32 %r4, %r1, %r2, %r3;\n"
	"	setp.ge.u32 %p, %r4, %r0;\n"
	"	@%p bra DONE;\n"
	"	mul.wide.u32 %rd1, %r4, 4;\n"
	"	add.u64 %rd2, %rd0, %rd1;\n"
	"	ld.global.u32 %r5, [%rd2];\n"
	"	add.u32 %r5, %r5, 1;\n"
	"	st.global.u32 [%rd2], %r5;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n"
	".visible .entry wait_flag(.param .u64 flag, .param .u32 value)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .b32 %r<3>;\n"
	"	.reg .b64 %rd<1>;\n"
	"	ld.param.u64 %rd0, [flag];\n"
	"	ld.param.u32 %r0, [value];\n"
	"AGAIN:\n"
	"	ld.acquire.sys.u32 %r1, [%rd0];\n"
	"	setp.ne.u32 %p, %r1, %r0;\n"
	"	@%p bra AGAIN;\n"
	"	add.u32 %r2, %r0, 1;\n"
	"	st.release.sys.u32 [%rd0+4], %r2;\n"
	"	ret;\n"
	"}\n";

#endif
