/* SPDX-License-Identifier: MIT */
/* Which library, driver and module take part. */
#ifndef TOOLS_VERSIONS_H
#define TOOLS_VERSIONS_H

/* Each is a version, or "none" / "not loaded". */
struct versions {
	char library[16];
	char cuda[16];
	char nvidia[32];
	char gdrdrv[16];
};

/* Initialises nothing; CUDA's version is asked of libcuda where there is one. */
void versions_read(struct versions *versions);

/* For --version: the tool's line, then one line for each of the above. */
void versions_print(const char *tool);

/* The line and the JSON object of an ordinary run. */
void versions_report(void);

#endif
