/* SPDX-License-Identifier: MIT */
/* Names the processor family that the library and its header were built for. */
#ifndef GDRCONFIG_H
#define GDRCONFIG_H

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
#define GDRAPI_X86
#elif defined(__aarch64__)
#define GDRAPI_ARM64
#elif defined(__powerpc64__) || defined(__powerpc__)
#define GDRAPI_POWER
#else
#error "gdrcopy supports x86-64, arm64 and ppc64le"
#endif

#endif
