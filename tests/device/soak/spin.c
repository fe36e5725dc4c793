/* SPDX-License-Identifier: MIT */
/*
 * Copies beside a kernel that spins on a word of the same memory until the CPU
 * stores to it through the window.  None may wait for the kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak/soak.h"

#define LIMIT 1.0		/* seconds for one copy */
#define PATIENCE 10.0		/* for the kernel's start and end */
#define CUDA_NOT_READY 600	/* CUDA_ERROR_NOT_READY */
#define SKIPPED 77

/* The memory: sources, destinations, and the two words, on a line each. */
#define AREA MIB(2)
#define FLAG_AT (2 * AREA)
#define STATE_AT (2 * AREA + 64)

/* For PTX ISA 6.0 and sm_50, as every GPU since 2014 takes it.  state: 1 spins, 2 was let go. */
static const char kernel_ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry soak_spin(.param .u64 p_flag, .param .u64 p_state)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %seen;\n"
	"	.reg .u64 %flag, %state;\n"
	"	ld.param.u64 %flag, [p_flag];\n"
	"	ld.param.u64 %state, [p_state];\n"
	"	cvta.to.global.u64 %flag, %flag;\n"
	"	cvta.to.global.u64 %state, %state;\n"
	"	st.volatile.global.u32 [%state], 1;\n"
	"	membar.sys;\n"
	"SPIN:\n"
	"	ld.volatile.global.u32 %seen, [%flag];\n"
	"	setp.eq.u32 %p, %seen, 0;\n"
	"	@%p bra SPIN;\n"
	"	st.volatile.global.u32 [%state], 2;\n"
	"	ret;\n"
	"}\n";

enum kind { WRITE, WRITE_PAGEABLE, READ, READ_PAGEABLE, WITHIN, KINDS };
static const char *const kind_names[KINDS] = { "to, registered", "to, pageable",
					       "from, registered", "from, pageable", "within" };
static const size_t sizes[] = { 64, KIB(4), KIB(64), MIB(1) };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct times {
	double median, p99, max;
};

struct spin {
	struct machine *machine;
	struct memory memory;
	struct gdri_dma *dma;
	struct gdri_dma_target *target;
	uint8_t *noise;		/* registered; the first area of the memory holds it as well */
	uint8_t *twin;		/* the same, pageable */
	uint8_t *host;		/* registered */
	uint8_t *loose;
	double *samples;
	unsigned count;
	struct times idle[KINDS][SIZES], beside[KINDS][SIZES];

	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
		      void *stream, void **params, void **extra);
	int (*query)(void *stream);
	void *function;
	void *stream;
};

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* from: where in the noise the copy's content is. */
static int copy_once(struct spin *spin, enum kind kind, size_t from, size_t size)
{
	enum gdri_dma_route route;

	switch (kind) {
	case WRITE:
		return gdri_dma_to_device(spin->target, AREA, spin->noise + from, size);
	case WRITE_PAGEABLE:
		return gdri_dma_to_device(spin->target, AREA, spin->twin + from, size);
	case READ:
		return gdri_dma_from_device(spin->target, from, spin->host, size);
	case READ_PAGEABLE:
		return gdri_dma_from_device(spin->target, from, spin->loose, size);
	default:
		return gdri_dma_between(spin->target, AREA, spin->target, from, size,
					GDRI_DMA_ROUTE_AUTO, &route);
	}
}

/* What the last of some copies brought. */
static bool arrived(struct spin *spin, enum kind kind, size_t from, size_t size)
{
	const uint8_t *found = spin->loose;

	if (kind == READ)
		found = spin->host;
	else if (kind != READ_PAGEABLE)
		spin->memory.load(spin->loose, spin->memory.window + AREA, size);
	return memcmp(found, spin->noise + from, size) == 0;
}

static bool time_copies(struct spin *spin, enum kind kind, size_t size, struct times *times)
{
	size_t from = 0;

	for (unsigned i = 0; i < spin->count; i++) {
		double start;
		int rc;

		from = i % 16 * KIB(64);
		start = now();
		rc = copy_once(spin, kind, from, size);
		spin->samples[i] = now() - start;
		if (rc != 0 || spin->samples[i] > LIMIT) {
			printf("%s, %zu bytes: result %d after %.3f s\n", kind_names[kind], size,
			       rc, spin->samples[i]);
			return false;
		}
	}
	if (!arrived(spin, kind, from, size)) {
		printf("%s, %zu bytes: wrong bytes\n", kind_names[kind], size);
		return false;
	}
	qsort(spin->samples, spin->count, sizeof(double), compare_doubles);
	*times = (struct times){
		.median = spin->samples[spin->count / 2] * 1e6,
		.p99 = spin->samples[(uint64_t)spin->count * 99 / 100] * 1e6,
		.max = spin->samples[spin->count - 1] * 1e6,
	};
	return true;
}

static bool time_all(struct spin *spin, struct times times[KINDS][SIZES])
{
	bool ok = true;

	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned s = 0; ok && s < SIZES; s++)
			ok = time_copies(spin, (enum kind)kind, sizes[s], &times[kind][s]);
	return ok;
}

