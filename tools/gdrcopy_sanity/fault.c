/* SPDX-License-Identifier: MIT */
/* Catches the signal of one access. */
#include "fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

static sigjmp_buf after_fault;

static void leave_access(int signal)
{
	siglongjmp(after_fault, signal);
}

static void catch_faults(struct sigaction *old_bus, struct sigaction *old_segv)
{
	struct sigaction action = { .sa_handler = leave_access };

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, old_bus);
	sigaction(SIGSEGV, &action, old_segv);
}

static int access_word(volatile uint32_t *word, uint32_t *read, const uint32_t *write)
{
	struct sigaction old_bus, old_segv;
	int signal;

	catch_faults(&old_bus, &old_segv);
	signal = sigsetjmp(after_fault, 1);
	if (signal == 0) {
		if (read)
			*read = *word;
		else
			*word = *write;
	}
	sigaction(SIGBUS, &old_bus, NULL);
	sigaction(SIGSEGV, &old_segv, NULL);
	return signal;
}

int fault_read(const volatile uint32_t *word, uint32_t *value)
{
	return access_word((volatile uint32_t *)word, value, NULL);
}

int fault_write(volatile uint32_t *word, uint32_t value)
{
	return access_word(word, NULL, &value);
}
