/* SPDX-License-Identifier: MIT */
/* The routines of x86-64 by name, and the rules that choose among them. */
#include "copy/cpu/cpu.h"

#include "copy/cpu/generic/plain.h"
#include "copy/cpu/x86/routines.h"

static const struct gdri_copy_routine sse2 = {
	.name = "sse2",
	.store = gdri_copy_sse2_store,
	.load = gdri_copy_sse2_load,
};

static const struct gdri_copy_routine sse41 = {
	.name = "sse41",
	.needs = GDRI_COPY_X86_SSE41,
	.store = gdri_copy_sse2_store,
	.load = gdri_copy_sse41_load,
};

/* Every CPU with AVX has the SSE4.1 loads that serve its heads and tails. */
static const struct gdri_copy_routine avx = {
	.name = "avx",
	.needs = GDRI_COPY_X86_AVX | GDRI_COPY_X86_SSE41,
	.store = gdri_copy_avx_store,
	.load = gdri_copy_avx_load,
};

static const struct gdri_copy_routine avx2 = {
	.name = "avx2",
	.needs = GDRI_COPY_X86_AVX2 | GDRI_COPY_X86_SSE41,
	.store = gdri_copy_avx_store,
	.load = gdri_copy_avx2_load,
};

static const struct gdri_copy_routine avx512 = {
	.name = "avx512",
	.needs = GDRI_COPY_X86_AVX512F | GDRI_COPY_X86_SSE41,
	.store = gdri_copy_avx512_store,
	.load = gdri_copy_avx512_load,
};

#ifdef GDRI_COPY_HAVE_MOVDIR64B
static const struct gdri_copy_routine movdir64b = {
	.name = "movdir64b",
	.needs = GDRI_COPY_X86_MOVDIR64B,
	.store = gdri_copy_movdir64b_store,
};
#endif

static const struct gdri_copy_routine *const routines[] = {
	&gdri_copy_plain, &sse2, &sse41, &avx, &avx2, &avx512,
#ifdef GDRI_COPY_HAVE_MOVDIR64B
	&movdir64b,
#endif
	NULL
};

/*
 * The rules.  To measure them again, run for each NAME
 *
 *	GDRCOPY_COPY=NAME gdrcopy_copybw -s 65536
 *	GDRCOPY_COPY=NAME gdrcopy_copylat
 *
 * on a real GPU, pinned to a core of the GPU's socket, and put the winner
 * first.  Measured on a Xeon with AVX-512 and MOVDIR64B and an H200 on PCIe 5:
 * 1 MiB stored by AVX-512 14 GB/s, by MOVDIR64B 10 GB/s, by 2.6's choice 17.7;
 * 64 KiB loaded by 512-bit streaming loads 0.8 GB/s, by 2.6's choice 1.0.  So
 * wider is not better, and neither of the two is chosen by itself.
 *
 * Should one routine win for small copies and another for large ones, give the
 * pair a name of its own: a routine whose store compares the size and calls
 * one or the other.
 */
static const struct gdri_copy_routine *const store_order[] = { &avx, &sse2, NULL };
static const struct gdri_copy_routine *const load_order[] = { &avx2, &sse41, &sse2, NULL };

/* No NVIDIA GPU is coherent with an x86 CPU; only emulated ones are cached here. */
const struct gdri_copy_cpu gdri_copy_cpu = {
	.detect = gdri_copy_x86_detect,
	.routines = routines,
	.store_order = store_order,
	.load_order = load_order,
	.cached_store = gdri_copy_plain_cached_store,
	.cached_load = gdri_copy_plain_cached_load,
};
