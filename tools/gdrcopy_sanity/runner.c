/* SPDX-License-Identifier: MIT */
/* Runs one test in a process of its own, or waives it before, and says how it ended. */
#include "runner.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "child.h"
#include "machine.h"

/* Why the machine at hand cannot run the test; NULL when it can. */
static const char *unmet_need(unsigned needs)
{
	if ((needs & NEED_TWO_PROCESSES) && machine.compute_mode != 0)
		return "needs two processes on one GPU, whose compute mode is not default";
	if ((needs & NEED_DESCRIPTOR) && machine.dmabuf)
		return "the dma-buf back end has no session descriptor of its own";
	if ((needs & NEED_COHERENT) && !machine.coherent)
		return "needs a GPU with a coherent CPU link";
	if ((needs & NEED_TOKENS) && machine.persistent)
		return "P2P tokens go with non-persistent mappings; these are persistent";
	if (!(needs & NEED_FORCE_PCIE))
		return NULL;
	if (!machine.force_pcie)
		return "GDR_PIN_FLAG_FORCE_PCIE is not supported (attribute 2)";
	if (!machine.coherent)
		return "GDR_PIN_FLAG_FORCE_PCIE needs a GPU with a coherent CPU link";
	if (machine.compute_major < 10)
		return "GDR_PIN_FLAG_FORCE_PCIE needs compute capability 10.0 or newer";
	return NULL;
}

static void call_test(const void *arg)
{
	const struct test *test = arg;

	test->run(test->memory);
}

static void judge(const struct child_end *end, unsigned timeout_s, struct outcome *outcome)
{
	const char *reason = verdict_reason();
	int code = WEXITSTATUS(end->status);

	outcome->verdict = VERDICT_FAILED;
	outcome->seconds = end->seconds;
	if (end->timed_out) {
		snprintf(outcome->reason, sizeof(outcome->reason), "no end after %u seconds%s%s",
			 timeout_s, reason[0] ? ": " : "", reason);
	} else if (WIFSIGNALED(end->status)) {
		snprintf(outcome->reason, sizeof(outcome->reason), "died of signal %d (%s)",
			 WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
	} else {
		/* A reason without a verdict is that of a second process: a failure. */
		if (code == VERDICT_WAIVED || (code == VERDICT_PASSED && !reason[0]))
			outcome->verdict = (enum verdict)code;
		snprintf(outcome->reason, sizeof(outcome->reason), "%s", reason);
		if (!reason[0] && code != VERDICT_PASSED)
			snprintf(outcome->reason, sizeof(outcome->reason), "exit status %d", code);
	}
}

void runner_run(const struct test *test, unsigned timeout_s, struct outcome *outcome)
{
	struct child_end end = { .status = 0 };
	const char *unmet = unmet_need(test->needs);
	int error;

	memset(outcome, 0, sizeof(*outcome));
	if (machine.verdict != VERDICT_PASSED) {
		outcome->verdict = machine.verdict;
		snprintf(outcome->reason, sizeof(outcome->reason), "%s", machine.reason);
		return;
	}
	if (unmet) {
		outcome->verdict = VERDICT_WAIVED;
		snprintf(outcome->reason, sizeof(outcome->reason), "%s", unmet);
		return;
	}
	verdict_reset();
	error = child_run(call_test, test, timeout_s, &end);
	if (error) {
		outcome->verdict = VERDICT_FAILED;
		snprintf(outcome->reason, sizeof(outcome->reason), "fork: %s", strerror(error));
		return;
	}
	judge(&end, timeout_s, outcome);
}
