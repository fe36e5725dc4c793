/* SPDX-License-Identifier: MIT */
/* invalidation_* tests of GDRCopy 2.6 within one process: what free and close leave behind. */
#include <signal.h>

#include "fault.h"
#include "gpu.h"
#include "machine.h"
#include "tests.h"

#define OLD_VALUE 0x11223344u
#define OTHER_VALUE 0x55667788u

void test_invalidation_access_after_gdr_close(enum memory memory)
{
	struct mapped m;
	uint32_t value = 0;
	int signal;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	m.va[0] = OLD_VALUE;
	REQUIRE_EQ(gpu_word(m.buffer.addr), OLD_VALUE);
	REQUIRE_OK(gdr_close(m.g));
	signal = fault_read(m.va, &value);
	DEBUG("read after close: signal %d, value 0x%x", signal, value);
	if (signal == 0)
		REQUIRE(value != OLD_VALUE);
	buffer_free(&m.buffer);
}

void test_invalidation_access_after_free(enum memory memory)
{
	struct mapped m;
	uint32_t value = 0;
	int signal;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	m.va[0] = OLD_VALUE;
	REQUIRE_EQ(gpu_word(m.buffer.addr), OLD_VALUE);
	buffer_free(&m.buffer);

	signal = fault_read(m.va, &value);
	DEBUG("read after free: signal %d, value 0x%x", signal, value);
	if (machine.persistent) {
		REQUIRE_EQ(signal, 0);
		REQUIRE_EQ(value, OLD_VALUE);
	} else if (signal == 0) {
		REQUIRE(value != OLD_VALUE);
	} else {
		REQUIRE_EQ(signal, SIGBUS);
	}
	mapped_unmap(&m);
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	REQUIRE_OK(gdr_close(m.g));
}

void test_invalidation_two_mappings(enum memory memory)
{
	struct mapped first, second;
	gdr_t g;

	gpu_start();
	g = open_session();
	mapped_open(g, memory, GPU_PAGE_SIZE, &first);
	mapped_open(g, memory, GPU_PAGE_SIZE, &second);
	first.va[0] = OLD_VALUE;
	second.va[0] = OTHER_VALUE;
	REQUIRE_EQ(gpu_word(first.buffer.addr), OLD_VALUE);
	REQUIRE_EQ(gpu_word(second.buffer.addr), OTHER_VALUE);

	buffer_free(&first.buffer);
	REQUIRE_EQ(*(volatile uint32_t *)second.va, OTHER_VALUE);
	second.va[0] = OLD_VALUE + 1;
	REQUIRE_EQ(gpu_word(second.buffer.addr), OLD_VALUE + 1);
	buffer_free(&second.buffer);

	mapped_unmap(&first);
	mapped_unmap(&second);
	REQUIRE_OK(gdr_unpin_buffer(g, first.mh));
	REQUIRE_OK(gdr_unpin_buffer(g, second.mh));
	REQUIRE_OK(gdr_close(g));
}
