/* SPDX-License-Identifier: MIT */
/* How long a pin lives: free, callback, close, fork, passed descriptors, death of the owner. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (2ull << 20)

static int fd;
static struct buffer buffer;

static void begin(void)
{
	bench_start();
	fd = drv_open();
	buffer = bench_alloc(SIZE);
}

static void end(void)
{
	close(fd);
	bench_end();
}

static void need_callbacks(void)
{
	if (!drv_persistent(fd)) {
		bench_start();
		return;
	}
	close(fd);
	bench_free(&buffer);
	SKIP("persistent pins have no callback");
}

static void need_persistence(void)
{
	if (drv_persistent(fd))
		return;
	close(fd);
	bench_free(&buffer);
	SKIP("pins are not persistent");
}

static void persistent_memory_outlives_free(void)
{
	uint64_t handle, used;
	uint32_t value, flag;
	void *map;

	begin();
	need_persistence();
	used = bench_stats().used_pages;
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	*(volatile uint32_t *)map = 0xfeed;
	bench_free(&buffer);
	CHECK_EQ(bench_touch(map, &value), 0);
	CHECK_EQ(value, 0xfeed);
	CHECK_EQ(drv_callback_flag(fd, handle, &flag), 0);
	CHECK_EQ(flag, 0);
	CHECK_EQ(bench_stats().used_pages, used);
	CHECK_EQ(bench_revoke(NULL), 0);
	CHECK_EQ(drv_unpin(fd, handle), 0);
	CHECK_EQ(bench_stats().used_pages, used - SIZE / GPU_PAGE);
	munmap(map, SIZE);
	end();
}

static void free_revokes_maps(void)
{
	uint64_t handle, neighbour_handle;
	struct buffer neighbour;
	uint32_t value, flag;
	void *map, *other;

	begin();
	need_callbacks();
	neighbour = bench_alloc(SIZE);
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	REQUIRE_EQ(drv_pin(fd, neighbour.va, SIZE, &neighbour_handle), 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	REQUIRE_EQ(drv_map(fd, neighbour_handle, SIZE, &other), 0);
	*(volatile uint32_t *)map = 1;
	*(volatile uint32_t *)other = 2;
	CHECK_EQ(drv_callback_flag(fd, handle, &flag), 0);
	CHECK_EQ(flag, 0);
	bench_free(&buffer);
	CHECK_EQ(bench_touch(map, NULL), SIGBUS);
	CHECK_EQ(bench_touch((uint32_t *)map + SIZE / 4 - 1, NULL), SIGBUS);
	CHECK_EQ(bench_touch(other, &value), 0);
	CHECK_EQ(value, 2);
	CHECK_EQ(drv_callback_flag(fd, handle, &flag), 0);
	CHECK_EQ(flag, 1);
	CHECK_EQ(drv_callback_flag(fd, neighbour_handle, &flag), 0);
	CHECK_EQ(flag, 0);
	CHECK_EQ(bench_stats().pins, 1);
	/* The handle stays until unpin, but can be mapped no more. */
	munmap(map, SIZE);
	CHECK_EQ(drv_map(fd, handle, GPU_PAGE, &map), -EINVAL);
	CHECK_EQ(drv_unpin(fd, handle), 0);
	CHECK_EQ(drv_unpin(fd, handle), -EINVAL);
	CHECK_EQ(drv_unpin(fd, neighbour_handle), 0);
	munmap(other, SIZE);
	bench_free(&neighbour);
	end();
}

static void revoked_before_map(void)
{
	uint64_t handle;
	uint32_t flag;
	void *map;

	begin();
	need_callbacks();
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	CHECK_EQ(bench_revoke(&buffer), 1);
	CHECK_EQ(drv_map(fd, handle, GPU_PAGE, &map), -EINVAL);
	CHECK_EQ(drv_callback_flag(fd, handle, &flag), 0);
	CHECK_EQ(flag, 1);
	close(fd);
	bench_free(&buffer);
	bench_end();
}

/*
 * The memory may be freed on another CPU before the pin call has returned:
 * the callback is then over, and so is the page table that the call answers.
 */
static void revoked_inside_pin(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	uint64_t handle;
	uint32_t flag;
	void *map;
	int ret;

	begin();
	need_callbacks();
	settings.revoke_in_get = 1;
	bench_set(&settings);
	for (int i = 0; i < 50; i++) {
		ret = drv_pin(fd, buffer.va, SIZE, &handle);
		if (ret != 0) {
			CHECK(ret == -EINVAL || ret == -EIO || ret == -EFAULT);
			continue;
		}
		CHECK_EQ(drv_callback_flag(fd, handle, &flag), 0);
		CHECK_EQ(flag, 1);
		CHECK_EQ(drv_map(fd, handle, GPU_PAGE, &map), -EINVAL);
		CHECK_EQ(drv_unpin(fd, handle), 0);
	}
	CHECK_NO_PINS();
	bench_free(&buffer);
	end();
}

static void close_releases_all(void)
{
	uint64_t handle;
	void *map;

	begin();
	for (int i = 0; i < 100; i++)
		REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE * (1 + (uint64_t)i % 32), &handle), 0);
	REQUIRE_EQ(drv_map(fd, handle, GPU_PAGE, &map), 0);
	CHECK_EQ(bench_stats().pins, 100);
	munmap(map, GPU_PAGE);
	close(fd);
	CHECK_NO_PINS();
	bench_free(&buffer);
	bench_end();
}

