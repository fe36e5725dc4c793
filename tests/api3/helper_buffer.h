/* SPDX-License-Identifier: MIT */
/* Emulated GPU memory and sessions for the tests of version 3. */
#ifndef TESTS_API3_HELPER_BUFFER_H
#define TESTS_API3_HELPER_BUFFER_H

#include <gdrcopy/gdrapi.h>

#include "api/helper_case.h"
#include "cuda.h"
#include "harness.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

#define CHECK_OK(call) CHECK_EQ(call, GDR_SUCCESS)
#define REQUIRE_OK(call) REQUIRE_EQ(call, GDR_SUCCESS)

/* CUDA made ready, with the device current. */
void buffer_use_device(int device);
CUdeviceptr buffer_alloc(int device, size_t size);

/* What the GPU holds, by CUDA's own copies. */
void buffer_set(CUdeviceptr ptr, const void *data, size_t size);
void buffer_get(void *data, CUdeviceptr ptr, size_t size);

gdr_t buffer_session(void);

/* Bytes that differ from place to place and from seed to seed. */
void buffer_fill(void *data, size_t size, uint32_t seed);

#endif
