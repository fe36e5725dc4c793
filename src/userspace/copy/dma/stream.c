/* SPDX-License-Identifier: MIT */
/* How the CPU empties bounce memory when what it copies does not fit its caches. */
#include "copy/dma/stream.h"

#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

#ifdef __x86_64__
#define LINE ((size_t)64)
#define AHEAD ((size_t)2048)

static inline void stream_line(__m128i *to, const __m128i *from)
{
	const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
	const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

	_mm_stream_si128(to, a);
	_mm_stream_si128(to + 1, b);
	_mm_stream_si128(to + 2, c);
	_mm_stream_si128(to + 3, d);
}

/* Prefetches beyond the end of the source do no harm; nothing is loaded there. */
void gdri_dma_stream_copy(void *dst, const void *src, size_t size)
{
	unsigned char *to = dst;
	const unsigned char *from = src;
	size_t head = -(uintptr_t)to & (LINE - 1);

	if (head > size)
		head = size;
	memcpy(to, from, head);
	to += head;
	from += head;
	for (size -= head; size >= LINE; size -= LINE, to += LINE, from += LINE) {
		_mm_prefetch((const char *)((uintptr_t)from + AHEAD), _MM_HINT_T0);
		stream_line((__m128i *)to, (const __m128i *)from);
	}
	_mm_sfence();
	memcpy(to, from, size);
}
#else
void gdri_dma_stream_copy(void *dst, const void *src, size_t size)
{
	memcpy(dst, src, size);
}
#endif