/* A forked child keeps the file open; the parent can still unpin. */
static void fork_keeps_the_file(void)
{
	uint64_t handle;
	int go[2];
	pid_t child;
	char byte;

	begin();
	REQUIRE_EQ(pipe(go), 0);
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	child = fork();
	if (child == 0) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
	}
	CHECK_EQ(bench_stats().pins, 1);
	CHECK_EQ(drv_unpin(fd, handle), 0);
	CHECK_NO_PINS();
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	close(fd);
	close(go[1]);
	waitpid(child, NULL, 0);
	close(go[0]);
	CHECK_NO_PINS();
	bench_free(&buffer);
	bench_end();
}

static void send_fd(int socket_fd, int passed)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec vec = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &vec, .msg_iovlen = 1, .msg_control = space,
		.msg_controllen = sizeof(space)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &passed, sizeof(int));
	CHECK_EQ(sendmsg(socket_fd, &message, 0), 1);
}

static int receive_fd(int socket_fd)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec vec = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &vec, .msg_iovlen = 1, .msg_control = space,
		.msg_controllen = sizeof(space)
	};
	int received = -1;

	if (recvmsg(socket_fd, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return received;
}

/* Has memory of its own; may neither pin it nor map the sender's through the file. */
static int use_received(int socket_fd)
{
	struct buffer own;
	uint64_t handle;
	int received;
	void *map;

	bench_forget_gpu();
	own = bench_alloc(SIZE);
	received = receive_fd(socket_fd);
	if (received < 0)
		return 1;
	if (drv_pin(received, own.va, GPU_PAGE, &handle) != -EACCES)
		return 2;
	if (drv_map(received, 0, GPU_PAGE, &map) != -EACCES)
		return 3;
	return drv_unpin(received, 0) == -EACCES ? 0 : 4;
}

static void passed_descriptor(void)
{
	uint64_t handle;
	int pair[2], status;
	pid_t child;

	begin();
	REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	child = fork();
	if (child == 0) {
		close(fd);
		_exit(use_received(pair[1]));
	}
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &handle), 0);
	send_fd(pair[0], fd);
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(bench_stats().pins, 1);
	close(pair[0]);
	close(pair[1]);
	bench_free(&buffer);
	end();
}

static void *pin_in_thread(void *arg)
{
	return (void *)(intptr_t)drv_pin(fd, buffer.va, SIZE, arg);
}

static void *unpin_in_thread(void *arg)
{
	return (void *)(intptr_t)drv_unpin(fd, *(uint64_t *)arg);
}

static void any_thread_of_the_owner(void)
{
	pthread_t thread;
	uint64_t handle = 0;
	uint32_t value;
	void *result, *map;

	begin();
	pthread_create(&thread, NULL, pin_in_thread, &handle);
	pthread_join(thread, &result);
	CHECK_EQ((intptr_t)result, 0);
	REQUIRE_EQ(drv_map(fd, handle, SIZE, &map), 0);
	*(volatile uint32_t *)map = 5;
	CHECK_EQ(bench_touch(map, &value), 0);
	munmap(map, SIZE);
	pthread_create(&thread, NULL, unpin_in_thread, &handle);
	pthread_join(thread, &result);
	CHECK_EQ((intptr_t)result, 0);
	bench_free(&buffer);
	end();
}

/* The order in which a dying process loses its files differs from case to case. */
static void die_with_pins(bool gpu_first, int times)
{
	struct buffer own;
	uint64_t handle;
	int mine, status;
	pid_t child;
	void *map;

	for (int i = 0; i < times; i++) {
		child = fork();
		if (child == 0) {
			close(fd);
			bench_forget_gpu();
			if (gpu_first)
				bench_gpu();
			mine = drv_open();
			own = bench_alloc(SIZE);
			for (int pin = 0; pin < 5; pin++)
				if (drv_pin(mine, own.va, SIZE, &handle) != 0)
					_exit(1);
			if (drv_map(mine, handle, SIZE, &map) != 0)
				_exit(2);
			*(volatile uint32_t *)map = 1;
			raise(SIGKILL);
		}
		waitpid(child, &status, 0);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		CHECK_NO_PINS();
	}
}

static void killed_owner(void)
{
	begin();
	die_with_pins(true, 10);
	die_with_pins(false, 10);
	CHECK_EQ(bench_stats().used_pages, SIZE / GPU_PAGE);
	bench_free(&buffer);
	end();
}

/* Half of the time the handle is unpinned under its map. */
static void cycles(void)
{
	uint64_t handle;
	uint32_t *map;

	begin();
	for (int i = 0; i < 3000; i++) {
		uint64_t size = GPU_PAGE * (1 + (uint64_t)i % 32);

		REQUIRE_EQ(drv_pin(fd, buffer.va, size, &handle), 0);
		REQUIRE_EQ(drv_map(fd, handle, size, (void **)&map), 0);
		*(volatile uint32_t *)map = (uint32_t)i;
		if (i % 3 != 0)
			munmap(map, size);
		REQUIRE_EQ(drv_unpin(fd, handle), 0);
		if (i % 3 == 0)
			munmap(map, size);
	}
	CHECK_NO_PINS();
	bench_free(&buffer);
	end();
}

static const struct harness_case cases[] = {
	{ "persistent_memory_outlives_free", persistent_memory_outlives_free },
	{ "free_revokes_maps", free_revokes_maps },
	{ "revoked_before_map", revoked_before_map },
	{ "revoked_inside_pin", revoked_inside_pin },
	{ "close_releases_all", close_releases_all },
	{ "fork_keeps_the_file", fork_keeps_the_file },
	{ "passed_descriptor", passed_descriptor },
	{ "any_thread_of_the_owner", any_thread_of_the_owner },
	{ "killed_owner", killed_owner },
	{ "cycles", cycles },
};
HARNESS_MAIN(cases)
