/* SPDX-License-Identifier: MIT */
/* A second process of a test, and the socket between the two. */
#ifndef SANITY_PEER_H
#define SANITY_PEER_H

#include <stddef.h>
#include <sys/types.h>

struct peer {
	int socket;
	pid_t process;		/* 0 in the second process */
};

/*
 * Forks.  In the second process body runs and ends it; in the first the call
 * returns.  Both use the peer to send and receive.
 */
void peer_start(struct peer *peer, void (*body)(struct peer *peer, void *arg), void *arg);

/* The end of the other process fails the test. */
void peer_send(struct peer *peer, const void *data, size_t size);
void peer_receive(struct peer *peer, void *data, size_t size);
void peer_send_fd(struct peer *peer, int fd);
int peer_receive_fd(struct peer *peer);

/* One step of a fixed order: signals the other side, or waits for it. */
void peer_signal(struct peer *peer);
void peer_wait(struct peer *peer);

/* Waits for the second process and fails the test unless it passed. */
void peer_finish(struct peer *peer);

#endif
