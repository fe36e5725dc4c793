# SPDX-License-Identifier: MIT
# The copy engine's sources for ARCH (x86, arm64, power) and the flags that each
# file needs beside the common ones.  Paths are relative to this folder.
#
# A routine whose instructions an older compiler or assembler does not know is
# left out; a macro of the same name tells cpu/<arch>/cpu.c that it is there.

copy_comma := ,

# $(call copy_cc_runs,FLAGS,INSTRUCTION): "y" when $(CC) accepts both.
copy_cc_runs = $(shell echo 'void f(void) { __asm__("$(2)"); }' | \
	$(CC) $(1) -x c -c -o /dev/null - >/dev/null 2>&1 && echo y)

COPY_SRCS := select.c cpu/split.c cpu/generic/plain.c

ifeq ($(ARCH),x86)
COPY_SRCS += cpu/x86/cpu.c cpu/x86/detect.c cpu/x86/sse2.c cpu/x86/sse41.c \
	cpu/x86/avx.c cpu/x86/avx2.c cpu/x86/avx512.c
COPY_CFLAGS_cpu/x86/sse2.c := -msse2
COPY_CFLAGS_cpu/x86/sse41.c := -msse4.1
COPY_CFLAGS_cpu/x86/avx.c := -mavx
COPY_CFLAGS_cpu/x86/avx2.c := -mavx2
COPY_CFLAGS_cpu/x86/avx512.c := -mavx512f
ifeq ($(call copy_cc_runs,-mmovdir64b,movdir64b (%rax)$(copy_comma) %rax),y)
COPY_SRCS += cpu/x86/movdir64b.c
COPY_CFLAGS_cpu/x86/movdir64b.c := -mmovdir64b
COPY_CFLAGS_cpu/x86/cpu.c := -DGDRI_COPY_HAVE_MOVDIR64B
endif
else ifeq ($(ARCH),arm64)
COPY_SRCS += cpu/arm64/cpu.c cpu/arm64/detect.c cpu/arm64/neon.c
ifeq ($(call copy_cc_runs,-march=armv8.7-a,st64b x0$(copy_comma) [x8]),y)
COPY_SRCS += cpu/arm64/ls64.c
COPY_CFLAGS_cpu/arm64/ls64.c := -march=armv8.7-a
COPY_CFLAGS_cpu/arm64/cpu.c := -DGDRI_COPY_HAVE_LS64
endif
else
COPY_SRCS += cpu/generic/cpu.c
endif
