/* SPDX-License-Identifier: MIT */
/* Ends the program at the first call that fails, and says which one that was. */
#ifndef EXAMPLES_GUIDE_CHECK_H
#define EXAMPLES_GUIDE_CHECK_H

#include <gdrapi.h>
#include <stdio.h>
#include <stdlib.h>

#define GDR(call)                                                                         \
	do {                                                                              \
		gdr_result_t gdr_result = (call);                                         \
		if (gdr_result != GDR_SUCCESS) {                                          \
			fprintf(stderr, "%s: %s\n", #call, gdr_strerror(gdr_result));     \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#define CUDA(call)                                                                        \
	do {                                                                              \
		int cuda_error = (int)(call);                                             \
		if (cuda_error != 0) {                                                    \
			fprintf(stderr, "%s: CUDA error %d\n", #call, cuda_error);        \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#endif
