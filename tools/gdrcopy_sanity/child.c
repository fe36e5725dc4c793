/* SPDX-License-Identifier: MIT */
/* Runs a function in a process of its own and makes sure that it ends. */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Leaves the child unreaped, so that its number still names its group. */
static bool has_ended(pid_t child)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
	       info.si_pid == child;
}

/* SIGCHLD is blocked, so an end between the test and the wait is not missed. */
static bool wait_for_end(pid_t child, double deadline, const sigset_t *sigchld)
{
	while (!has_ended(child)) {
		double left = deadline - now();
		struct timespec wait;

		if (left <= 0)
			return false;
		wait.tv_sec = (time_t)left;
		wait.tv_nsec = (long)((left - (double)wait.tv_sec) * 1e9);
		sigtimedwait(sigchld, NULL, &wait);
	}
	return true;
}

_Noreturn static void be_child(void (*body)(const void *), const void *arg, const sigset_t *mask)
{
	setpgid(0, 0);
	/* An interrupt from the terminal reaches the runner alone. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	body(arg);
	exit(EXIT_SUCCESS);
}

int child_run(void (*body)(const void *), const void *arg, unsigned timeout_s,
	      struct child_end *end)
{
	sigset_t sigchld, mask;
	double start = now();
	int error = 0;
	pid_t child;

	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &sigchld, &mask);
	fflush(NULL);
	child = fork();
	if (child == 0)
		be_child(body, arg, &mask);
	if (child < 0) {
		error = errno;
	} else {
		setpgid(child, child);
		end->timed_out = !wait_for_end(child, start + timeout_s, &sigchld);
		kill(-child, SIGKILL);
		waitpid(child, &end->status, 0);
		end->seconds = now() - start;
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return error;
}
