/* SPDX-License-Identifier: MIT */
/* The GPU's half of the ping-pong, as PTX text that the driver compiles at run time. */
#ifndef TOOLS_PPLAT_KERNEL_PTX_H
#define TOOLS_PPLAT_KERNEL_PTX_H

#define PPLAT_KERNEL "pplat_pingpong"

/* The CPU sends rounds 1, 2, ...; this value instead of a round ends the kernel. */
#define PPLAT_STOP 0xffffffffu

/* Values of the parameter direction. */
enum { PPLAT_CPU_TO_GPU = 0, PPLAT_GPU_TO_CPU = 1 };

/* What the parameter scratch points at, in GPU memory, zeroed before the launch. */
struct pplat_scratch {
	unsigned arrivals;	/* blocks that have finished a round, over all rounds */
	unsigned errors;	/* payload words that were not what the round asks for */
};

/*
 * Written for PTX ISA 6.0 and sm_50, so that every GPU since 2014 takes it;
 * volatile accesses are relaxed accesses of system scope there, and membar.sys
 * is the fence between them and the payload.
 *
 * Parameters: gpu_flag (polled here), cpu_flag (answered here), payload,
 * scratch; words of payload, direction, number of rounds.
 *
 * Without payload one thread polls and answers, and nothing else stands
 * between the load that sees the flag and the store that answers it.
 *
 * With payload the first thread of each block polls; all threads then check
 * word k against round + k (CPU to GPU) or store it (GPU to CPU); the block
 * that arrives last answers for all.  The CPU sends the next round only after
 * the answer, so no block can fall a round behind.  The grid has to be
 * resident as a whole.
 */
static const char pplat_kernel_ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry pplat_pingpong(\n"
	"	.param .u64 p_gpu_flag, .param .u64 p_cpu_flag,\n"
	"	.param .u64 p_payload, .param .u64 p_scratch,\n"
	"	.param .u32 p_words, .param .u32 p_direction, .param .u32 p_rounds)\n"
	"{\n"
	"	.reg .pred %p, %q, %first, %store;\n"
	"	.reg .u32 %round, %rounds, %seen, %words, %direction, %thread, %blocks;\n"
	"	.reg .u32 %my_block, %threads, %index, %start, %stride, %value, %wanted, %old, %last;\n"
	"	.reg .u64 %gpu_flag, %cpu_flag, %payload, %scratch, %address;\n"
	"	.shared .align 4 .u32 shared_round;\n"
	"	ld.param.u64 %gpu_flag, [p_gpu_flag];\n"
	"	ld.param.u64 %cpu_flag, [p_cpu_flag];\n"
	"	ld.param.u64 %payload, [p_payload];\n"
	"	ld.param.u64 %scratch, [p_scratch];\n"
	"	ld.param.u32 %words, [p_words];\n"
	"	ld.param.u32 %direction, [p_direction];\n"
	"	ld.param.u32 %rounds, [p_rounds];\n"
	"	cvta.to.global.u64 %gpu_flag, %gpu_flag;\n"
	"	cvta.to.global.u64 %cpu_flag, %cpu_flag;\n"
	"	cvta.to.global.u64 %payload, %payload;\n"
	"	cvta.to.global.u64 %scratch, %scratch;\n"
	"	mov.u32 %thread, %tid.x;\n"
	"	mov.u32 %threads, %ntid.x;\n"
	"	mov.u32 %my_block, %ctaid.x;\n"
	"	mov.u32 %blocks, %nctaid.x;\n"
	"	mov.u32 %round, 1;\n"
	"	setp.eq.u32 %first, %thread, 0;\n"
	"	setp.ne.u32 %p, %words, 0;\n"
	"	@%p bra WITH_PAYLOAD;\n"
	"	@!%first bra DONE;\n"
	"	setp.ne.u32 %p, %my_block, 0;\n"
	"	@%p bra DONE;\n"
	/* The stop value is larger than any round, so it ends both loops. */
	"FLAG_ONLY:\n"
	"	ld.volatile.global.u32 %seen, [%gpu_flag];\n"
	"	setp.lt.u32 %p, %seen, %round;\n"
	"	@%p bra FLAG_ONLY;\n"
	"	st.volatile.global.u32 [%cpu_flag], %seen;\n"
	"	add.u32 %round, %seen, 1;\n"
	"	setp.lt.u32 %p, %seen, %rounds;\n"
	"	@%p bra FLAG_ONLY;\n"
	"	bra DONE;\n"
	"WITH_PAYLOAD:\n"
	"	mad.lo.u32 %start, %my_block, %threads, %thread;\n"
	"	mul.lo.u32 %stride, %blocks, %threads;\n"
	"	setp.eq.u32 %store, %direction, 1;\n"
	"ROUND:\n"
	"	@!%first bra WAIT_BLOCK;\n"
	"POLL:\n"
	"	ld.volatile.global.u32 %seen, [%gpu_flag];\n"
	"	setp.lt.u32 %p, %seen, %round;\n"
	"	@%p bra POLL;\n"
	"	st.shared.u32 [shared_round], %seen;\n"
	"	membar.sys;\n"
	"WAIT_BLOCK:\n"
	"	bar.sync 0;\n"
	"	ld.shared.u32 %seen, [shared_round];\n"
	"	setp.gt.u32 %p, %seen, %rounds;\n"
	"	@%p bra DONE;\n"
	"	mov.u32 %index, %start;\n"
	"WORD:\n"
	"	setp.ge.u32 %p, %index, %words;\n"
	"	@%p bra WORDS_DONE;\n"
	"	mad.wide.u32 %address, %index, 4, %payload;\n"
	"	add.u32 %wanted, %round, %index;\n"
	"	add.u32 %index, %index, %stride;\n"
	"	@%store st.volatile.global.u32 [%address], %wanted;\n"
	"	@%store bra WORD;\n"
	"	ld.volatile.global.u32 %value, [%address];\n"
	"	setp.ne.u32 %q, %value, %wanted;\n"
	"	@%q red.global.add.u32 [%scratch+4], 1;\n"
	"	bra WORD;\n"
	"WORDS_DONE:\n"
	"	@%store membar.sys;\n"
	"	bar.sync 0;\n"
	"	@!%first bra NEXT;\n"
	"	atom.global.add.u32 %old, [%scratch], 1;\n"
	"	mul.lo.u32 %last, %round, %blocks;\n"
	"	sub.u32 %last, %last, 1;\n"
	"	setp.ne.u32 %p, %old, %last;\n"
	"	@%p bra NEXT;\n"
	"	membar.sys;\n"
	"	st.volatile.global.u32 [%cpu_flag], %round;\n"
	"NEXT:\n"
	"	add.u32 %round, %round, 1;\n"
	"	setp.le.u32 %p, %round, %rounds;\n"
	"	@%p bra ROUND;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

#endif
