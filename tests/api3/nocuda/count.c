/* SPDX-License-Identifier: MIT */
/*
 * A libcuda in front of the emulated one.  nocuda.sh generates calls.S, in which
 * each exported function counts and jumps to where this finds the real one.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

extern const char *const count_names[];
extern void *count_targets[];
extern const unsigned long count_of_names;

void count_init(void);

/* The real one's calls of itself are not the program's, so they stay inside. */
__attribute__((constructor)) void count_init(void)
{
	void *library = dlopen(REAL_LIBCUDA, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	for (unsigned long i = 0; library && i < count_of_names; i++)
		count_targets[i] = dlsym(library, count_names[i]);
	for (unsigned long i = 0; i < count_of_names; i++)
		if (!count_targets[i]) {
			fprintf(stderr, "%s is not in %s\n", count_names[i], REAL_LIBCUDA);
			abort();
		}
}
