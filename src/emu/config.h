/* SPDX-License-Identifier: MIT */
/* What GDRCOPY_EMU asks the emulated machine to be. */
#ifndef EMU_CONFIG_H
#define EMU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define EMU_MAX_DEVICES 16
#define EMU_MAX_FAILURES 16

/*
 * GDRCOPY_EMU is a list of key or key=value, separated by commas:
 *
 *   devices=N     number of GPUs, 0 to 16 (1; GDRCOPY_EMU_DEVICES=N is the short form)
 *   mem=SIZE      memory of each GPU (16G)
 *   bar1=SIZE     BAR1 window of each GPU (256G)
 *   driver=N      answer of cuDriverGetVersion (13000); from 13030 on, dma-bufs can be mapped
 *   coherent      GPUs share a cache-coherent link with the CPU (and are of capability 10.0)
 *   no-peer       GPUs cannot access each other
 *   no-rdma       GPUs without GPUDirect RDMA
 *   exclusive     devices say that their compute mode is "exclusive process" (nothing
 *                 stops a second process)
 *   provider=bar  memory comes from the PCI device of the kernel tests (memfd: the default)
 *   wc=0          the machine cannot map write-combined
 *   dma=MODE      the model of copy-engine channels; several modes: several keys
 *     0               GPUs have none
 *     busy[:N]        only N channels of each GPU are free (0)
 *     hang[:N]        each channel stops in its N-th submission (1)
 *     die[:N]         each channel dies in its N-th submission (1)
 *     delay:US        each submission waits that many microseconds
 *     early           semaphores do not wait for the bytes, whatever they were told
 *     unconfirmed     closing a channel is not confirmed, and it goes on
 *     small           rings of 8 entries, push buffers of 256 words
 *   fail=CALL[:N[:RESULT]]   the N-th call (1; * means each) of CALL answers RESULT.
 *                 CALL is a driver entry point without _vN, or "pin", "map" or "export", or "dma-"
 *                 and space, engines, queue, map, host, unmap, scratch or close, whose
 *                 RESULT is an errno.  May be given up to 16 times.
 *
 * SIZE takes K, M, G, T.  An unknown key makes cuInit fail and is named on stderr.
 */
struct emu_failure {
	char call[64];
	unsigned long nth;	/* 0: each */
	int result;		/* 0: the default of the call */
	unsigned long seen;
};

struct emu_dma_config {
	bool absent;
	bool limited;			/* to this number of channels: */
	uint64_t channels;
	uint64_t hang_at, die_at;	/* 0: never */
	uint64_t delay_us;
	bool early;
	bool unconfirmed;
	bool small;
};

struct emu_config {
	int devices;
	int driver_version;
	uint64_t memory;
	uint64_t bar1;
	bool coherent;
	bool peer;
	bool rdma;
	bool exclusive;
	bool write_combining;
	bool bar_memory;
	struct emu_dma_config dma;
	int failure_count;
	struct emu_failure failures[EMU_MAX_FAILURES];
	char error[192];	/* what is wrong with the variable; empty: nothing */
};

/* Parses the environment at the first call. */
struct emu_config *emu_config_get(void);

/* The separate step, for the unit test: false and config->error on bad text. */
bool emu_config_parse(struct emu_config *config, const char *devices, const char *text);

/*
 * Counts a call of name and tells whether it must fail; *result is then the
 * configured one or fallback.  A suffix _vN of name is ignored.
 */
bool emu_config_injected(const char *name, int fallback, int *result);

#endif
