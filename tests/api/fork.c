/* SPDX-License-Identifier: MIT */
/*
 * A child owns nothing of its parent: calls on the parent's session and
 * handles answer EACCES, mappings are absent, and nothing that the child does
 * reaches the parent.  It may live a life of its own, whatever the parent's
 * threads were doing at the fork.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOGGED "GDRCOPY_ENABLE_LOGGING=1"

static void check_parent_works(const struct gpu_mapping *mapping)
{
	uint64_t value = 0x0102030405060708, seen = 0;
	gdr_mh_t other;

	CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va, &value, 8), 0);
	CHECK_EQ(gdr_copy_from_mapping(mapping->handle, &seen, mapping->va, 8), 0);
	CHECK_EQ(seen, value);
	other = gpu_pin(mapping->g, mapping->buffer.ptr, GPU_PAGE_SIZE);
	CHECK_EQ(gdr_unpin_buffer(mapping->g, other), 0);
}

static void end_parent(struct gpu_mapping mapping)
{
	check_parent_works(&mapping);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void refuse_all_calls(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	const gdr_mh_t handle = mapping->handle;
	gdr_mh_t out = { 1 };
	gdr_t g = mapping->g;
	int a = 71, b = 72;
	gdr_info_t info;
	char host[8];
	void *va = host;

	CHECK_REFUSED(gdr_pin_buffer(g, mapping->buffer.ptr, MIB, 0, 0, &out), EACCES,
		      "open one here");
	CHECK_EQ(out.h, 0);
	CHECK_REFUSED(gdr_pin_buffer_v2(g, mapping->buffer.ptr, MIB, 0, &out), EACCES, "parent");
	CHECK_REFUSED(gdr_map(g, handle, &va, MIB), EACCES, "parent");
	CHECK(va == NULL);
	CHECK_REFUSED(gdr_unmap(g, handle, mapping->va, MIB), EACCES, "parent");
	CHECK_REFUSED(gdr_unpin_buffer(g, handle), EACCES, "parent");
	CHECK_REFUSED(gdr_get_info(g, handle, &info), EACCES, "parent");
	CHECK_REFUSED(gdr_get_callback_flag(g, handle, &a), EACCES, "parent");
	CHECK_REFUSED(gdr_get_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, &a), EACCES, "parent");
	CHECK_REFUSED(gdr_driver_get_version(g, &a, &b), EACCES, "parent");
	CHECK_REFUSED(gdr_copy_to_mapping(handle, mapping->va, host, 8), EACCES, "pin again here");
	CHECK_REFUSED(gdr_copy_from_mapping(handle, host, mapping->va, 8), EACCES,
		      "pin again here");
	CHECK_EQ(a, 71);
	CHECK_EQ(b, 72);
}

static void close_in_child(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	int fds;

	refuse_all_calls(arg);
	fds = harness_count_fds();
	CHECK_REFUSED(gdr_close(mapping->g), EACCES, "parent");
	/* The inherited descriptor goes with the child: its number may be somebody else's. */
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_REFUSED(gdr_close(mapping->g), EACCES, "parent");
	CHECK_EQ(harness_count_fds(), fds);
	refuse_all_calls(arg);
}

static void child_is_refused(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);

	CHECK_EQ(harness_fork(close_in_child, &mapping), 0);
	end_parent(mapping);
}

/* The descriptor's number was closed and taken by something else in the child. */
static void close_foreign_descriptor(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	const int fd = *(const int *)mapping->g;
	int fds;

	REQUIRE_EQ(dup2(STDERR_FILENO, fd), fd);
	fds = harness_count_fds();
	CHECK_EQ(gdr_close(mapping->g), EACCES);
	CHECK_EQ(harness_count_fds(), fds);
}

static void child_closes_no_foreign_descriptor(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);

	CHECK_EQ(harness_fork(close_foreign_descriptor, &mapping), 0);
	end_parent(mapping);
}

/* The same, by a session of the child's own on the same device. */
static void close_beside_own_session(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	const int fd = *(const int *)mapping->g;
	gdr_t own = gdr_open();

	REQUIRE(own != NULL);
	REQUIRE_EQ(dup2(*(const int *)own, fd), fd);
	CHECK_EQ(gdr_close(mapping->g), EACCES);
	CHECK_EQ(fcntl(fd, F_GETFD) >= 0, 1);
	CHECK_EQ(gdr_close(own), 0);
}

