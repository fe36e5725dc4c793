/* SPDX-License-Identifier: MIT */
/* Keeps pthread_cancel away while a call holds what others wait for. */
#ifndef GDRI_OS_CANCEL_H
#define GDRI_OS_CANCEL_H

#include <pthread.h>

static inline int gdri_os_cancel_hold(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void gdri_os_cancel_restore(const int *state)
{
	pthread_setcancelstate(*state, NULL);
}

/*
 * A declaration: from here to the end of the block the thread is not cancelled.
 * A request that arrives meanwhile stays pending for the program's next
 * cancellation point.
 */
#define GDRI_OS_NO_CANCEL                                                                    \
	__attribute__((cleanup(gdri_os_cancel_restore), unused)) const int gdri_cancel_state = \
		gdri_os_cancel_hold()

#endif