static void open_kernel(struct spin *spin)
{
	const struct machine *machine = spin->machine;
	int (*load)(void **, const void *), (*find)(void **, void *, const char *);
	int (*stream_create)(void **, unsigned);
	void *module;

	*(void **)&load = machine_find(machine, "cuModuleLoadData");
	*(void **)&find = machine_find(machine, "cuModuleGetFunction");
	*(void **)&stream_create = machine_find(machine, "cuStreamCreate");
	*(void **)&spin->launch = machine_find(machine, "cuLaunchKernel");
	*(void **)&spin->query = machine_find(machine, "cuStreamQuery");
	must("cuModuleLoadData", load(&module, kernel_ptx));
	must("cuModuleGetFunction", find(&spin->function, module, "soak_spin"));
	must("cuStreamCreate", stream_create(&spin->stream, 1));
}

static void open_spin(struct machine *machine, struct spin *spin)
{
	const struct gdri_dma_options options = { .engine = -1 };
	uint64_t random = 4711;

	memory_open(machine, 2 * AREA + KIB(4), &spin->memory);
	must("engine", gdri_dma_create(machine->port, &options, &spin->dma));
	must("attach", gdri_dma_attach(spin->dma, &spin->memory.described, &spin->target));
	spin->noise = must_alloc(AREA);
	spin->twin = must_alloc(AREA);
	spin->host = must_alloc(AREA);
	spin->loose = must_alloc(AREA);
	random_fill(&random, spin->noise, AREA);
	memcpy(spin->twin, spin->noise, AREA);
	must("register", gdri_dma_register(spin->dma, spin->noise, AREA));
	must("register", gdri_dma_register(spin->dma, spin->host, AREA));
	spin->memory.store(spin->memory.window, spin->noise, AREA);
}

static uint32_t word_at(const struct spin *spin, size_t at)
{
	return *(volatile uint32_t *)(spin->memory.window + at);
}

static void store_word(const struct spin *spin, size_t at, uint32_t value)
{
	spin->memory.store(spin->memory.window + at, &value, sizeof(value));
}

static bool wait_for_state(const struct spin *spin, uint32_t state)
{
	const double end = now() + PATIENCE;

	while (word_at(spin, STATE_AT) != state)
		if (now() > end)
			return false;
	return true;
}

static bool end_kernel(struct spin *spin)
{
	const double end = now() + PATIENCE;
	int result;

	store_word(spin, FLAG_AT, 1);
	do {
		result = spin->query(spin->stream);
		usleep(1000);
	} while (result == CUDA_NOT_READY && now() < end);
	printf("the kernel ended with %d, state %u\n", result, word_at(spin, STATE_AT));
	return result == 0 && word_at(spin, STATE_AT) == 2;
}

/* Whatever goes wrong, the kernel ends, or the process could not. */
static bool copy_beside_kernel(struct spin *spin)
{
	gdri_cu_ptr flag = spin->memory.ptr + FLAG_AT, state = spin->memory.ptr + STATE_AT;
	void *params[] = { &flag, &state };
	bool ok;

	store_word(spin, FLAG_AT, 0);
	store_word(spin, STATE_AT, 0);
	(void)word_at(spin, STATE_AT);
	must("cuLaunchKernel", spin->launch(spin->function, 1, 1, 1, 1, 1, 1, 0, spin->stream,
					    params, NULL));
	ok = wait_for_state(spin, 1);
	if (!ok)
		printf("the kernel did not start\n");
	ok = ok && time_all(spin, spin->beside);
	if (ok && spin->query(spin->stream) != CUDA_NOT_READY) {
		printf("the kernel did not spin all the time\n");
		ok = false;
	}
	return end_kernel(spin) && ok;
}

static void print_times(const struct spin *spin)
{
	printf("us, %u copies each        %24s %30s\n", spin->count, "idle", "beside the kernel");
	printf("%-18s %8s %9s %9s %9s %9s %9s %9s\n", "", "bytes", "median", "p99", "max", "median",
	       "p99", "max");
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned s = 0; s < SIZES; s++) {
			const struct times *a = &spin->idle[kind][s], *b = &spin->beside[kind][s];

			printf("%-18s %8zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n",
			       kind_names[kind], sizes[s], a->median, a->p99, a->max, b->median,
			       b->p99, b->max);
		}
}

int soak_spin(struct machine *machine, const struct options *options)
{
	static struct spin spin;
	bool ok;

	if (options->emulated) {
		printf("skip: emulated GPUs run no kernels but the tools'\n");
		return SKIPPED;
	}
	spin.machine = machine;
	spin.count = options->rounds ? (unsigned)options->rounds : 10000;
	spin.samples = calloc(spin.count, sizeof(double));
	must("memory", !spin.samples);
	open_kernel(&spin);
	open_spin(machine, &spin);
	ok = time_all(&spin, spin.idle) && copy_beside_kernel(&spin);
	if (ok)
		print_times(&spin);
	gdri_dma_detach(spin.target);
	must("destroy", gdri_dma_destroy(spin.dma));
	memory_close(machine, &spin.memory);
	printf("%s\n", ok ? "no copy waited for the kernel" : "FAILED");
	return !ok;
}
