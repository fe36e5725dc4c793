/* SPDX-License-Identifier: MIT */
/*
 * What the sizes and routines of copies through bounce memory bring on this
 * machine: the figures behind the defaults in copy/dma/dma.c.  Prints
 * microseconds, medians of interleaved rounds, and checks every byte.
 *
 *	dma_tune [ROUNDS]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "copy/dma/dma.h"
#include "copy/dma/port_rm.h"
#include "copy/dma/stream.h"
#include "os/cuda.h"
#include "rm/range.h"

#define LARGEST ((size_t)16 << 20)

static struct gdri_log log_errors = { .level = GDRI_LOG_INFO };

static void by_memcpy(void *dst, const void *src, size_t size)
{
	memcpy(dst, src, size);
}

#ifdef __x86_64__
static void by_rep_movsb(void *dst, const void *src, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(size) : : "memory");
}

__attribute__((target("avx512f"))) static void by_avx512(void *dst, const void *src, size_t size)
{
	char *to = dst;
	const char *from = src;

	for (; size >= 256; size -= 256, to += 256, from += 256) {
		__m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
		__m512i c = _mm512_loadu_si512(from + 128), d = _mm512_loadu_si512(from + 192);

		_mm512_storeu_si512(to, a);
		_mm512_storeu_si512(to + 64, b);
		_mm512_storeu_si512(to + 128, c);
		_mm512_storeu_si512(to + 192, d);
	}
	memcpy(to, from, size);
}

__attribute__((target("avx512f"))) static void by_avx512_nt(void *dst, const void *src, size_t size)
{
	char *to = dst;
	const char *from = src;
	size_t head = -(uintptr_t)to & 63;

	if (head > size)
		head = size;
	memcpy(to, from, head);
	to += head, from += head, size -= head;
	for (; size >= 256; size -= 256, to += 256, from += 256) {
		__m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
		__m512i c = _mm512_loadu_si512(from + 128), d = _mm512_loadu_si512(from + 192);

		_mm512_stream_si512((void *)to, a);
		_mm512_stream_si512((void *)(to + 64), b);
		_mm512_stream_si512((void *)(to + 128), c);
		_mm512_stream_si512((void *)(to + 192), d);
	}
	_mm_sfence();
	memcpy(to, from, size);
}

__attribute__((target("avx2"))) static void by_avx2(void *dst, const void *src, size_t size)
{
	char *to = dst;
	const char *from = src;

	for (; size >= 128; size -= 128, to += 128, from += 128) {
		__m256i a = _mm256_loadu_si256((const void *)from);
		__m256i b = _mm256_loadu_si256((const void *)(from + 32));
		__m256i c = _mm256_loadu_si256((const void *)(from + 64));
		__m256i d = _mm256_loadu_si256((const void *)(from + 96));

		_mm256_storeu_si256((void *)to, a);
		_mm256_storeu_si256((void *)(to + 32), b);
		_mm256_storeu_si256((void *)(to + 64), c);
		_mm256_storeu_si256((void *)(to + 96), d);
	}
	memcpy(to, from, size);
}
#endif

#ifdef __x86_64__
#define PREFETCHED(name, from_ahead, to_ahead)                                                    \
	__attribute__((target("avx512f"))) static void name(void *dst, const void *src,           \
							    size_t size)                          \
	{                                                                                         \
		char *to = dst;                                                                   \
		const char *from = src;                                                           \
                                                                                                  \
		for (; size >= 128; size -= 128, to += 128, from += 128) {                        \
			__m512i a, b;                                                             \
                                                                                                  \
			if (from_ahead) {                                                         \
				_mm_prefetch(from + (from_ahead), _MM_HINT_T0);                   \
				_mm_prefetch(from + (from_ahead) + 64, _MM_HINT_T0);              \
			}                                                                         \
			if (to_ahead) {                                                           \
				__builtin_prefetch(to + (to_ahead), 1, 3);                        \
				__builtin_prefetch(to + (to_ahead) + 64, 1, 3);                   \
			}                                                                         \
			a = _mm512_loadu_si512(from);                                             \
			b = _mm512_loadu_si512(from + 64);                                        \
			_mm512_storeu_si512(to, a);                                               \
			_mm512_storeu_si512(to + 64, b);                                          \
		}                                                                                 \
		memcpy(to, from, size);                                                           \
	}
PREFETCHED(by_p_0_0, 0, 0)
PREFETCHED(by_p_1k_0, 1024, 0)
PREFETCHED(by_p_2k_0, 2048, 0)
PREFETCHED(by_p_0_1k, 0, 1024)
PREFETCHED(by_p_1k_1k, 1024, 1024)
PREFETCHED(by_p_2k_2k, 2048, 2048)
PREFETCHED(by_p_2k_4k, 2048, 4096)
PREFETCHED(by_p_4k_4k, 4096, 4096)
PREFETCHED(by_p_4k_8k, 4096, 8192)

/* Halves of a copy, which move nothing: what reading and what writing cost by themselves. */
__attribute__((target("avx512f"))) static void by_reading(void *dst, const void *src, size_t size)
{
	__m512i sum = _mm512_setzero_si512();

	for (size_t i = 0; i + 64 <= size; i += 64)
		sum = _mm512_xor_si512(sum, _mm512_loadu_si512((const char *)src + i));
	_mm512_storeu_si512(dst, sum);
}

