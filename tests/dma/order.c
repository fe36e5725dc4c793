/* SPDX-License-Identifier: MIT */
/*
 * Program order across roads: one thread stores through a mapping, loads
 * through it, and copies by DMA, over ranges that overlap, and always finds what
 * it did last.  The stores are non-temporal where the CPU has such, so only a
 * fence of the submission brings them out.
 */
#include <string.h>

#include "dma/helper_dma.h"

#define SIZE ((size_t)96 << 10)

struct litmus {
	struct dma_rig rig;
	struct dma_memory memory;
	struct gdri_dma_target *other;	/* the same memory, another pin */
	uint8_t *shadow;	/* what the memory must hold */
	uint8_t *host[2];	/* registered, pageable */
	uint32_t random;
};

static void store_weakly(uint8_t *to, const uint8_t *from, size_t size)
{
#if defined(__x86_64__)
	while (size >= 8 && (uintptr_t)to % 8 == 0) {
		long long word;

		memcpy(&word, from, 8);
		__builtin_ia32_movnti64((long long *)(void *)to, word);
		to += 8;
		from += 8;
		size -= 8;
	}
#endif
	memcpy(to, from, size);
}

static void pick_range(struct litmus *litmus, size_t *offset, size_t *size)
{
	const unsigned bits = dma_random(&litmus->random) % 17;

	*size = 1 + dma_random(&litmus->random) % ((size_t)1 << bits);
	/* Most of them around the same place. */
	*offset = SIZE / 3 + dma_random(&litmus->random) % 512;
	if (dma_random(&litmus->random) % 4 == 0)
		*offset = dma_random(&litmus->random) % SIZE;
	if (*offset + *size > SIZE)
		*size = SIZE - *offset;
}

static struct gdri_dma_target *pick_target(struct litmus *litmus)
{
	return dma_random(&litmus->random) % 2 ? litmus->memory.target : litmus->other;
}

static uint8_t *pick_host(struct litmus *litmus)
{
	return litmus->host[dma_random(&litmus->random) % 2] + dma_random(&litmus->random) % 64;
}

static void write_somehow(struct litmus *litmus, bool by_cpu)
{
	uint8_t *host = pick_host(litmus);
	size_t offset, size;

	pick_range(litmus, &offset, &size);
	dma_fill(host, size, litmus->random);
	memcpy(litmus->shadow + offset, host, size);
	if (by_cpu)
		store_weakly(litmus->memory.cpu + offset, host, size);
	else
		CHECK_EQ(gdri_dma_to_device(pick_target(litmus), offset, host, size), 0);
}

static void read_somehow(struct litmus *litmus, bool by_cpu)
{
	uint8_t *host = pick_host(litmus);
	size_t offset, size;

	pick_range(litmus, &offset, &size);
	memset(host, 0x5a, size);
	if (by_cpu)
		memcpy(host, litmus->memory.cpu + offset, size);
	else
		CHECK_EQ(gdri_dma_from_device(pick_target(litmus), offset, host, size), 0);
	CHECK(memcmp(host, litmus->shadow + offset, size) == 0);
}

static void move_somehow(struct litmus *litmus)
{
	enum gdri_dma_route route;
	size_t from, to, size;

	pick_range(litmus, &from, &size);
	to = dma_random(&litmus->random) % (SIZE - size + 1);
	memmove(litmus->shadow + to, litmus->shadow + from, size);
	CHECK_EQ(gdri_dma_between(pick_target(litmus), to, pick_target(litmus), from, size,
				  GDRI_DMA_ROUTE_AUTO, &route), 0);
}

static void step(struct litmus *litmus)
{
	switch (dma_random(&litmus->random) % 5) {
	case 0:
		write_somehow(litmus, true);
		break;
	case 1:
		write_somehow(litmus, false);
		break;
	case 2:
		read_somehow(litmus, true);
		break;
	case 3:
		read_somehow(litmus, false);
		break;
	default:
		move_somehow(litmus);
	}
}

static void run_litmus(bool read_before_submit)
{
	struct gdri_dma_options options = dma_options();
	struct gdri_dma_memory described;
	struct litmus litmus = { .random = 4711 };

	options.read_before_submit = read_before_submit;
	dma_open(&litmus.rig, &options);
	dma_attach(&litmus.rig, 0, SIZE, &litmus.memory);
	described = dma_describe(&litmus.memory);
	REQUIRE_EQ(gdri_dma_attach(litmus.rig.dma, &described, &litmus.other), 0);
	litmus.shadow = dma_pages(SIZE);
	litmus.host[0] = dma_pages(2 * SIZE);
	litmus.host[1] = dma_pages(2 * SIZE);
	REQUIRE_EQ(gdri_dma_register(litmus.rig.dma, litmus.host[0], 2 * SIZE), 0);
	memset(litmus.memory.cpu, 0, SIZE);
	for (unsigned turn = 0; turn < dma_turns(20000); turn++)
		step(&litmus);
	CHECK(memcmp(litmus.memory.cpu, litmus.shadow, SIZE) == 0);
	gdri_dma_detach(litmus.other);
	dma_free(&litmus.rig, &litmus.memory);
	dma_close(&litmus.rig);
}

static void litmus_body(void)
{
	run_litmus(false);
}

static void read_first_body(void)
{
	run_litmus(true);
}

static void one_thread(void)
{
	dma_run_with("", litmus_body);
}

static void doorbell_elsewhere(void)
{
	dma_run_with("dma=small", read_first_body);
}

static const struct harness_case cases[] = {
	{ "one_thread", one_thread },
	{ "doorbell_elsewhere", doorbell_elsewhere },
};

HARNESS_MAIN(cases)
