/* SPDX-License-Identifier: MIT */
/* Makes and checks the bytes that the tools move. */
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

void pattern_fill(void *buffer, size_t size, uint32_t seed)
{
	unsigned char *bytes = buffer;
	uint32_t state = seed * 2654435761u + 1;

	/* xorshift32: never 0 once it started so. */
	for (size_t i = 0; i < size; i++) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		bytes[i] = (unsigned char)(state >> 24);
	}
}

void pattern_check(const void *got, const void *wanted, size_t size, const char *what)
{
	const unsigned char *bytes = got, *good = wanted;

	if (memcmp(got, wanted, size) == 0)
		return;
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != good[i])
			fail("%s moved wrong data: byte %zu of %zu is 0x%02x, expected 0x%02x",
			     what, i, size, bytes[i], good[i]);
}

void *host_buffer(size_t size)
{
	void *buffer = NULL;

	if (posix_memalign(&buffer, 65536, size ? size : 1))
		fail("no host memory for %zu bytes: try a smaller size", size);
	memset(buffer, 0, size);
	return buffer;
}
