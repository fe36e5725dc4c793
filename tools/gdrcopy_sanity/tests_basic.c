/* SPDX-License-Identifier: MIT */
/* The basic_* tests of GDRCopy 2.6: pin, map and their opposites return what they must. */
#include <pthread.h>

#include "gpu.h"
#include "machine.h"
#include "tests.h"

#define BASIC_SIZE ((size_t)320 << 10)
#define THREAD_SIZE ((size_t)1 << 20)

static void pin_and_unpin(enum memory memory, size_t size, uint32_t flags, bool v2)
{
	gdr_mh_t mh = { .h = 0 };
	struct buffer buffer;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, size, &buffer);
	g = open_session();
	if (v2)
		REQUIRE_OK(gdr_pin_buffer_v2(g, buffer.addr, size, flags, &mh));
	else
		REQUIRE_OK(gdr_pin_buffer(g, buffer.addr, size, 0, 0, &mh));
	REQUIRE(mh.h != 0);
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

void test_basic(enum memory memory)
{
	pin_and_unpin(memory, BASIC_SIZE, 0, false);
}

void test_basic_v2(enum memory memory)
{
	pin_and_unpin(memory, BASIC_SIZE, GDR_PIN_FLAG_DEFAULT, true);
}

void test_basic_v2_forcepci(enum memory memory)
{
	pin_and_unpin(memory, BASIC_SIZE, GDR_PIN_FLAG_FORCE_PCIE, true);
}

void test_basic_with_tokens(enum memory memory)
{
	struct cuda_p2p_tokens tokens = { .token = 0, .va_space = 0 };
	gdr_mh_t mh = { .h = 0 };
	struct buffer buffer;
	CUresult result;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, BASIC_SIZE, &buffer);
	result = CU_TRY(cuPointerGetAttribute, &tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS,
			buffer.addr);
	if (result != CUDA_SUCCESS)
		WAIVE("this CUDA driver hands out no P2P tokens (%s)",
		      cuda_driver_describe(result));
	g = open_session();
	REQUIRE_OK(gdr_pin_buffer(g, buffer.addr, BASIC_SIZE, tokens.token, tokens.va_space, &mh));
	REQUIRE(mh.h != 0);
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

/* A pin anywhere succeeds, and only its map tells that the address is odd. */
static void map_unaligned(gdr_t g, uint64_t addr, size_t size)
{
	gdr_mh_t mh = { .h = 0 };
	void *va = NULL;

	REQUIRE(addr & GPU_PAGE_OFFSET);
	REQUIRE_OK(gdr_pin_buffer(g, addr, size, 0, 0, &mh));
	REQUIRE(gdr_map(g, mh, &va, size) != 0);
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
}

void test_basic_unaligned_mapping(enum memory memory)
{
	uint64_t inside, next;
	struct buffer neighbour;
	CUdeviceptr base = 0;
	gdr_mh_t mh = { .h = 0 }, other = { .h = 0 };
	void *va = NULL, *other_va = NULL;
	gdr_t g;

	(void)memory;
	gpu_start();
	GPU(cuMemAlloc, &base, 2 * GPU_PAGE_SIZE);
	buffer_alloc(MEMORY_CUMEMALLOC, sizeof(uint32_t), &neighbour);
	g = open_session();
	inside = base & GPU_PAGE_OFFSET ? base : base + sizeof(uint32_t);
	next = (inside + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
	map_unaligned(g, inside, (size_t)(next - inside));

	REQUIRE_OK(gdr_pin_buffer(g, next, GPU_PAGE_SIZE, 0, 0, &mh));
	REQUIRE_OK(gdr_map(g, mh, &va, GPU_PAGE_SIZE));
	*(volatile uint32_t *)va = 0x5a5a5a5a;
	REQUIRE_EQ(gpu_word(next), 0x5a5a5a5a);

	REQUIRE_OK(gdr_pin_buffer(g, neighbour.addr, sizeof(uint32_t), 0, 0, &other));
	REQUIRE_OK(gdr_map(g, other, &other_va, sizeof(uint32_t)));
	buffer_free(&neighbour);
	REQUIRE_EQ(*(volatile uint32_t *)va, 0x5a5a5a5a);
	*(volatile uint32_t *)va = 0xa5a5a5a5;
	REQUIRE_EQ(gpu_word(next), 0xa5a5a5a5);

	/* Unpin without unmap, and close with a mapping left. */
	REQUIRE_OK(gdr_unpin_buffer(g, other));
	REQUIRE_OK(gdr_close(g));
	GPU(cuMemFree, base);
}

void test_basic_small_buffers_mapping(enum memory memory)
{
	gdr_mh_t first = { .h = 0 }, second = { .h = 0 };
	void *va = NULL, *second_va = NULL;
	struct buffer buffer;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	REQUIRE_OK(gdr_pin_buffer(g, buffer.addr, 8, 0, 0, &first));
	REQUIRE_OK(gdr_pin_buffer(g, buffer.addr + 8, 8, 0, 0, &second));
	REQUIRE(first.h != second.h);
	REQUIRE_OK(gdr_map(g, first, &va, 8));
	REQUIRE(gdr_map(g, second, &second_va, 8) != 0);
	REQUIRE_OK(gdr_unmap(g, first, va, 8));
	REQUIRE_OK(gdr_unpin_buffer(g, first));
	REQUIRE_OK(gdr_unpin_buffer(g, second));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}

static void in_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	REQUIRE_EQ(pthread_create(&thread, NULL, body, arg), 0);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
}

static void *pin_and_map(void *arg)
{
	struct mapped *m = arg;
	void *va = NULL;

	gpu_enter_thread();
	m->mh = buffer_pin(m->g, &m->buffer);
	REQUIRE_OK(gdr_map(m->g, m->mh, &va, m->buffer.size));
	m->va = va;
	*(volatile uint32_t *)m->va = 1;
	return NULL;
}

static void *unmap_and_unpin(void *arg)
{
	struct mapped *m = arg;

	gpu_enter_thread();
	REQUIRE_OK(gdr_unmap(m->g, m->mh, m->va, m->buffer.size));
	REQUIRE_OK(gdr_unpin_buffer(m->g, m->mh));
	return NULL;
}

static void *whole_cycle(void *arg)
{
	struct mapped mine = *(struct mapped *)arg;

	pin_and_map(&mine);
	unmap_and_unpin(&mine);
	return NULL;
}

static void *close_and_free(void *arg)
{
	struct mapped *m = arg;

	gpu_enter_thread();
	REQUIRE_OK(gdr_close(m->g));
	buffer_free(&m->buffer);
	return NULL;
}

void test_basic_child_thread_pins_buffer(enum memory memory)
{
	pthread_t threads[2];
	struct mapped m;

	gpu_start();
	buffer_alloc(memory, THREAD_SIZE, &m.buffer);
	m.g = open_session();

	in_thread(whole_cycle, &m);
	in_thread(pin_and_map, &m);
	in_thread(unmap_and_unpin, &m);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, whole_cycle, &m), 0);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
	in_thread(close_and_free, &m);
}
