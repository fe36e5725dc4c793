/* SPDX-License-Identifier: MIT */
/* What gdrcopy_sanity prints: the lines that scripts parse, or JSON. */
#include "summary.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/json.h"
#include "machine.h"

#define MAX_TESTS 128

static const char *const words[] = {
	[VERDICT_PASSED] = "PASSED",
	[VERDICT_FAILED] = "FAILED",
	[VERDICT_WAIVED] = "WAIVED"
};

static unsigned total;
static unsigned count[3];	/* by verdict */
static const char *names[MAX_TESTS];
static enum verdict verdicts[MAX_TESTS];

static void begin_json(void)
{
	const struct versions *versions = &machine.versions;

	json_open_object(NULL);
	json_string("tool", "gdrcopy_sanity");
	json_open_object("versions");
	json_string("library", versions->library);
	json_string("cuda", versions->cuda);
	json_string("nvidia", versions->nvidia);
	json_string("gdrdrv", versions->gdrdrv);
	json_close();
	json_open_object("gpu");
	json_uint("id", (uint64_t)machine.ordinal);
	json_string("name", machine.gpu_name);
	json_string("bus_id", machine.bus_id);
	json_uint("compute_mode", (uint64_t)machine.compute_mode);
	json_bool("gpu_direct_rdma", machine.rdma);
	json_bool("coherent", machine.coherent);
	json_close();
	json_open_object("attributes");
	json_uint("use_persistent_mapping", machine.persistent);
	json_uint("support_pin_flag_force_pcie", machine.force_pcie);
	json_uint("using_dma_buf_mmap", machine.dmabuf);
	json_close();
	json_open_array("tests");
}

void summary_begin(void)
{
	/* What settles the whole run is said once; what ends one test, with that test. */
	if (machine.verdict != VERDICT_PASSED)
		fprintf(stderr, "%s%s\n", machine.verdict == VERDICT_FAILED ? "Error: " : "",
			machine.reason);
	DEBUG("GPU id:%d; name: %s; Bus id: %s", machine.ordinal, machine.gpu_name, machine.bus_id);
	DEBUG("coherent link: %d, compute mode: %d, persistent mapping: %d, force PCIe: %d, "
	      "dma-buf: %d", machine.coherent, machine.compute_mode, machine.persistent,
	      machine.force_pcie, machine.dmabuf);
	if (json_enabled())
		begin_json();
}

void summary_running(const char *name)
{
	if (verdict_verbose && !json_enabled())
		printf("&&&& RUNNING %s\n", name);
}

static void print_json_outcome(const char *name, const struct outcome *outcome)
{
	static const char *const results[] = {
		[VERDICT_PASSED] = "passed",
		[VERDICT_FAILED] = "failed",
		[VERDICT_WAIVED] = "waived"
	};

	json_open_object(NULL);
	json_string("name", name);
	json_string("result", results[outcome->verdict]);
	json_double("seconds", outcome->seconds);
	if (outcome->reason[0])
		json_string("reason", outcome->reason);
	json_close();
}

static void print_outcome(const char *name, const struct outcome *outcome)
{
	if (verdict_verbose && !json_enabled())
		printf("&&&& %s %s\n", words[outcome->verdict], name);
	/* Lines of both streams keep their order in a log that has both. */
	fflush(stdout);
	if (machine.verdict != VERDICT_PASSED || outcome->verdict == VERDICT_PASSED)
		return;
	if (outcome->verdict == VERDICT_FAILED)
		fprintf(stderr, "%s failed: %s\n", name, outcome->reason);
	else
		DEBUG("%s waived: %s", name, outcome->reason);
}

void summary_outcome(const char *name, const struct outcome *outcome)
{
	if (json_enabled())
		print_json_outcome(name, outcome);
	print_outcome(name, outcome);
	if (total < MAX_TESTS) {
		names[total] = name;
		verdicts[total++] = outcome->verdict;
	}
	count[outcome->verdict]++;
}

static void end_json(void)
{
	json_close();
	json_uint("total", total);
	json_uint("passed", count[VERDICT_PASSED]);
	json_uint("failed", count[VERDICT_FAILED]);
	json_uint("waived", count[VERDICT_WAIVED]);
	json_close();
}

static void print_names(enum verdict verdict, const char *title)
{
	if (count[verdict] == 0)
		return;
	printf("%s\n", title);
	for (unsigned i = 0; i < total; i++)
		if (verdicts[i] == verdict)
			printf("    %s\n", names[i]);
}

static void print_summary(void)
{
	printf("Total: %u, Passed: %u, Failed: %u, Waived: %u\n", total, count[VERDICT_PASSED],
	       count[VERDICT_FAILED], count[VERDICT_WAIVED]);
	print_names(VERDICT_FAILED, "List of failed tests:");
	print_names(VERDICT_WAIVED, "List of waived tests:");
}

int summary_end(bool quiet)
{
	int status = count[VERDICT_FAILED] ? EXIT_FAILURE : EXIT_SUCCESS;

	if (json_enabled())
		end_json();
	else if (!quiet)
		print_summary();
	if (fflush(stdout) != 0 || ferror(stdout))
		status = EXIT_FAILURE;
	if (status)
		fprintf(stderr, "Error: Encountered an error or a test failure with status=%d\n",
			status);
	return status;
}
