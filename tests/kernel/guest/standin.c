/* SPDX-License-Identifier: MIT */
/* The bench itself: memory of the stand-in, before gdrdrv comes into play. */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

static void memory_is_zero_and_kept(void)
{
	struct buffer buffer = bench_alloc(4 << 20);
	volatile uint32_t *view = bench_view(&buffer);

	CHECK_EQ(view[0], 0);
	CHECK_EQ(view[buffer.size / 4 - 1], 0);
	for (uint64_t page = 0; page < buffer.size / GPU_PAGE; page++)
		view[page * GPU_PAGE / 4] = 0xabc00000u + (uint32_t)page;
	for (uint64_t page = 0; page < buffer.size / GPU_PAGE; page++)
		CHECK_EQ(view[page * GPU_PAGE / 4], 0xabc00000u + page);
	bench_close_view(view, &buffer);
	bench_free(&buffer);
	buffer = bench_alloc(4 << 20);
	view = bench_view(&buffer);
	CHECK_EQ(view[GPU_PAGE / 4], 0);
	bench_close_view(view, &buffer);
	bench_free(&buffer);
}

static void scattered_pages_are(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	struct buffer buffer;
	unsigned neighbours = 0;

	buffer = bench_alloc(2 << 20);
	for (uint64_t at = GPU_PAGE; at < buffer.size; at += GPU_PAGE)
		CHECK_EQ(bench_physical(&buffer, at),
			 bench_physical(&buffer, at - GPU_PAGE) + GPU_PAGE);
	bench_free(&buffer);
	settings.scattered = 1;
	bench_set(&settings);
	buffer = bench_alloc(2 << 20);
	for (uint64_t at = GPU_PAGE; at < buffer.size; at += GPU_PAGE)
		neighbours += bench_physical(&buffer, at) ==
			      bench_physical(&buffer, at - GPU_PAGE) + GPU_PAGE;
	CHECK_EQ(neighbours, 0);
	bench_free(&buffer);
	bench_start();
}

static void freed_view_faults(void)
{
	struct buffer buffer = bench_alloc(2 << 20);
	volatile uint32_t *view = bench_view(&buffer);

	CHECK_EQ(bench_touch(view, NULL), 0);
	bench_free(&buffer);
	CHECK(bench_touch(view, NULL) != 0);
	bench_close_view(view, &buffer);
}

static void counts_return(void)
{
	struct nvidia_emu_stats before = bench_stats();
	struct buffer buffer = bench_alloc(2 << 20);

	CHECK_EQ(bench_stats().used_pages, before.used_pages + 32);
	CHECK_EQ(bench_stats().bindings, before.bindings + 1);
	bench_free(&buffer);
	CHECK_EQ(bench_stats().used_pages, before.used_pages);
	CHECK_EQ(bench_stats().bindings, before.bindings);
	CHECK_EQ(bench_stats().objects, before.objects);
}

static void two_devices(void)
{
	struct buffer first = bench_alloc_on(0, 2 << 20), second = bench_alloc_on(1, 2 << 20);
	volatile uint32_t *a = bench_view(&first), *b = bench_view(&second);

	*a = 1;
	*b = 2;
	CHECK_EQ(*a, 1);
	CHECK_EQ(*b, 2);
	bench_close_view(a, &first);
	bench_close_view(b, &second);
	bench_free(&first);
	bench_free(&second);
}

/* The view must not reserve a memory type: that would hide gdrdrv's omissions. */
static void view_reserves_no_type(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	struct buffer buffer;
	volatile uint32_t *view;

#ifndef __x86_64__
	SKIP("only x86 reserves memory types");
#endif
	buffer = bench_alloc(2 << 20);
	view = bench_view(&buffer);
	CHECK_EQ(view[0], 0);
	CHECK_EQ(bench_probe(view).type, PTE_PROBE_UC_MINUS);
	CHECK_EQ(bench_probe(view).physical, bench_physical(&buffer, 0));
	bench_close_view(view, &buffer);
	settings.reserve_wc = 1;
	bench_set(&settings);
	view = bench_view(&buffer);
	CHECK_EQ(view[0], 0);
	CHECK_EQ(bench_probe(view).type, PTE_PROBE_WC);
	bench_close_view(view, &buffer);
	bench_free(&buffer);
	bench_start();
}

static const struct harness_case cases[] = {
	{ "memory_is_zero_and_kept", memory_is_zero_and_kept },
	{ "scattered_pages_are", scattered_pages_are },
	{ "freed_view_faults", freed_view_faults },
	{ "counts_return", counts_return },
	{ "two_devices", two_devices },
	{ "view_reserves_no_type", view_reserves_no_type },
};
HARNESS_MAIN(cases)
