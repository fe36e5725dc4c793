/* SPDX-License-Identifier: MIT */
/* gdrcopy_info: which back ends open here and why not, the GPUs, and the copy routines. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "backend/backend.h"
#include "common/device.h"
#include "common/gpu_buffer.h"
#include "common/json.h"
#include "common/mapping.h"
#include "common/nvml.h"
#include "common/options.h"
#include "common/report.h"
#include "common/versions.h"
#include "copy/engine.h"
#include "core/config.h"

static bool probe;

static const struct option_spec option_table[] = {
	{ 'p', "probe", NULL, "also pin and map 64 KiB on each GPU (this starts CUDA contexts)" },
	{ 0 }
};

static void take_option(int letter, const char *argument)
{
	(void)argument;
	if (letter == 'p')
		probe = true;
}

/* Opens a back end as gdr_open would and closes it again. */
static bool try_backend(const struct gdri_backend_ops *backend, const struct gdri_config *config,
			struct gdri_reason *why)
{
	struct gdri_backend_session *session;
	int fd = -1;

	if (backend->open(config, &session, &fd, why))
		return false;
	session->fd = &fd;
	backend->close(session);
	return true;
}

/* The first that opens takes the session, but emu only when it is asked for by name. */
static bool is_candidate(const struct gdri_backend_ops *backend, const struct gdri_config *config)
{
	if (config->backend_unknown)
		return false;
	if (config->backend == GDRI_BACKEND_AUTO)
		return backend->id != GDRI_BACKEND_EMU;
	return config->backend == backend->id;
}

static void report_backend(const struct gdri_backend_ops *backend, bool opens, bool used,
			   const char *reason)
{
	if (opens)
		say("  %-8s opens%s\n", backend->name,
		    used ? ", and is used" :
		    backend->id == GDRI_BACKEND_EMU ? " (by name only: GDRCOPY_BACKEND=emu)" : "");
	else
		say("  %-8s does not open: %s\n", backend->name, reason);
	json_open_object(NULL);
	json_string("name", backend->name);
	json_bool("opens", opens);
	json_bool("used", used);
	json_string("reason", opens ? NULL : reason);
	json_close();
}

/* true when gdr_open would succeed. */
static bool report_backends(const struct gdri_config *config)
{
	static const struct gdri_backend_ops *const backends[] = {
		&gdri_backend_gdrdrv, &gdri_backend_dmabuf, &gdri_backend_nvrm, &gdri_backend_emu
	};
	bool found = false;

	say("back ends, in the order of trial%s%s:\n",
	    config->backend_name[0] ? "; GDRCOPY_BACKEND=" : "", config->backend_name);
	json_string("backend_request", config->backend_name[0] ? config->backend_name : NULL);
	json_open_array("back_ends");
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		struct gdri_reason why = { .text = "" };
		bool opens = try_backend(backends[i], config, &why);
		bool used = opens && !found && is_candidate(backends[i], config);

		found = found || used;
		report_backend(backends[i], opens, used, why.text);
	}
	json_close();
	return found;
}

static void report_routines(const struct gdri_config *config)
{
	struct gdri_copy_engine engine;
	const char *name;
	bool usable, all = true;

	gdri_copy_engine_select(config->copy_routine, &config->log, &engine);
	say("copy routines of this CPU:");
	json_open_array("routines");
	for (unsigned i = 0; (name = gdri_copy_routine_name(i, &usable)); i++) {
		say(" %s%s", name, usable ? "" : "(-)");
		all = all && usable;
		json_open_object(NULL);
		json_string("name", name);
		json_bool("usable", usable);
		json_close();
	}
	json_close();
	say("%s\n", all ? "" : "   (-): this CPU cannot run it");
	say("chosen for write-combined memory: %s to write, %s to read\n", engine.store_name,
	    engine.load_name);
	json_string("store_routine", engine.store_name);
	json_string("load_routine", engine.load_name);
}

static void report_bar1(const struct gpu *gpu)
{
	struct nvml_bar1 bar1 = { 0, 0 };
	const char *why = nvml_read_bar1(gpu->bus_id, &bar1);

	if (why) {
		say("    BAR1: unknown (%s)\n", why);
		return;
	}
	say("    BAR1: %" PRIu64 " MiB, of which %" PRIu64 " MiB are in use\n", bar1.total >> 20,
	    bar1.used >> 20);
	json_uint("bar1_total", bar1.total);
	json_uint("bar1_used", bar1.used);
}

