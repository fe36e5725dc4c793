/* SPDX-License-Identifier: MIT */
/* A second process of a test, and the socket between the two. */
#include "peer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verdict.h"

void peer_start(struct peer *peer, void (*body)(struct peer *, void *), void *arg)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		FAIL("socketpair: %s", strerror(errno));
	fflush(NULL);
	peer->process = fork();
	if (peer->process < 0)
		FAIL("fork: %s", strerror(errno));
	peer->socket = pair[peer->process == 0];
	close(pair[peer->process != 0]);
	if (peer->process > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	body(peer, arg);
	fflush(NULL);
	_exit(VERDICT_PASSED);
}

void peer_send(struct peer *peer, const void *data, size_t size)
{
	if (send(peer->socket, data, size, MSG_NOSIGNAL) != (ssize_t)size)
		FAIL("the other process of this test ended early");
}

void peer_receive(struct peer *peer, void *data, size_t size)
{
	if (recv(peer->socket, data, size, MSG_WAITALL) != (ssize_t)size)
		FAIL("the other process of this test ended early");
}

union fd_message {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static void prepare_message(struct msghdr *message, struct iovec *byte, union fd_message *control)
{
	memset(message, 0, sizeof(*message));
	memset(control, 0, sizeof(*control));
	message->msg_iov = byte;
	message->msg_iovlen = 1;
	message->msg_control = control;
	message->msg_controllen = sizeof(*control);
}

void peer_send_fd(struct peer *peer, int fd)
{
	struct iovec byte = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	union fd_message control;
	struct msghdr message;
	struct cmsghdr *header;

	prepare_message(&message, &byte, &control);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(peer->socket, &message, MSG_NOSIGNAL) != 1)
		FAIL("descriptor %d could not be sent: %s", fd, strerror(errno));
}

int peer_receive_fd(struct peer *peer)
{
	struct iovec byte = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	union fd_message control;
	struct msghdr message;
	struct cmsghdr *header;
	int fd;

	prepare_message(&message, &byte, &control);
	if (recvmsg(peer->socket, &message, MSG_CMSG_CLOEXEC) != 1)
		FAIL("the other process of this test ended early");
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		FAIL("no descriptor came with the message");
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

void peer_signal(struct peer *peer)
{
	char byte = 1;

	peer_send(peer, &byte, 1);
}

void peer_wait(struct peer *peer)
{
	char byte;

	peer_receive(peer, &byte, 1);
}

void peer_finish(struct peer *peer)
{
	int status;

	if (waitpid(peer->process, &status, 0) != peer->process)
		FAIL("waitpid: %s", strerror(errno));
	close(peer->socket);
	if (WIFSIGNALED(status))
		FAIL("the second process of this test died of signal %d (%s)", WTERMSIG(status),
		     strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) == VERDICT_WAIVED)
		WAIVE("the second process of this test waived it");
	if (WEXITSTATUS(status) != VERDICT_PASSED)
		FAIL("the second process of this test failed");
}
