/* SPDX-License-Identifier: MIT */
/* invalidation_fork_* tests of GDRCopy 2.6, and the leakage test: what two processes may share. */
#include <stdio.h>
#include <unistd.h>

#include "fault.h"
#include "gpu.h"
#include "layout.h"
#include "machine.h"
#include "peer.h"
#include "tests.h"

#define PARENT_VALUE 0x0a0b0c0du
#define CHILD_VALUE 0x1d2d3d4du
#define REFCOUNT_FILE "/proc/driver/gdrdrv/nv_get_pages_refcount"

static void open_with_value(enum memory memory, uint32_t value, struct mapped *m)
{
	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, m);
	for (size_t i = 0; i < GPU_PAGE_SIZE / sizeof(value); i++)
		m->va[i] = value;
	REQUIRE_EQ(gpu_word(m->buffer.addr), value);
}

/* Maps before the parent frees, and again after it, when pages may be reused. */
static void write_beside_parent(struct peer *parent, void *arg)
{
	enum memory memory = *(enum memory *)arg;
	struct mapped before, after;

	open_with_value(memory, CHILD_VALUE, &before);
	peer_signal(parent);
	peer_wait(parent);
	mapped_open(before.g, memory, GPU_PAGE_SIZE, &after);
	before.va[0] = CHILD_VALUE;
	for (size_t i = 0; i < GPU_PAGE_SIZE / sizeof(uint32_t); i++)
		after.va[i] = CHILD_VALUE;
	REQUIRE_EQ(gpu_word(after.buffer.addr), CHILD_VALUE);
	peer_signal(parent);
	peer_wait(parent);
	mapped_close(&after);
	mapped_close(&before);
	REQUIRE_OK(gdr_close(before.g));
}

void test_invalidation_fork_access_after_free(enum memory memory)
{
	struct peer child;
	struct mapped m;
	uint32_t value = 0;
	int signal;

	peer_start(&child, write_beside_parent, &memory);
	open_with_value(memory, PARENT_VALUE, &m);
	peer_wait(&child);
	buffer_free(&m.buffer);
	peer_signal(&child);
	peer_wait(&child);
	signal = fault_read(m.va, &value);
	DEBUG("read after free: signal %d, value 0x%x", signal, value);
	if (signal == 0)
		REQUIRE(value != CHILD_VALUE);
	peer_signal(&child);
	peer_finish(&child);
	mapped_unmap(&m);
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	REQUIRE_OK(gdr_close(m.g));
}

static void touch_parents_mapping(struct peer *parent, void *arg)
{
	const struct mapped *m = arg;
	uint32_t value;

	(void)parent;
	REQUIRE(fault_read(m->va, &value) != 0);
	REQUIRE(fault_write(m->va, CHILD_VALUE) != 0);
}

void test_invalidation_fork_after_gdr_map(enum memory memory)
{
	struct peer child;
	struct mapped m;

	open_with_value(memory, PARENT_VALUE, &m);
	peer_start(&child, touch_parents_mapping, &m);
	peer_finish(&child);
	REQUIRE_EQ(*(volatile uint32_t *)m.va, PARENT_VALUE);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}

static void map_parents_pin(struct peer *parent, void *arg)
{
	const struct mapped *m = arg;
	void *va = NULL;

	(void)parent;
	REQUIRE(gdr_map(m->g, m->mh, &va, m->buffer.size) != 0);
}

void test_invalidation_fork_child_gdr_map_parent(enum memory memory)
{
	struct peer child;
	struct mapped m;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &m.buffer);
	m.g = open_session();
	m.mh = buffer_pin(m.g, &m.buffer);
	peer_start(&child, map_parents_pin, &m);
	peer_finish(&child);
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	REQUIRE_OK(gdr_close(m.g));
	buffer_free(&m.buffer);
}

static void map_and_free(struct peer *parent, void *arg)
{
	struct mapped m;

	open_with_value(*(enum memory *)arg, CHILD_VALUE, &m);
	peer_wait(parent);
	buffer_free(&m.buffer);
	peer_signal(parent);
	peer_wait(parent);
	mapped_unmap(&m);
	REQUIRE_OK(gdr_unpin_buffer(m.g, m.mh));
	REQUIRE_OK(gdr_close(m.g));
}

void test_invalidation_fork_map_and_free(enum memory memory)
{
	struct peer child;
	struct mapped m;

	peer_start(&child, map_and_free, &memory);
	open_with_value(memory, PARENT_VALUE, &m);
	peer_signal(&child);
	peer_wait(&child);
	REQUIRE_EQ(*(volatile uint32_t *)m.va, PARENT_VALUE);
	m.va[1] = PARENT_VALUE + 1;
	REQUIRE_EQ(gpu_word(m.buffer.addr + sizeof(uint32_t)), PARENT_VALUE + 1);
	peer_signal(&child);
	peer_finish(&child);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}

struct offer {
	uint64_t addr;
	struct cuda_p2p_tokens tokens;
};

static void pin_parents_address(struct peer *parent, void *arg)
{
	gdr_mh_t mh = { .h = 0 };
	struct offer offer;
	gdr_t g;

	(void)arg;
	peer_receive(parent, &offer, sizeof(offer));
	g = open_session();
	REQUIRE(gdr_pin_buffer(g, offer.addr, GPU_PAGE_SIZE, offer.tokens.token,
			       offer.tokens.va_space, &mh) != 0);
	REQUIRE(gdr_pin_buffer(g, offer.addr, GPU_PAGE_SIZE, 0, 0, &mh) != 0);
	REQUIRE_OK(gdr_close(g));
}

void test_invalidation_fork_child_gdr_pin_parent_with_tokens(enum memory memory)
{
	struct offer offer = { .addr = 0 };
	struct buffer buffer;
	struct peer child;

	peer_start(&child, pin_parents_address, NULL);
	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	offer.addr = buffer.addr;
	/* Newer drivers hand out none; the child then tries with zeros alone. */
	CU_TRY(cuPointerGetAttribute, &offer.tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, buffer.addr);
	peer_send(&child, &offer, sizeof(offer));
	peer_finish(&child);
	buffer_free(&buffer);
}

/* Pins alive in the whole system, or -1 where the module does not count. */
static int pins_alive(void)
{
	FILE *file = fopen(REFCOUNT_FILE, "re");
	int count = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &count) != 1)
		count = -1;
	fclose(file);
	return count;
}

static void close_inherited(struct peer *parent, void *arg)
{
	gdr_t g = *(gdr_t *)arg;

	peer_wait(parent);
	gdr_close(g);
}

void test_leakage_pin_pages_fork(enum memory memory)
{
	struct buffer buffer;
	struct peer child;
	int count = pins_alive();
	gdr_t g;

	if (count < 0)
		WAIVE("%s cannot be read (gdrdrv with dbg_enabled=1 has it)", REFCOUNT_FILE);
	if (count > 0)
		WAIVE("%s counts %d pins of other programs", REFCOUNT_FILE, count);
	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	buffer_pin(g, &buffer);
	REQUIRE_EQ(pins_alive(), 1);
	peer_start(&child, close_inherited, &g);
	close(layout_fd(g));
	peer_signal(&child);
	peer_finish(&child);
	REQUIRE_EQ(pins_alive(), 0);
	buffer_free(&buffer);
}
