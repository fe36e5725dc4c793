/* SPDX-License-Identifier: MIT */
/*
 * Version 3: what one thread writes is seen by all that it does next, whichever
 * roads the two take.  Stores and loads through the mapping, copies of pageable and registered
 * memory, copies inside the device, by two handles of one allocation, over ranges that
 * overlap; an array in host memory says what must be there.
 */
#include <stdlib.h>
#include <string.h>

#include "api3/helper_buffer.h"

/* Small, so that nearly all ranges overlap. */
#define SPACE (48 * KIB)
#define SHIFT 4096	/* where the second handle begins */

struct litmus {
	gdr_t g;
	CUdeviceptr ptr;
	uint64_t whole, later;
	volatile unsigned char *va;
	unsigned char model[SPACE];
	unsigned char *pageable, *registered, *seen;
	uint64_t random;
	unsigned round;
};

static unsigned draw(struct litmus *litmus, size_t below)
{
	litmus->random = litmus->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)((litmus->random >> 33) % below);
}

static void begin(struct litmus *litmus)
{
	void *va;

	litmus->ptr = buffer_alloc(0, SPACE);
	litmus->g = buffer_session();
	REQUIRE_OK(gdr_pin_buffer(litmus->g, litmus->ptr, SPACE, GDR_PIN_BUFFER_UNALIGNED, 0,
				  &litmus->whole));
	REQUIRE_OK(gdr_pin_buffer(litmus->g, litmus->ptr + SHIFT, SPACE - SHIFT,
				  GDR_PIN_BUFFER_UNALIGNED, 0, &litmus->later));
	REQUIRE_OK(gdr_map(litmus->g, litmus->whole, &va, SPACE));
	litmus->va = va;
	litmus->pageable = aligned_alloc(4096, SPACE);
	litmus->registered = aligned_alloc(4096, SPACE);
	litmus->seen = aligned_alloc(4096, SPACE);
	REQUIRE(litmus->pageable && litmus->registered && litmus->seen);
	memset(litmus->registered, 0, SPACE);
	REQUIRE_OK(gdr_host_register(litmus->g, litmus->registered, SPACE));
	memset(litmus->model, 0, SPACE);
	buffer_set(litmus->ptr, litmus->model, SPACE);
	litmus->random = 20;
}

static void end(struct litmus *litmus)
{
	CHECK_OK(gdr_flush(litmus->g));
	buffer_get(litmus->seen, litmus->ptr, SPACE);
	CHECK(memcmp(litmus->seen, litmus->model, SPACE) == 0);
	CHECK_OK(gdr_close(litmus->g));
	free(litmus->pageable);
	free(litmus->registered);
	free(litmus->seen);
}

/* A handle by which [offset, offset + size) can be named, and the offset there. */
static uint64_t name(struct litmus *litmus, size_t *offset)
{
	if (*offset < SHIFT || draw(litmus, 2) == 0)
		return litmus->whole;
	*offset -= SHIFT;
	return litmus->later;
}

static void store_words(struct litmus *litmus, size_t offset)
{
	const size_t width = (size_t)1 << draw(litmus, 4);
	const uint64_t value = UINT64_C(0x0101010101010101) * (litmus->round & 0xff) +
			       litmus->round;

	offset &= ~(size_t)7;
	for (size_t at = offset; at < offset + 64 && at + width <= SPACE; at += width) {
		memcpy(litmus->model + at, &value, width);
		switch (width) {
		case 1:
			*(volatile uint8_t *)(litmus->va + at) = (uint8_t)value;
			break;
		case 2:
			*(volatile uint16_t *)(litmus->va + at) = (uint16_t)value;
			break;
		case 4:
			*(volatile uint32_t *)(litmus->va + at) = (uint32_t)value;
			break;
		default:
			*(volatile uint64_t *)(litmus->va + at) = value;
		}
	}
}

static void store_bytes(struct litmus *litmus, size_t offset, size_t size)
{
	buffer_fill(litmus->model + offset, size, litmus->round);
	memcpy((void *)(litmus->va + offset), litmus->model + offset, size);
}

static void load_bytes(struct litmus *litmus, size_t offset, size_t size)
{
	memcpy(litmus->seen, (const void *)(litmus->va + offset), size);
	CHECK(memcmp(litmus->seen, litmus->model + offset, size) == 0);
}

static void copy_in(struct litmus *litmus, unsigned char *host, size_t offset, size_t size)
{
	size_t at = offset;
	const uint64_t handle = name(litmus, &at);

	buffer_fill(host, size, litmus->round);
	memcpy(litmus->model + offset, host, size);
	CHECK_OK(gdr_copy_from_host(litmus->g, handle, at, host, size));
	/* The bytes have left: what happens to these is of no interest to the copy. */
	memset(host, 0xdd, size);
}

