/* SPDX-License-Identifier: MIT */
/* The library's system calls on the real kernel: results, errno, what a child sees. */
#include "os/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void failures_are_results_not_errno(void)
{
	char text[8] = "before";
	void *addr = NULL;
	int waiting;

	errno = 4242;
	CHECK_EQ(gdri_os_open("/nonexistent", O_RDONLY), -ENOENT);
	CHECK_EQ(gdri_os_close(-1), -EBADF);
	CHECK_EQ(gdri_os_dup(-1), -EBADF);
	CHECK_EQ(gdri_os_ioctl(-1, FIONREAD, &waiting), -EBADF);
	CHECK_EQ(gdri_os_mmap(4096, PROT_READ, MAP_SHARED, -1, 0, &addr), -EBADF);
	CHECK(addr == NULL);
	CHECK_EQ(gdri_os_munmap((void *)1, 4096), -EINVAL);
	CHECK_EQ(gdri_os_dontfork((void *)1, 4096), -EINVAL);
	CHECK_EQ(gdri_os_wipeonfork((void *)1, 4096), -EINVAL);
	/* EFAULT from Linux, EINVAL from valgrind. */
	CHECK(gdri_os_move((void *)4096, 4096, &addr) < 0);
	CHECK(addr == NULL);
	CHECK_EQ(gdri_os_peek(8, text, 4), -EFAULT);
	CHECK_EQ(gdri_os_read_text("/nonexistent", text, sizeof(text)), -ENOENT);
	CHECK(strcmp(text, "before") == 0);
	CHECK_EQ(errno, 4242);
}

