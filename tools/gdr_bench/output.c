/* SPDX-License-Identifier: MIT */
/* The rows of a sweep, and what stands above them. */
#include "output.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/json.h"
#include "common/report.h"
#include "common/versions.h"

/* Settings that change what "auto" means. */
static const char *const variables[] = {
	"GDRCOPY_BACKEND", "GDRCOPY_COPY", "GDRCOPY_DMA", "GDRCOPY_ROUTE", "GDRCOPY_STRICT_P2P",
	"GDRCOPY_CALIBRATION"
};

static void print_variables(const char *prefix)
{
	json_open_object("environment");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (!value)
			continue;
		if (!json_enabled())
			printf("%senvironment: %s=%s\n", prefix, variables[i], value);
		json_string(variables[i], value);
	}
	json_close();
}

/* Lines of CSV that are no rows begin with #. */
static void print_csv_start(const struct gpu *gpu)
{
	struct versions versions;

	versions_read(&versions);
	printf("# gdr_bench --sweep: each sample is one synchronous copy, in microseconds\n"
	       "# gpu: %s; bus id: %s; emulated: %s\n", gpu->name, gpu->bus_id,
	       gpu->emulated ? "yes" : "no");
	if (gpu->emulated)
		printf("# GPU is emulated: figures say nothing about hardware\n");
	printf("# versions: libgdrapi %s; CUDA driver %s; nvidia.ko %s; gdrdrv %s\n",
	       versions.library, versions.cuda, versions.nvidia, versions.gdrdrv);
	print_variables("# ");
}

void output_start(const struct sweep_options *options, struct gpu *gpu)
{
	/* Silent in CSV, as in JSON: what it says has to become comments. */
	report_start("gdr_bench", options->format != FORMAT_TEXT);
	json_open_object(NULL);
	json_string("tool", "gdr_bench");
	gpu_select(options->device, options->bind, gpu);
	if (options->format == FORMAT_CSV)
		print_csv_start(gpu);
	else
		print_variables("");
}

void output_table(enum format format)
{
	if (format == FORMAT_CSV)
		printf("direction,bytes,road,samples,median_us,p99_us,min_us,max_us\n");
	json_open_array("results");
}

void output_table_end(void)
{
	json_close();
}

void output_direction(enum format format, enum direction direction)
{
	const struct road *roads;
	int count;

	if (format != FORMAT_TEXT)
		return;
	roads = roads_of(direction, &count);
	say("\n%s, microseconds of one copy: median/p99\n%10s %7s", direction_name(direction),
	    "bytes", "samples");
	for (int i = 0; i < count; i++)
		say(" %15s", roads[i].name);
	say("\n");
}

/* Four digits, as long as the time has no more before the point. */
static void format_us(char *text, size_t size, double us)
{
	snprintf(text, size, "%.*f", us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0, us);
}

static void print_text_cell(const struct cell *cell, int count)
{
	char median[32], p99[32], both[72];

	say("%10zu %7zu", cell->size, (size_t)cell->rounds);
	for (int i = 0; i < count; i++) {
		format_us(median, sizeof(median), cell->us[i].median);
		format_us(p99, sizeof(p99), cell->us[i].p99);
		snprintf(both, sizeof(both), "%s/%s", median, p99);
		say(" %15s", cell->present[i] ? both : "-");
	}
	say("\n");
}

void output_cell(enum format format, const struct cell *cell)
{
	const char *direction = direction_name(cell->direction);
	int count;
	const struct road *roads = roads_of(cell->direction, &count);

	if (format == FORMAT_TEXT)
		print_text_cell(cell, count);
	for (int i = 0; i < count; i++) {
		const struct stats *us = &cell->us[i];

		if (!cell->present[i])
			continue;
		if (format == FORMAT_CSV)
			printf("%s,%zu,%s,%zu,%.3f,%.3f,%.3f,%.3f\n", direction, cell->size,
			       roads[i].name, (size_t)cell->rounds, us->median, us->p99, us->min,
			       us->max);
		json_open_object(NULL);
		json_string("direction", direction);
		json_uint("bytes", cell->size);
		json_string("road", roads[i].name);
		json_uint("samples", cell->rounds);
		json_stats("us", us);
		json_close();
	}
}