__attribute__((target("avx512f"))) static void by_writing(void *dst, const void *src, size_t size)
{
	const __m512i value = _mm512_loadu_si512(src);

	for (size_t i = 0; i + 64 <= size; i += 64)
		_mm512_storeu_si512((char *)dst + i, value);
}

/* Four pages side by side, so that four streams are under way. */
__attribute__((target("avx512f"))) static void by_streams(void *dst, const void *src, size_t size)
{
	char *to = dst;
	const char *from = src;

	for (; size >= 16384; size -= 16384, to += 16384, from += 16384)
		for (unsigned i = 0; i < 4096; i += 64)
			for (unsigned k = 0; k < 16384; k += 4096)
				_mm512_storeu_si512(to + k + i, _mm512_loadu_si512(from + k + i));
	memcpy(to, from, size);
}
#endif

static gdri_dma_copy_fn routine;

static void by_routine(void *dst, const void *src, size_t size)
{
	routine(dst, src, size);
}

struct config {
	const char *name;
	gdri_dma_copy_fn routine;
};

static const struct config configs[] = {
	{ "memcpy", by_memcpy },
#ifdef __x86_64__
	{ "rep movsb", by_rep_movsb },
	{ "avx2", by_avx2 },
	{ "avx512", by_avx512 },
	{ "avx512 nt", by_avx512_nt },
	{ "p 0 0", by_p_0_0 },
	{ "p 1k 0", by_p_1k_0 },
	{ "p 2k 0", by_p_2k_0 },
	{ "p 0 1k", by_p_0_1k },
	{ "p 1k 1k", by_p_1k_1k },
	{ "p 2k 2k", by_p_2k_2k },
	{ "p 2k 4k", by_p_2k_4k },
	{ "p 4k 4k", by_p_4k_4k },
	{ "p 4k 8k", by_p_4k_8k },
	{ "4 streams", by_streams },
	{ "stream", gdri_dma_stream_copy },
	{ "reading", by_reading },
	{ "writing", by_writing },
#endif
};
#define CONFIGS (sizeof(configs) / sizeof(configs[0]))