static void descriptors_close_on_exec(void)
{
	int fds = harness_count_fds();
	int fd = gdri_os_open("/dev/null", O_RDWR);
	int copy;

	REQUIRE(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	copy = gdri_os_dup(fd);
	REQUIRE(copy >= 0);
	CHECK(fcntl(copy, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(gdri_os_close(copy), 0);
	CHECK_EQ(gdri_os_ioctl(fd, TIOCGWINSZ, &fds), -ENOTTY);
	CHECK_EQ(gdri_os_close(fd), 0);
	CHECK_EQ(harness_count_fds(), fds);
}

static void ignore_signal(int number)
{
	(void)number;
}

/* A writer comes after 200 ms; the signal, every 50 ms, interrupts the waiting open. */
static void open_is_repeated_after_signals(void)
{
	const struct itimerval often = { { 0, 50000 }, { 0, 50000 } }, never = { 0 };
	struct sigaction action = { .sa_handler = ignore_signal };
	char folder[] = "/tmp/os_sys.XXXXXX", path[64];
	pid_t writer;
	int fd;

	REQUIRE(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/fifo", folder);
	REQUIRE_EQ(mkfifo(path, 0600), 0);
	writer = fork();
	if (writer == 0) {
		usleep(200000);
		_exit(open(path, O_WRONLY) < 0);
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	fd = gdri_os_open(path, O_RDONLY);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(fd >= 0);
	gdri_os_close(fd);
	waitpid(writer, NULL, 0);
	unlink(path);
	rmdir(folder);
}

static void touch(void *addr)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)addr = 1;
}

static bool child_can_touch(void *addr)
{
	int status = harness_fork(touch, addr);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void moved_and_hidden_mappings(void)
{
	const size_t length = 3 * gdri_os_page_size();
	size_t maps = harness_count_maps();
	void *addr, *moved;

	REQUIRE_EQ(gdri_os_mmap(length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0,
				&addr), 0);
	memset(addr, 0x5a, length);
	CHECK(child_can_touch(addr));
	CHECK_EQ(gdri_os_dontfork(addr, length), 0);
	CHECK(!child_can_touch(addr));

	REQUIRE_EQ(gdri_os_move(addr, length, &moved), 0);
	CHECK(moved != addr);
	CHECK_EQ(((unsigned char *)moved)[length - 1], 0x5a);
	CHECK(!child_can_touch(moved));
	*(volatile char *)moved = 1;
	CHECK_EQ(gdri_os_peek((uintptr_t)addr, &(char){ 0 }, 1), -EFAULT);
	CHECK_EQ(gdri_os_munmap(moved, length), 0);
	/* stdio and the allocator may have grown a little; the pages themselves are gone. */
	CHECK_EQ(gdri_os_peek((uintptr_t)moved, &(char){ 0 }, 1), -EFAULT);
	CHECK(harness_count_maps() < maps + (4 << 20));
}

static void expect_zero(void *addr)
{
	CHECK_EQ(*(volatile int *)addr, 0);
}

static void wiped_in_a_child(void)
{
	const size_t length = gdri_os_page_size();
	void *addr;

	REQUIRE_EQ(gdri_os_mmap(length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0,
				&addr), 0);
	*(volatile int *)addr = 7;
	REQUIRE_EQ(gdri_os_wipeonfork(addr, length), 0);
	CHECK_EQ(harness_fork(expect_zero, addr), 0);
	CHECK_EQ(*(volatile int *)addr, 7);
	CHECK_EQ(gdri_os_munmap(addr, length), 0);
}

/* Two readable pages, then one that is not. */
static bool peek_is_right(void)
{
	const size_t page = gdri_os_page_size();
	char *got = malloc(2 * page + 1);
	char *area = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	uintptr_t start = (uintptr_t)area;
	bool right;

	for (size_t i = 0; i < 2 * page; i++)
		area[i] = (char)(i * 7);
	mprotect(area + 2 * page, page, PROT_NONE);
	right = CHECK_EQ(gdri_os_peek(start, got, 2 * page), 0);
	right &= CHECK(memcmp(area, got, 2 * page) == 0);
	right &= CHECK_EQ(gdri_os_peek(start, got, 2 * page + 1), -EFAULT);
	right &= CHECK_EQ(gdri_os_peek(start + 2 * page - 3, got, 3), 0);
	right &= CHECK_EQ(gdri_os_peek(start + 2 * page - 3, got, 4), -EFAULT);
	right &= CHECK_EQ(gdri_os_peek(0, got, 1), -EFAULT);
	right &= CHECK_EQ(gdri_os_peek(UINT64_MAX - 7, got, 4), -EFAULT);
	munmap(area, 3 * page);
	free(got);
	return right;
}

static void peek_reads_or_refuses(void)
{
	CHECK(peek_is_right());
}

enum verdict { WRONG, RIGHT, NO_FILTER };

/* What container runtimes do to process_vm_readv. */
static void peek_where_forbidden(void *arg)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = filter };
	int fds = harness_count_fds();
	enum verdict *verdict = arg;

	*verdict = NO_FILTER;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		*verdict = peek_is_right() && harness_count_fds() == fds ? RIGHT : WRONG;
}

/* The verdict is not the exit status: valgrind changes that, since it dislikes bad addresses. */
static void peek_without_permission(void)
{
	enum verdict *verdict = mmap(NULL, sizeof(*verdict), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	harness_fork(peek_where_forbidden, verdict);
	if (*verdict == NO_FILTER)
		SKIP("this kernel takes no seccomp filter");
	CHECK_EQ(*verdict, RIGHT);
	munmap(verdict, sizeof(*verdict));
}

static void text_is_cut_and_terminated(void)
{
	char path[] = "/tmp/os_sys.XXXXXX", text[16];
	int fd = mkstemp(path);

	REQUIRE(fd >= 0);
	REQUIRE_EQ(write(fd, "0123456789", 10), 10);
	close(fd);
	CHECK_EQ(gdri_os_read_text(path, text, sizeof(text)), 0);
	CHECK(strcmp(text, "0123456789") == 0);
	CHECK_EQ(gdri_os_read_text(path, text, 5), 0);
	CHECK(strcmp(text, "0123") == 0);
	CHECK_EQ(gdri_os_read_text("/", text, sizeof(text)), -EISDIR);
	unlink(path);
}

static const struct harness_case cases[] = {
	{ "os_failures_are_results_not_errno", failures_are_results_not_errno },
	{ "os_descriptors_close_on_exec", descriptors_close_on_exec },
	{ "os_open_is_repeated_after_signals", open_is_repeated_after_signals },
	{ "os_moved_and_hidden_mappings", moved_and_hidden_mappings },
	{ "os_wiped_in_a_child", wiped_in_a_child },
	{ "os_peek", peek_reads_or_refuses },
	{ "os_peek_without_permission", peek_without_permission },
	{ "os_text_is_cut_and_terminated", text_is_cut_and_terminated },
};

HARNESS_MAIN(cases)