static void child_closes_no_descriptor_of_its_own(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);

	CHECK_EQ(harness_fork(close_beside_own_session, &mapping), 0);
	end_parent(mapping);
}

static void touch_mapping(void *arg)
{
	const struct gpu_mapping *mapping = arg;

	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	*(volatile unsigned char *)mapping->va = 1;
	_exit(0);
}

static void mapping_is_absent(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	int status = harness_fork(touch_mapping, &mapping);

	CHECK(WIFSIGNALED(status));
	CHECK(WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
	end_parent(mapping);
}

/* CUDA starts in the child alone, so that it can pin there. */
static void live_in_child(void *arg)
{
	gdr_t *parent = arg;
	gdr_t own = gpu_open();
	struct gpu_mapping mapping = gpu_map_new(own, MIB);

	CHECK(own != *parent);
	check_parent_works(&mapping);
	CHECK_EQ(gdr_close(*parent), EACCES);
	check_parent_works(&mapping);
	CHECK_EQ(gdr_unpin_buffer(*parent, mapping.handle), EACCES);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(own), 0);
	CHECK_EQ(gdr_close(own), EINVAL);
}

static void child_has_a_session_of_its_own(void)
{
	gdr_t g = gpu_open();
	int major, minor;

	CHECK_EQ(harness_fork(live_in_child, &g), 0);
	CHECK_EQ(gdr_driver_get_version(g, &major, &minor), 0);
	CHECK_EQ(harness_fork(live_in_child, &g), 0);
	CHECK_EQ(gdr_close(g), 0);
}

struct generation {
	gdr_t session[4];
	int depth;
};

/* Each generation opens a session; the next is refused all that came before. */
static void live_in_generation(void *arg)
{
	struct generation family = *(struct generation *)arg;
	int major, minor;

	for (int i = 0; i < family.depth; i++) {
		CHECK_EQ(gdr_driver_get_version(family.session[i], &major, &minor), EACCES);
		CHECK_EQ(gdr_close(family.session[i]), EACCES);
	}
	family.session[family.depth] = gpu_open();
	for (int i = 0; i < family.depth; i++)
		CHECK_EQ(gdr_driver_get_version(family.session[i], &major, &minor), EACCES);
	if (++family.depth < 4) {
		CHECK_EQ(harness_fork(live_in_generation, &family), 0);
	} else {
		struct gpu_mapping mapping = gpu_map_new(family.session[3], MIB);

		check_parent_works(&mapping);
		gpu_unmap(mapping);
	}
	CHECK_EQ(gdr_driver_get_version(family.session[family.depth - 1], &major, &minor), 0);
	CHECK_EQ(gdr_close(family.session[family.depth - 1]), 0);
}

static void children_of_children(void)
{
	struct generation family = { .depth = 0 };

	live_in_generation(&family);
}

/* Handles that died in the parent, and values that never were handles. */
static void try_values(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	const uint64_t base = mapping->handle.h;
	char host[8];

	for (int64_t step = -20000; step < 20000; step++) {
		const gdr_mh_t handle = { base + (uint64_t)step };
		int rc = gdr_copy_to_mapping(handle, host, host, 4);

		if (rc != EACCES && rc != EINVAL)
			CHECK_EQ(rc, EINVAL);
	}
	CHECK_EQ(gdr_close((gdr_t)&host), EINVAL);
	CHECK_EQ(gdr_close(NULL), EINVAL);
}

static void child_tries_values(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);

	CHECK_EQ(harness_fork(try_values, &mapping), 0);
	end_parent(mapping);
}

/* Threads that are inside every call of the library while the process forks. */
struct busy {
	struct team *team;
	struct gpu_mapping *mapping;
	int wrong;
};

