/* SPDX-License-Identifier: MIT */
/*
 * A JSON writer: two-space indentation, one value a line.  The text stays in
 * memory until its last bracket, so that a tool that fails prints none of it.
 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

#define JSON_DEPTH 16

static FILE *text;
static char *text_bytes;
static size_t text_size;
static char closers[JSON_DEPTH];
static unsigned depth;
static bool first = true;

void json_enable(void)
{
	text = open_memstream(&text_bytes, &text_size);
	if (!text)
		fail("no memory for the JSON text");
}

bool json_enabled(void)
{
	return text != NULL;
}

/* Bytes of UTF-8 sequences pass through; JSON asks only for these escapes. */
static void write_string(const char *string)
{
	putc('"', text);
	for (; *string; string++) {
		unsigned char c = (unsigned char)*string;

		if (c == '"' || c == '\\')
			fprintf(text, "\\%c", c);
		else if (c < 0x20)
			fprintf(text, "\\u%04x", c);
		else
			putc(c, text);
	}
	putc('"', text);
}

static void start_value(const char *key)
{
	if (!first)
		putc(',', text);
	if (depth > 0)
		fprintf(text, "\n%*s", (int)depth * 2, "");
	first = false;
	if (key) {
		write_string(key);
		fputs(": ", text);
	}
}

static void open_bracket(const char *key, char opener, char closer)
{
	if (!text || depth == JSON_DEPTH)
		return;
	start_value(key);
	putc(opener, text);
	closers[depth++] = closer;
	first = true;
}

void json_open_object(const char *key)
{
	open_bracket(key, '{', '}');
}

void json_open_array(const char *key)
{
	open_bracket(key, '[', ']');
}

static void print_text(void)
{
	putc('\n', text);
	if (fclose(text))
		fail("no memory for the JSON text");
	fwrite(text_bytes, 1, text_size, stdout);
	free(text_bytes);
	text = NULL;
}

void json_close(void)
{
	if (!text || depth == 0)
		return;
	depth--;
	if (!first)
		fprintf(text, "\n%*s", (int)depth * 2, "");
	putc(closers[depth], text);
	first = false;
	if (depth == 0)
		print_text();
}

void json_string(const char *key, const char *value)
{
	if (!text)
		return;
	start_value(key);
	if (value)
		write_string(value);
	else
		fputs("null", text);
}

void json_uint(const char *key, uint64_t value)
{
	if (!text)
		return;
	start_value(key);
	fprintf(text, "%" PRIu64, value);
}

void json_double(const char *key, double value)
{
	if (!text)
		return;
	start_value(key);
	if (isfinite(value))
		fprintf(text, "%.6f", value);
	else
		fputs("null", text);
}

void json_bool(const char *key, bool value)
{
	if (!text)
		return;
	start_value(key);
	fputs(value ? "true" : "false", text);
}

void json_hex(const char *key, uint64_t value)
{
	char hex[24];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, value);
	json_string(key, hex);
}

void json_stats(const char *key, const struct stats *stats)
{
	json_open_object(key);
	json_double("median", stats->median);
	json_double("min", stats->min);
	json_double("mean", stats->mean);
	json_double("p99", stats->p99);
	json_double("max", stats->max);
	json_close();
}
