/* SPDX-License-Identifier: MIT */
/* Asks an x86-64 CPU which of the routines' instructions it has. */
#include "copy/cpu/x86/routines.h"

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

/* Register groups whose saving the operating system announces in XCR0. */
#define XCR0_AVX 0x06		/* SSE, upper halves of AVX */
#define XCR0_AVX512 0xe6	/* and masks, upper halves of ZMM0-15, ZMM16-31 */

static uint64_t read_xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

static bool saves(uint64_t xcr0, uint64_t groups)
{
	return (xcr0 & groups) == groups;
}

unsigned gdri_copy_x86_detect(void)
{
	unsigned eax, ebx, ecx, edx, found = 0;
	uint64_t xcr0 = 0;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		return 0;
	if (ecx & bit_OSXSAVE)
		xcr0 = read_xcr0();
	if (ecx & bit_SSE4_1)
		found |= GDRI_COPY_X86_SSE41;
	if ((ecx & bit_AVX) && saves(xcr0, XCR0_AVX))
		found |= GDRI_COPY_X86_AVX;
	if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
		return found;
	if ((ebx & bit_AVX2) && (found & GDRI_COPY_X86_AVX))
		found |= GDRI_COPY_X86_AVX2;
	if ((ebx & bit_AVX512F) && saves(xcr0, XCR0_AVX512))
		found |= GDRI_COPY_X86_AVX512F;
	if (ecx & (1u << 28))	/* bit_MOVDIR64B; older cpuid.h lack the name */
		found |= GDRI_COPY_X86_MOVDIR64B;
	return found;
}
