/* SPDX-License-Identifier: MIT */
/* Fork and exec: a child owns nothing of its parent, and can start anew. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fault.h"
#include "gpu.h"
#include "peer.h"
#include "process.h"
#include "tests.h"

/* The source name means the 48-byte form; the exported one fills 40 bytes. */
#undef gdr_get_info

#define PARENT_VALUE 0x600dda7au

static void refuse_inherited_handle(const struct mapped *m)
{
	void *va = NULL;
	gdr_info_v1_t info_v1;
	gdr_info_v2_t info;
	uint32_t word = 0;
	int flag;

	REQUIRE_ERROR(gdr_copy_to_mapping(m->mh, m->va, &word, sizeof(word)), EACCES);
	REQUIRE_ERROR(gdr_copy_from_mapping(m->mh, &word, m->va, sizeof(word)), EACCES);
	REQUIRE_ERROR(gdr_map(m->g, m->mh, &va, GPU_PAGE_SIZE), EACCES);
	REQUIRE_ERROR(gdr_map_v2(m->g, m->mh, &va, GPU_PAGE_SIZE, 0), EACCES);
	REQUIRE_ERROR(gdr_get_info(m->g, m->mh, &info_v1), EACCES);
	REQUIRE_ERROR(gdr_get_info_v2(m->g, m->mh, &info), EACCES);
	REQUIRE_ERROR(gdr_get_callback_flag(m->g, m->mh, &flag), EACCES);
	REQUIRE_ERROR(gdr_unmap(m->g, m->mh, m->va, GPU_PAGE_SIZE), EACCES);
	REQUIRE_ERROR(gdr_unpin_buffer(m->g, m->mh), EACCES);
}

static void refuse_inherited_session(gdr_t g, uint64_t addr)
{
	int major, minor, value;
	gdr_mh_t mh = { .h = 1 };

	REQUIRE_ERROR(gdr_pin_buffer(g, addr, GPU_PAGE_SIZE, 0, 0, &mh), EACCES);
	REQUIRE_EQ(mh.h, 0);
	REQUIRE_ERROR(gdr_pin_buffer_v2(g, addr, GPU_PAGE_SIZE, 0, &mh), EACCES);
	REQUIRE_ERROR(gdr_get_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, &value), EACCES);
	REQUIRE_ERROR(gdr_driver_get_version(g, &major, &minor), EACCES);
	REQUIRE_ERROR(gdr_close(g), EACCES);
}

static void use_parents_session(struct peer *parent, void *arg)
{
	const struct mapped *m = arg;
	uint32_t word;

	(void)parent;
	REQUIRE(fault_read(m->va, &word) != 0);
	REQUIRE(fault_write(m->va, 0) != 0);
	refuse_inherited_handle(m);
	refuse_inherited_session(m->g, m->buffer.addr);
	/* An end in the child is no end. */
	refuse_inherited_handle(m);
}

void test_plus_fork_parent_session(enum memory memory)
{
	uint32_t sent = PARENT_VALUE + 1;
	struct peer child;
	struct mapped m;

	gpu_start();
	mapped_open(open_session(), memory, GPU_PAGE_SIZE, &m);
	m.va[0] = PARENT_VALUE;
	for (int i = 0; i < 2; i++) {
		peer_start(&child, use_parents_session, &m);
		peer_finish(&child);
		REQUIRE_EQ(*(volatile uint32_t *)m.va, PARENT_VALUE);
	}
	REQUIRE_OK(gdr_copy_to_mapping(m.mh, m.va, &sent, sizeof(sent)));
	REQUIRE_EQ(gpu_word(m.buffer.addr), sent);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(m.g));
}

static void use_session(gdr_t g, enum memory memory, uint32_t value)
{
	uint32_t seen = 0;
	struct mapped m;

	gpu_start();
	mapped_open(g, memory, GPU_PAGE_SIZE, &m);
	REQUIRE_OK(gdr_copy_to_mapping(m.mh, m.va, &value, sizeof(value)));
	REQUIRE_OK(gdr_copy_from_mapping(m.mh, &seen, m.va, sizeof(seen)));
	REQUIRE_EQ(seen, value);
	REQUIRE_EQ(gpu_word(m.buffer.addr), value);
	mapped_close(&m);
	REQUIRE_OK(gdr_close(g));
}

static void open_own_session(struct peer *parent, void *arg)
{
	gdr_t inherited = *(gdr_t *)arg;
	gdr_t g = open_session();

	(void)parent;
	REQUIRE(g != inherited);
	refuse_inherited_session(inherited, GPU_PAGE_SIZE);
	use_session(g, MEMORY_CUMEMALLOC, 1);
}

/*
 * The parent opens its session before the fork, and uses CUDA only after the
 * child is gone: CUDA itself does not survive a fork, and a GPU may admit one
 * process at a time.
 */
void test_plus_fork_own_session(enum memory memory)
{
	gdr_t g = open_session();
	struct peer child;

	peer_start(&child, open_own_session, &g);
	peer_finish(&child);
	use_session(g, memory, 2);
}

/* exec closes what has the close-on-exec flag, and nothing else. */
static void require_close_on_exec(const struct process_fds *before, const char *after)
{
	struct process_fds now;

	process_list_fds(&now);
	for (int fd = 0; fd < PROCESS_MAX_FDS; fd++)
		if (now.open[fd] && !before->open[fd] && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			FAIL("%s descriptor %d would stay open over exec", after, fd);
}

void test_plus_exec_descriptors(enum memory memory)
{
	struct process_fds before;
	struct buffer buffer;
	uint32_t word = 1;
	void *va = NULL;
	gdr_mh_t mh;
	gdr_t g;

	gpu_start();
	buffer_alloc(memory, GPU_PAGE_SIZE, &buffer);
	process_list_fds(&before);
	g = open_session();
	require_close_on_exec(&before, "after open");
	mh = buffer_pin(g, &buffer);
	require_close_on_exec(&before, "after pin");
	REQUIRE_OK(gdr_map(g, mh, &va, GPU_PAGE_SIZE));
	REQUIRE_OK(gdr_copy_to_mapping(mh, va, &word, sizeof(word)));
	require_close_on_exec(&before, "after map");
	REQUIRE_OK(gdr_close(g));
	buffer_free(&buffer);
}