/* Pins and maps; NULL, or the call that failed. */
static const char *try_mapping(const struct gpu_buffer *buffer, struct mapping *mapping, int *error)
{
	*error = gdr_pin_buffer(mapping->g, buffer->ptr, buffer->size, 0, 0, &mapping->handle);
	if (*error)
		return "gdr_pin_buffer";
	*error = gdr_map(mapping->g, mapping->handle, &mapping->base, buffer->size);
	if (*error)
		return "gdr_map";
	*error = gdr_get_info(mapping->g, mapping->handle, &mapping->info);
	return *error ? "gdr_get_info" : NULL;
}

static void report_mapping(const struct gpu_buffer *buffer, struct mapping *mapping)
{
	const char *type = "unknown";
	const char *failed;
	int error;

	failed = try_mapping(buffer, mapping, &error);
	if (failed) {
		say("    mapping: none, %s fails with %d (%s)\n", failed, error, strerror(error));
		json_string("mapping_type", NULL);
		return;
	}
	gdr_get_mapping_type_string(mapping->info.mapping_type, &type);
	say("    mapping: %s, by back end %s\n", type, mapping_backend(mapping));
	json_string("mapping_type", type);
	json_string("mapping_back_end", mapping_backend(mapping));
}

/* What a mapping really is can only be told by making one. */
static void probe_gpu(struct gpu *gpu)
{
	struct mapping mapping = { .g = gdr_open() };
	struct gpu_buffer buffer;

	if (!mapping.g)
		return;	/* the list of back ends has said so */
	CU(cuDevicePrimaryCtxRetain, &gpu->ctx, gpu->device);
	CU(cuCtxSetCurrent, gpu->ctx);
	gpu_buffer_alloc(GPU_ALLOC_MALLOC, gpu->device, GPU_PAGE_SIZE, &buffer);
	report_mapping(&buffer, &mapping);
	GDR(gdr_close, mapping.g);
	gpu_buffer_free(&buffer);
	gpu_release(gpu);
}

static void report_gpu(int ordinal)
{
	int major = 0, minor = 0;
	struct gpu gpu;

	gpu_describe(ordinal, &gpu);
	CU(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device);
	CU(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device);
	say("  GPU id:%d; name: %s; Bus id: %s\n", ordinal, gpu.name, gpu.bus_id);
	if (gpu.emulated)
		say("    GPU is emulated: figures say nothing about hardware\n");
	say("    compute capability: %d.%d; GPUDirect RDMA: %s\n", major, minor,
	    gpu.rdma ? "yes" : "no");
	if (gpu.numa_node >= 0)
		say("    NUMA node: %d\n", gpu.numa_node);
	json_open_object(NULL);
	json_uint("id", (uint64_t)ordinal);
	json_string("name", gpu.name);
	json_string("bus_id", gpu.bus_id);
	json_bool("emulated", gpu.emulated);
	json_uint("compute_major", (uint64_t)major);
	json_uint("compute_minor", (uint64_t)minor);
	json_bool("gpu_direct_rdma", gpu.rdma);
	if (gpu.numa_node >= 0)
		json_uint("numa_node", (uint64_t)gpu.numa_node);
	report_bar1(&gpu);
	if (probe)
		probe_gpu(&gpu);
	json_close();
}

static void report_gpus(void)
{
	const char *why = cuda_driver_try_load();
	int count = 0;

	say("GPUs:\n");
	json_string("cuda_error", why);
	json_open_array("gpus");
	if (why)
		say("  none: %s\n", why);
	else
		CU(cuDeviceGetCount, &count);
	for (int i = 0; i < count; i++)
		report_gpu(i);
	json_close();
}

int main(int argc, char **argv)
{
	static const struct tool_spec spec = {
		.name = "gdrcopy_info",
		.summary = "Shows which back end gdr_open takes here and why not the others, the "
			   "GPUs, and the copy routines.",
		.options = option_table,
		.take = take_option,
		.no_memory = true
	};
	struct gdri_config config;
	bool works;

	options_parse(&spec, argc, argv);
	gdri_core_config_read(&config);
	json_open_object(NULL);
	json_string("tool", spec.name);
	versions_report();
	works = report_backends(&config);
	report_routines(&config);
	report_gpus();
	json_bool("usable", works);
	json_close();
	if (!works)
		fail("no back end is usable: the list above has the reasons");
	return report_finish();
}
