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
 * The rules.  tests/device/routines measures every routine on one mapping, in
 * turn; run it on a real GPU and put the winner first.
 *
 * On a Xeon with AVX-512 and MOVDIR64B and an H200 on PCIe 5 (medians, us, in
 * docs/results/h200): stores of 64 bytes equal those of 32, or need up
 * to 10% less between 4 and 64 KiB, while MOVDIR64B needs 22% more from 64 KiB
 * on.  Loads of 64 bytes equal those of 32 up to 4 KiB and need 17% less above,
 * 66 instead of 79 for 64 KiB.
 *
 * Users of older CPUs report that 512-bit streaming loads are slower than
 * narrow ones there (field reports, F3), so AVX-512 comes first only where it
 * was measured: on CPUs that have MOVDIR64B as well.
 *
 * Should one routine win for small copies and another for large ones, give the
 * pair a name of its own: a routine whose store compares the size and calls
 * one or the other.
 */
static const struct gdri_copy_routine avx512_of_recent_cpus = {
	.name = "avx512",
	.needs = GDRI_COPY_X86_AVX512F | GDRI_COPY_X86_SSE41 | GDRI_COPY_X86_MOVDIR64B,
	.store = gdri_copy_avx512_store,
	.load = gdri_copy_avx512_load,
};

static const struct gdri_copy_routine *const store_order[] = {
	&avx512_of_recent_cpus, &avx, &sse2, NULL
};
static const struct gdri_copy_routine *const load_order[] = {
	&avx512_of_recent_cpus, &avx2, &sse41, &sse2, NULL
};

/* No NVIDIA GPU is coherent with an x86 CPU; only emulated ones are cached here. */
const struct gdri_copy_cpu gdri_copy_cpu = {
	.detect = gdri_copy_x86_detect,
	.routines = routines,
	.store_order = store_order,
	.load_order = load_order,
	.cached_store = gdri_copy_plain_cached_store,
	.cached_load = gdri_copy_plain_cached_load,
};