static void copy_out(struct litmus *litmus, unsigned char *host, size_t offset, size_t size)
{
	size_t at = offset;
	const uint64_t handle = name(litmus, &at);

	memset(host, 0xdd, size);
	CHECK_OK(gdr_copy_to_host(litmus->g, handle, at, host, size));
	CHECK(memcmp(host, litmus->model + offset, size) == 0);
}

static void copy_within(struct litmus *litmus, size_t offset, size_t size)
{
	const size_t target = draw(litmus, SPACE - size + 1);
	size_t from = offset, to = target;
	const uint64_t src = name(litmus, &from), dst = name(litmus, &to);

	memmove(litmus->model + target, litmus->model + offset, size);
	CHECK_OK(gdr_copy_to_device(litmus->g, src, dst, from, to, size));
}

static void step(struct litmus *litmus)
{
	static const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 9, 31, 64, 100, 511, 4096, 4097, 9000,
					16384, 40000 };
	const size_t size = sizes[draw(litmus, sizeof(sizes) / sizeof(sizes[0]))];
	size_t offset = draw(litmus, SPACE - size + 1);

	/* Half of them aligned, which is a road of its own for words. */
	if (draw(litmus, 2))
		offset &= ~(size_t)7;
	litmus->round++;
	switch (draw(litmus, 9)) {
	case 0:
		store_words(litmus, offset);
		break;
	case 1:
		store_bytes(litmus, offset, size);
		break;
	case 2:
		load_bytes(litmus, offset, size);
		break;
	case 3:
		copy_in(litmus, litmus->pageable, offset, size);
		break;
	case 4:
		copy_in(litmus, litmus->registered, offset, size);
		break;
	case 5:
		copy_out(litmus, litmus->pageable, offset, size);
		break;
	case 6:
		copy_out(litmus, litmus->registered, offset, size);
		break;
	case 7:
		copy_within(litmus, offset, size);
		break;
	default:
		CHECK_OK(gdr_flush(litmus->g));
	}
}

static void mixed(void)
{
	struct litmus *litmus = calloc(1, sizeof(*litmus));

	REQUIRE(litmus != NULL);
	begin(litmus);
	for (int i = 0; i < api_rounds(20000); i++)
		step(litmus);
	end(litmus);
	free(litmus);
}

/* A flag stored after a copy: who sees it through CUDA sees the copy as well. */
static void flag_after_data(void)
{
	struct litmus *litmus = calloc(1, sizeof(*litmus));

	REQUIRE(litmus != NULL);
	begin(litmus);
	for (int i = 1; i <= api_rounds(1000); i++) {
		const size_t size = draw(litmus, 30000) + 1;
		uint32_t flag = (uint32_t)i, back = 0;

		buffer_fill(litmus->pageable, size, flag);
		CHECK_OK(gdr_copy_from_host(litmus->g, litmus->later, 0, litmus->pageable, size));
		CHECK_OK(gdr_copy_from_host(litmus->g, litmus->whole, 64, &flag, sizeof(flag)));
		buffer_get(&back, litmus->ptr + 64, sizeof(back));
		CHECK_EQ(back, flag);
		buffer_get(litmus->seen, litmus->ptr + SHIFT, size);
		CHECK(memcmp(litmus->seen, litmus->pageable, size) == 0);
	}
	CHECK_OK(gdr_close(litmus->g));
	free(litmus->pageable);
	free(litmus->registered);
	free(litmus->seen);
	free(litmus);
}

static const struct api_case cases[] = {
	{ "mixed", mixed, NULL },
	{ "mixed_by_cpu", mixed, "GDRCOPY_DMA=0" },
	{ "mixed_by_engine", mixed, "GDRCOPY_DMA=min=0" },
	{ "mixed_from_100", mixed, "GDRCOPY_DMA=min=100" },
	{ "mixed_from_4096", mixed, "GDRCOPY_DMA=min=4K" },
	{ "mixed_of_small_rings", mixed, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=small" },
	{ "mixed_of_one_channel", mixed, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=busy:1" },
	{ "mixed_until_it_dies", mixed, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=die:500" },
	{ "mixed_until_it_hangs", mixed, "GDRCOPY_DMA=min=0 GDRCOPY_EMU=dma=hang:50" },
	{ "flag_after_data", flag_after_data, NULL },
	{ "flag_after_data_by_engine", flag_after_data, "GDRCOPY_DMA=min=0" },
};

API_MAIN(cases)
