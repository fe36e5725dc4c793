/* SPDX-License-Identifier: MIT */
/* Many pins and maps, one after the other and at once: nothing grows, little is needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "gpu.h"
#include "process.h"
#include "tests.h"

#define WARM_UP 100
#define CYCLES 10000
#define SESSIONS 100

/* malloc, and sanitizers even more, map memory of their own while a test runs. */
#define MAPS_SLACK 64

static void cycle(gdr_t g, const struct buffer *buffer, unsigned number)
{
	uint32_t word = number;
	void *va = NULL;
	gdr_mh_t mh;

	mh = buffer_pin(g, buffer);
	REQUIRE_OK(gdr_map(g, mh, &va, buffer->size));
	REQUIRE_OK(gdr_copy_to_mapping(mh, va, &word, sizeof(word)));
	REQUIRE_OK(gdr_unmap(g, mh, va, buffer->size));
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
}

void test_plus_cycles(enum memory memory)
{
	struct process_state before;
	struct buffer buffer;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	for (unsigned i = 0; i < WARM_UP; i++)
		cycle(g, &buffer, i);
	process_remember(&before);
	for (unsigned i = 0; i < CYCLES; i++)
		cycle(g, &buffer, i);
	process_require_same(&before, MAPS_SLACK, "after 10,000 pins and maps");
	REQUIRE_EQ(gpu_word(buffer.addr), CYCLES - 1);
	REQUIRE_OK(gdr_close(g));

	for (unsigned i = 0; i < SESSIONS; i++) {
		g = open_session();
		cycle(g, &buffer, i);
		REQUIRE_OK(gdr_close(g));
	}
	process_require_same(&before, MAPS_SLACK, "after 100 sessions");
	buffer_free(&buffer);
}

#define DESCRIPTORS 256
#define MAPPINGS 1000

/* More mappings at once than the process may have descriptors. */
void test_plus_few_descriptors(enum memory memory)
{
	struct rlimit limit = { .rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS };
	static struct {
		gdr_mh_t mh;
		volatile uint32_t *va;
	} maps[MAPPINGS];
	struct buffer buffer;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		FAIL("setrlimit: %s", strerror(errno));
	for (unsigned i = 0; i < MAPPINGS; i++) {
		void *va = NULL;

		maps[i].mh = buffer_pin(g, &buffer);
		REQUIRE_OK(gdr_map(g, maps[i].mh, &va, GPU_PAGE_SIZE));
		maps[i].va = va;
		maps[i].va[i] = ~i;
	}
	/* All of them show the same memory. */
	for (unsigned i = 0; i < MAPPINGS; i++)
		REQUIRE_EQ(maps[MAPPINGS - 1 - i].va[i], (uint32_t)~i);
	for (unsigned i = 0; i < MAPPINGS; i += 2) {
		REQUIRE_OK(gdr_unmap(g, maps[i].mh, (void *)(uintptr_t)maps[i].va, GPU_PAGE_SIZE));
		REQUIRE_OK(gdr_unpin_buffer(g, maps[i].mh));
	}
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}
