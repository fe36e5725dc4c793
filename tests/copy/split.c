/* SPDX-License-Identifier: MIT */
/* The plan of a copy: its pieces cover the range and are aligned to their own size. */
#include "copy/cpu/split.h"

#include "harness.h"

static bool is_power_of_two(size_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

/* Walks the pieces as the copy does and checks where each of them lands. */
static bool pieces_are_right(uintptr_t start, size_t size, size_t block)
{
	struct gdri_copy_pieces pieces = gdri_copy_split(start, size, block);
	uintptr_t at = start;

	if (!is_power_of_two(pieces.block) || pieces.block > block)
		return false;
	if (pieces.head >= pieces.block || pieces.tail >= pieces.block)
		return false;
	for (size_t piece = 1; piece < pieces.block; piece *= 2) {
		if (!(pieces.head & piece))
			continue;
		if (at % piece != 0)
			return false;
		at += piece;
	}
	if (pieces.body % pieces.block != 0 || (pieces.body > 0 && at % pieces.block != 0))
		return false;
	if (pieces.block < block && pieces.body > pieces.block)
		return false;
	at += pieces.body;
	for (size_t piece = pieces.block / 2; piece > 0; piece /= 2) {
		if (!(pieces.tail & piece))
			continue;
		if (at % piece != 0)
			return false;
		at += piece;
	}
	return at == start + size;
}

static void check_around(uintptr_t base)
{
	for (size_t block = 8; block <= 64; block *= 2)
		for (size_t offset = 0; offset < 128; offset++)
			for (size_t size = 0; size <= 300; size++)
				if (!CHECK(pieces_are_right(base + offset, size, block)))
					harness_abandon();
}

static void small(void)
{
	check_around(0);
}

/* Where a range crosses a boundary of many bits, up to the top of the address space. */
static void far_up(void)
{
	check_around(((uintptr_t)1 << 32) - 200);
	check_around(((uintptr_t)1 << 47) - 200);
	check_around(((uintptr_t)1 << 63) - 200);
	check_around(~(uintptr_t)0 - 500);
}

static void aligned_words_are_whole(void)
{
	for (size_t word = 1; word <= 8; word *= 2) {
		for (uintptr_t start = 0; start < 256; start += word) {
			struct gdri_copy_pieces pieces = gdri_copy_split(start, word, 64);

			CHECK(pieces.head == word || pieces.body == word || pieces.tail == word);
		}
	}
}

static void large(void)
{
	for (size_t size = (size_t)1 << 40; size > 512; size /= 2) {
		CHECK(pieces_are_right(4096 + 63, size, 64));
		CHECK(pieces_are_right(4096 + 1, size - 1, 64));
		CHECK(pieces_are_right(4096, size + 1, 64));
		CHECK_EQ(gdri_copy_split(4096, size, 64).body, size);
	}
}

static const struct harness_case cases[] = {
	{ "small", small },
	{ "far_up", far_up },
	{ "aligned_words_are_whole", aligned_words_are_whole },
	{ "large", large },
};

HARNESS_MAIN(cases)
