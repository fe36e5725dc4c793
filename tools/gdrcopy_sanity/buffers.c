/* SPDX-License-Identifier: MIT */
/* GPU memory of the two kinds that the tests are made for, and how it is pinned and mapped. */
#include "buffers.h"

#include "gpu.h"
#include "machine.h"

void buffer_alloc(enum memory memory, size_t size, struct buffer *buffer)
{
	gpu_buffer_alloc((enum gpu_alloc)memory, machine.ordinal, size, &buffer->gpu);
	buffer->addr = buffer->gpu.ptr;
	buffer->size = size;
	DEBUG("allocated %zu bytes at 0x%llx", size, (unsigned long long)buffer->addr);
}

void buffer_free(struct buffer *buffer)
{
	gpu_buffer_free(&buffer->gpu);
}

gdr_t open_session(void)
{
	gdr_t g = gdr_open();

	if (!g)
		FAIL("gdr_open error: Is gdrdrv driver installed and loaded?");
	return g;
}

gdr_mh_t buffer_pin(gdr_t g, const struct buffer *buffer)
{
	gdr_mh_t mh = { .h = 0 };

	REQUIRE_OK(gdr_pin_buffer(g, buffer->addr, buffer->size, 0, 0, &mh));
	REQUIRE(mh.h != 0);
	return mh;
}

void mapped_open(gdr_t g, enum memory memory, size_t size, struct mapped *m)
{
	void *va = NULL;

	m->g = g;
	buffer_alloc(memory, size, &m->buffer);
	m->mh = buffer_pin(g, &m->buffer);
	REQUIRE_OK(gdr_map(g, m->mh, &va, size));
	REQUIRE(va);
	m->va = va;
}

void mapped_unmap(struct mapped *m)
{
	REQUIRE_OK(gdr_unmap(m->g, m->mh, m->va, m->buffer.size));
}

void mapped_close(struct mapped *m)
{
	mapped_unmap(m);
	REQUIRE_OK(gdr_unpin_buffer(m->g, m->mh));
	buffer_free(&m->buffer);
}
