/* SPDX-License-Identifier: MIT */
/* invalidation_unix_sock_* tests of GDRCopy 2.6: a session's descriptor is of no use elsewhere. */
#include <unistd.h>

#include "gpu.h"
#include "layout.h"
#include "machine.h"
#include "peer.h"
#include "tests.h"

/* The session of the receiver, and what it got from the owner. */
struct stolen {
	gdr_t g;
	int own_fd;
	int fd;
	struct layout_session copy;	/* of the own session, with the owner's descriptor */
	struct layout_region region;	/* the owner's pin */
};

static void take_descriptor(struct peer *owner, struct stolen *s)
{
	s->g = open_session();
	s->own_fd = layout_fd(s->g);
	s->fd = peer_receive_fd(owner);
	REQUIRE(s->fd >= 0);
	layout_copy_session(s->g, &s->copy);
	layout_set_fd(layout_as_session(&s->copy), s->fd);
}

static void pin_with_stolen(struct peer *owner, void *arg)
{
	struct buffer buffer;
	struct stolen s;
	gdr_mh_t mh;

	gpu_start();
	buffer_alloc(*(enum memory *)arg, GPU_PAGE_SIZE, &buffer);
	take_descriptor(owner, &s);
	REQUIRE(gdr_pin_buffer(layout_as_session(&s.copy), buffer.addr, buffer.size, 0, 0,
			       &mh) != 0);
	layout_set_fd(s.g, s.fd);
	REQUIRE(gdr_pin_buffer(s.g, buffer.addr, buffer.size, 0, 0, &mh) != 0);

	/* The same with the own descriptor works, so it was that which counted. */
	layout_set_fd(s.g, s.own_fd);
	mh = buffer_pin(s.g, &buffer);
	REQUIRE_OK(gdr_unpin_buffer(s.g, mh));
	REQUIRE_OK(gdr_close(s.g));
	close(s.fd);
	buffer_free(&buffer);
	peer_signal(owner);
}

void test_invalidation_unix_sock_shared_fd_gdr_pin_buffer(enum memory memory)
{
	struct peer receiver;
	struct mapped m;

	peer_start(&receiver, pin_with_stolen, &memory);
	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	m.va[0] = 1;
	peer_send_fd(&receiver, layout_fd(m.g));
	peer_wait(&receiver);
	peer_finish(&receiver);
	REQUIRE_EQ(gpu_word(m.buffer.addr), 1);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}

static void map_with_stolen(struct peer *owner, void *arg)
{
	struct buffer buffer;
	struct stolen s;
	void *va = NULL;
	gdr_mh_t own, foreign;

	gpu_start();
	buffer_alloc(*(enum memory *)arg, GPU_PAGE_SIZE, &buffer);
	take_descriptor(owner, &s);
	peer_receive(owner, s.region.bytes, sizeof(s.region.bytes));
	foreign = layout_as_region(&s.region);
	own = buffer_pin(s.g, &buffer);

	REQUIRE(gdr_map(layout_as_session(&s.copy), foreign, &va, GPU_PAGE_SIZE) != 0);
	layout_set_fd(s.g, s.fd);
	REQUIRE(gdr_map(s.g, foreign, &va, GPU_PAGE_SIZE) != 0);
	REQUIRE(gdr_map(s.g, own, &va, GPU_PAGE_SIZE) != 0);

	layout_set_fd(s.g, s.own_fd);
	REQUIRE_OK(gdr_map(s.g, own, &va, GPU_PAGE_SIZE));
	REQUIRE_OK(gdr_unmap(s.g, own, va, GPU_PAGE_SIZE));
	REQUIRE_OK(gdr_unpin_buffer(s.g, own));
	REQUIRE_OK(gdr_close(s.g));
	close(s.fd);
	buffer_free(&buffer);
	peer_signal(owner);
}

void test_invalidation_unix_sock_shared_fd_gdr_map(enum memory memory)
{
	struct layout_region region;
	struct peer receiver;
	struct buffer buffer;
	gdr_mh_t mh;
	gdr_t g;

	peer_start(&receiver, map_with_stolen, &memory);
	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	g = open_session();
	mh = buffer_pin(g, &buffer);
	layout_copy_region(mh, &region);
	peer_send_fd(&receiver, layout_fd(g));
	peer_send(&receiver, region.bytes, sizeof(region.bytes));
	peer_wait(&receiver);
	peer_finish(&receiver);
	REQUIRE_OK(gdr_unpin_buffer(g, mh));
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}
