/* SPDX-License-Identifier: MIT */
/* Threads that run one function until they are told to stop. */
#ifndef TESTS_API_HELPER_THREAD_H
#define TESTS_API_HELPER_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TEAM_MAX 320

struct team {
	pthread_t thread[TEAM_MAX];
	int count;
	_Atomic bool stop;
};

/* Starts count threads of body(arg + i * stride). */
void team_start(struct team *team, int count, void *(*body)(void *), void *arg, size_t stride);

/* Sets stop and waits for all. */
void team_join(struct team *team);

/* Runs body in a new thread and waits for its end. */
void thread_run(void *(*body)(void *), void *arg);

/* CPU time is scarce on small machines: lets another thread run. */
void thread_nap(long microseconds);

#endif
