/* SPDX-License-Identifier: MIT */
/* What this process holds open, for tests that look for leaks. */
#include "process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

void process_list_fds(struct process_fds *fds)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	memset(fds, 0, sizeof(*fds));
	if (!dir)
		FAIL("/proc/self/fd cannot be read");
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd == dirfd(dir) || fd >= PROCESS_MAX_FDS)
			continue;
		fds->open[fd] = true;
		fds->count++;
	}
	closedir(dir);
}

int process_count_fds(void)
{
	struct process_fds fds;

	process_list_fds(&fds);
	return fds.count;
}

int process_count_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int count = 0, c;

	if (!maps)
		FAIL("/proc/self/maps cannot be read");
	while ((c = getc(maps)) != EOF)
		count += c == '\n';
	fclose(maps);
	return count;
}

void process_remember(struct process_state *state)
{
	state->fds = process_count_fds();
	state->maps = process_count_maps();
}

void process_require_same(const struct process_state *state, int slack, const char *after)
{
	struct process_state now;

	process_remember(&now);
	DEBUG("%s: descriptors %d -> %d, mappings %d -> %d", after, state->fds, now.fds,
	      state->maps, now.maps);
	if (now.fds > state->fds)
		FAIL("%s: %d descriptors are open, %d before", after, now.fds, state->fds);
	if (now.maps > state->maps + slack)
		FAIL("%s: the process has %d mappings, %d before", after, now.maps, state->maps);
}
