/* SPDX-License-Identifier: MIT */
/* Threads that run one function until they are told to stop. */
#include "api/helper_thread.h"

#include <time.h>

#include "harness.h"

void team_start(struct team *team, int count, void *(*body)(void *), void *arg, size_t stride)
{
	atomic_store(&team->stop, false);
	team->count = 0;
	for (int i = 0; i < count; i++) {
		REQUIRE_EQ(pthread_create(&team->thread[i], NULL, body,
					  (char *)arg + (size_t)i * stride), 0);
		team->count++;
	}
}

void team_join(struct team *team)
{
	atomic_store(&team->stop, true);
	for (int i = 0; i < team->count; i++)
		pthread_join(team->thread[i], NULL);
}

void thread_run(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	REQUIRE_EQ(pthread_create(&thread, NULL, body, arg), 0);
	pthread_join(thread, NULL);
}

void thread_nap(long microseconds)
{
	const struct timespec pause = { .tv_nsec = microseconds * 1000 };

	nanosleep(&pause, NULL);
}