static void *stay_busy(void *arg)
{
	struct busy *busy = arg;
	unsigned char data[4096];

	memset(data, 1, sizeof(data));
	while (!atomic_load(&busy->team->stop)) {
		const struct gpu_mapping *mapping = busy->mapping;
		/* ThreadSanitizer's own lock around dlopen does not survive a fork. */
		gdr_t g = api_is_sanitized() ? mapping->g : gdr_open();
		gdr_mh_t handle;
		void *va;

		busy->wrong += !g;
		busy->wrong += gdr_pin_buffer(g, mapping->buffer.ptr, MIB, 0, 0, &handle) != 0;
		busy->wrong += gdr_map(g, handle, &va, MIB) != 0;
		busy->wrong += gdr_copy_to_mapping(handle, va, data, sizeof(data)) != 0;
		busy->wrong += gdr_copy_to_mapping(mapping->handle, mapping->va, data,
						   sizeof(data)) != 0;
		busy->wrong += gdr_unmap(g, handle, va, MIB) != 0;
		busy->wrong += gdr_unpin_buffer(g, handle) != 0;
		busy->wrong += g != mapping->g && gdr_close(g) != 0;
	}
	return NULL;
}

static void live_beside_busy_parent(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	int major, minor;
	char host[8];
	gdr_t own;

	alarm(20);
	CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va, host, 8), EACCES);
	own = gdr_open();
	if (!CHECK(own != NULL))
		return;
	CHECK_EQ(gdr_driver_get_version(own, &major, &minor), 0);
	CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va, host, 8), EACCES);
	CHECK_EQ(gdr_close(mapping->g), EACCES);
	CHECK_EQ(gdr_close(own), 0);
}

static void forks_beside_busy_threads(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct busy busy[2];
	struct team team;

	for (int i = 0; i < 2; i++)
		busy[i] = (struct busy){ &team, &mapping, 0 };
	team_start(&team, 2, stay_busy, busy, sizeof(busy[0]));
	for (int i = 0; i < api_rounds(200); i++)
		if (!CHECK_EQ(harness_fork(live_beside_busy_parent, &mapping), 0))
			break;
	team_join(&team);
	CHECK_EQ(busy[0].wrong + busy[1].wrong, 0);
	end_parent(mapping);
}

/* Children that end by exit() run the destructors of all libraries. */
static void end_by_exit(void *arg)
{
	(void)arg;
	exit(0);
}

static void exiting_child_leaves_parent_alone(void)
{
	struct gpu_mapping mapping;

	if (api_is_sanitized())
		SKIP("the sanitizer ends such a child in its own way");
	mapping = gpu_map_new(gpu_open(), MIB);
	CHECK_EQ(harness_fork(end_by_exit, &mapping), 0);
	end_parent(mapping);
}

/* posix_spawn forks without copying: the parent's state must survive it. */
static int count_fds_after_exec(void)
{
	char *const argv[] = { (char *)"sh", (char *)"-c",
			       (char *)"set -- /proc/self/fd/*; exit $#", NULL };
	char *const environment[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	int status = 0;
	pid_t child;

	REQUIRE_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environment), 0);
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	REQUIRE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void exec_leaves_no_descriptor(void)
{
	struct gpu_mapping mapping;
	int before;

	gpu_start();
	before = count_fds_after_exec();
	mapping = gpu_map_new(gpu_open(), MIB);
	CHECK_EQ(count_fds_after_exec(), before);
	end_parent(mapping);
}

static const struct api_case cases[] = {
	{ "child_is_refused", child_is_refused, LOGGED },
	{ "child_closes_no_foreign_descriptor", child_closes_no_foreign_descriptor, NULL },
	{ "child_closes_no_descriptor_of_its_own", child_closes_no_descriptor_of_its_own, NULL },
	{ "mapping_is_absent", mapping_is_absent, NULL },
	{ "child_has_a_session_of_its_own", child_has_a_session_of_its_own, NULL },
	{ "children_of_children", children_of_children, NULL },
	{ "child_tries_values", child_tries_values, NULL },
	{ "forks_beside_busy_threads", forks_beside_busy_threads, NULL },
	{ "exiting_child_leaves_parent_alone", exiting_child_leaves_parent_alone, NULL },
	{ "exec_leaves_no_descriptor", exec_leaves_no_descriptor, NULL },
};

API_MAIN(cases)