/* Sizes and engines; each is opened, measured and closed by itself. */
struct setting {
	const char *name;
	struct gdri_dma_options options;
};
#define COPY .fill = by_routine, .empty = by_routine
static const struct setting settings[] = {
	{ "defaults, windows from 1 MiB", { .engine = -1, COPY, .pin_from = 1 << 20 } },
	{ "defaults, windows of 1 MiB", { .engine = -1, COPY, .pin_from = 1 << 20, .pin_window = 1 << 20 } },
	{ "defaults, windows of 4 MiB", { .engine = -1, COPY, .pin_from = 1 << 20, .pin_window = 4 << 20 } },
	{ "defaults, no windows", { .engine = -1, COPY, .pin_from = SIZE_MAX, .empty_large = by_routine } },
	{ "defaults, edges 16K", { .engine = -1, COPY, .read_edge = 16384, .write_edge = 16384 } },
	{ "COPY0, edges 16K", { .engine = 0, COPY, .read_edge = 16384, .write_edge = 16384 } },
	{ "COPY4, edges 16K", { .engine = 4, COPY, .read_edge = 16384, .write_edge = 16384 } },
	{ "COPY4, edges 16K, 128K x4", { .engine = 4, COPY, .read_edge = 16384, .write_edge = 16384, .chunk_bytes = 131072 } },
	{ "COPY4, edges 32K", { .engine = 4, COPY, .read_edge = 32768, .write_edge = 32768 } },
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void fail(const char *what, int rc)
{
	printf("%s: %d\n", what, rc);
	exit(1);
}

/* mode: 0 pageable read, 1 pageable write, 2 registered read, 3 registered write, 4 within */
static int copy(struct gdri_dma_target *target, unsigned mode, unsigned char *pageable,
		unsigned char *registered, size_t size)
{
	enum gdri_dma_route route;

	switch (mode) {
	case 0:
		return gdri_dma_from_device(target, 0, pageable, size);
	case 1:
		return gdri_dma_to_device(target, 0, pageable, size);
	case 2:
		return gdri_dma_from_device(target, 0, registered, size);
	case 3:
		return gdri_dma_to_device(target, 0, registered, size);
	default:
		return gdri_dma_between(target, LARGEST, target, 0, size, GDRI_DMA_ROUTE_AUTO,
					&route);
	}
}

static const char *const modes[] = { "pageable read", "pageable write", "registered read",
				     "registered write", "within the device" };
static const size_t sizes[] = { 64, 4096, 16384, 65536, 262144, 1048576, 2097152, 4194304, 8388608, 16777216 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
static double samples[CONFIGS][512];
static double result[CONFIGS][SIZES];

static void measure(struct gdri_dma_target *target, unsigned mode, unsigned rounds,
		    unsigned char *pageable, unsigned char *registered)
{
	const unsigned count = mode < 2 ? CONFIGS : 1;

	printf("\n%s, us\n%-12s", modes[mode], "bytes");
	for (unsigned s = 0; s < SIZES; s++)
		printf(" %9zu", sizes[s]);
	printf("\n");
	for (unsigned s = 0; s < SIZES; s++) {
		unsigned n = sizes[s] >= 1048576 ? rounds / 8 + 3 : rounds;

		for (unsigned round = 0; round < n + 2; round++)
			for (unsigned i = 0; i < count; i++) {
				double start;
				int rc;

				routine = configs[i].routine;
				start = now_us();
				rc = copy(target, mode, pageable, registered, sizes[s]);
				if (rc)
					fail(configs[i].name, rc);
				if (round >= 2)
					samples[i][round - 2] = now_us() - start;
			}
		for (unsigned i = 0; i < count; i++)
			result[i][s] = median(samples[i], n);
	}
	for (unsigned i = 0; i < count; i++) {
		printf("%-12s", mode < 2 ? configs[i].name : "");
		for (unsigned s = 0; s < SIZES; s++)
			printf(" %9.2f", result[i][s]);
		printf("\n");
	}
}

static void measure_memory(unsigned char *pageable, unsigned char *other)
{
	printf("\ncopies in memory alone, 64 KiB of source, GB/s to 1 MiB and to 16 MiB\n");
	for (unsigned i = 0; i < CONFIGS; i++) {
		double rate[2];

		for (unsigned large = 0; large < 2; large++) {
			const size_t size = large ? LARGEST : 1048576;
			double start = 0;

			for (unsigned round = 0; round < 5; round++) {
				if (round == 1)
					start = now_us();
				for (size_t at = 0; at < size; at += 65536)
					configs[i].routine(pageable + at, other, 65536);
			}
			rate[large] = (double)size * 4 / (now_us() - start) / 1e3;
		}
		printf("%-12s %7.2f %7.2f\n", configs[i].name, rate[0], rate[1]);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
	unsigned char *pageable, *registered, *check;
	struct gdri_rm_client *client;
	struct gdri_rm_failure failure;
	struct gdri_dma_port_rm port;
	struct gdri_rm_range range;
	struct gdri_dma_memory memory;
	struct gdri_cuda cuda;
	void *context;
	gdri_cu_ptr ptr;
	int device, rc;

	if (gdri_os_cuda_load(&cuda) || cuda.init(0) || cuda.device_get(&device, 0) ||
	    cuda.primary_ctx_retain(&context, device) || cuda.ctx_set_current(context) ||
	    cuda.mem_alloc(&ptr, 2 * LARGEST))
		fail("CUDA", 1);
	rc = gdri_rm_client_acquire(&client, &failure);
	if (rc)
		fail("client", rc);
	rc = gdri_rm_range_acquire(client, &cuda, ptr, 2 * LARGEST, &log_errors, &range);
	if (rc)
		fail("range", rc);
	gdri_dma_port_rm_init(&port, client, false, &log_errors);
	memory = gdri_dma_port_rm_memory(&range, range.offset, 2 * LARGEST);
	pageable = aligned_alloc(4096, LARGEST);
	registered = aligned_alloc(4096, LARGEST);
	check = malloc(LARGEST);
	memset(registered, 1, LARGEST);
	measure_memory(pageable, registered);
	for (unsigned i = 0; i < SETTINGS; i++) {
		struct gdri_dma *dma;
		struct gdri_dma_target *target;
		double start = now_us();

		rc = gdri_dma_create(&port.base, &settings[i].options, &dma);
		if (rc == 0)
			rc = gdri_dma_attach(dma, &memory, &target);
		if (rc)
			fail(settings[i].name, rc);
		printf("\n== %s: opened in %.0f us", settings[i].name, now_us() - start);
		start = now_us();
		rc = gdri_dma_register(dma, registered, LARGEST);
		printf(", register 16 MiB %.0f us (%d)\n", now_us() - start, rc);
		for (unsigned mode = 0; mode < 5; mode++)
			if (i < 4 || i == 6 || mode >= 2 || i > 6)
				measure(target, mode, rounds, pageable, registered);
		for (unsigned k = 0; k + 2 < CONFIGS; k++) {
			for (size_t b = 0; b < LARGEST; b++)
				pageable[b] = (unsigned char)(b * 2654435761u >> 13) ^ (unsigned char)k;
			memset(check, 0xee, LARGEST);
			routine = configs[k].routine;
			rc = gdri_dma_to_device(target, 0, pageable, LARGEST);
			if (rc == 0)
				rc = gdri_dma_from_device(target, 0, check, LARGEST);
			if (rc || memcmp(pageable, check, LARGEST))
				printf("%s: WRONG BYTES (%d)\n", configs[k].name, rc);
		}
		gdri_dma_unregister(dma, registered);
		gdri_dma_detach(target);
		rc = gdri_dma_destroy(dma);
		if (rc)
			printf("%s: destroy: %d\n", settings[i].name, rc);
	}
	printf("done\n");
	return 0;
}
