/* SPDX-License-Identifier: MIT */
/* gdrcopy_pplat: the round trip of a flag, and of a payload, between a CPU thread and the GPU. */
#include <inttypes.h>
#include <stdlib.h>

#include "../common/json.h"
#include "../common/options.h"
#include "../common/report.h"
#include "../common/stats.h"
#include "kernel_ptx.h"
#include "pingpong.h"

static struct pingpong_options options = {
	.rounds = 1000,
	.timeout_s = 10,
	.blocks = 8,
	.threads = 1024,
	.direction = PPLAT_CPU_TO_GPU,
	.gpu_flag = PLACE_GPUMEM,
	.cpu_flag = PLACE_HOSTMEM,
	.data = PLACE_GPUMEM
};

static const struct option_spec option_table[] = {
	{ 't', "iters", "N", "round trips (default 1000)" },
	{ 'u', "timeout", "SECONDS", "give up when one takes longer; 0: never (default 10)" },
	{ 's', "size", "BYTES", "payload, a multiple of 4; 0: the flag alone (default 0)" },
	{ 'B', "blocks", "N", "blocks of the kernel when there is a payload (default 8)" },
	{ 'T', "threads", "N", "threads of each of them (default 1024)" },
	{ 'm', "mode", "MODE", "0: payload from CPU to GPU (default); 1: from GPU to CPU" },
	{ 'G', "gpu-flag", "PLACE", "gpumem (default) or hostmem: the flag that the GPU polls" },
	{ 'C', "cpu-flag", "PLACE", "hostmem (default) or gpumem: the flag that the CPU polls" },
	{ 'D', "data", "PLACE", "gpumem (default) or hostmem: the payload" },
	{ 0 }
};

static const char *const place_names[] = { "gpumem", "hostmem", NULL };

static void take_option(int letter, const char *argument)
{
	if (letter == 't')
		options.rounds = (uint32_t)options_number("-t", argument, 1, 1000000000);
	else if (letter == 'u')
		options.timeout_s = (unsigned)options_number("-u", argument, 0, 1000000000);
	else if (letter == 's')
		options.payload = options_number("-s", argument, 0, (size_t)1 << 32);
	else if (letter == 'B')
		options.blocks = (unsigned)options_number("-B", argument, 1, 65535);
	else if (letter == 'T')
		options.threads = (unsigned)options_number("-T", argument, 1, 1024);
	else if (letter == 'm')
		options.direction = (int)options_number("-m", argument, 0, 1);
	else if (letter == 'G')
		options.gpu_flag = (enum place)options_choice("-G", argument, place_names);
	else if (letter == 'C')
		options.cpu_flag = (enum place)options_choice("-C", argument, place_names);
	else if (letter == 'D')
		options.data = (enum place)options_choice("-D", argument, place_names);
}

static void report_options(void)
{
	const char *mode = options.direction == PPLAT_CPU_TO_GPU ? "CPU to GPU" : "GPU to CPU";

	say("number of iterations: %u\npayload size: %zu\npayload direction: %s\n",
	    options.rounds, options.payload, mode);
	say("number of blocks: %u\nnumber of threads per block: %u\n",
	    options.payload ? options.blocks : 1, options.payload ? options.threads : 1);
	say("flag polled by the GPU: %s\nflag polled by the CPU: %s\npayload in: %s\n",
	    place_names[options.gpu_flag], place_names[options.cpu_flag],
	    place_names[options.data]);
	json_uint("iterations", options.rounds);
	json_uint("payload_size", options.payload);
	json_string("payload_direction", mode);
	json_uint("blocks", options.payload ? options.blocks : 1);
	json_uint("threads", options.payload ? options.threads : 1);
	json_string("gpu_flag", place_names[options.gpu_flag]);
	json_string("cpu_flag", place_names[options.cpu_flag]);
	json_string("data", place_names[options.data]);
	json_string("alloc", gpu_alloc_name(options.alloc));
}

int main(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdrcopy_pplat",
		.summary = "Measures the round trip between a CPU thread that writes a flag and a "
			   "GPU kernel that answers.",
		.options = option_table,
		.take = take_option
	};
	struct common_options common = options_parse(&spec, argc, argv);
	struct pingpong pp;
	struct stats stats;
	struct gpu gpu;
	double *us;

	if (options.payload % sizeof(uint32_t))
		fail_with(TOOL_USAGE, "-s %zu is not a multiple of 4", options.payload);
	options.alloc = common.alloc;
	options.map_flags = common.map_flags;
	us = malloc(options.rounds * sizeof(*us));
	if (!us)
		fail("no host memory for %u samples: lower -t", options.rounds);
	json_open_object(NULL);
	json_string("tool", spec.name);
	gpu_select(common.device, common.bind, &gpu);
	report_options();
	pingpong_open(&pp, &gpu, &options);
	mapping_report(&pp.mapping);

	pingpong_run(&pp, us);
	stats = stats_of(us, options.rounds);
	say("Round-trip latency per iteration is (min) %.3f, (median) %.3f us\n", stats.min,
	    stats.median);
	say("Slowest iterations: (p99) %.3f, (max) %.3f us\n", stats.p99, stats.max);
	json_stats("round_trip_us", &stats);

	pingpong_close(&pp);
	gpu_release(&gpu);
	json_close();
	free(us);
	return report_finish();
}
