/* SPDX-License-Identifier: MIT */
/* Cases that each need a process and a GDRCOPY_EMU of their own. */
#ifndef TESTS_EMU_HELPER_CASE_H
#define TESTS_EMU_HELPER_CASE_H

#include "cuda.h"
#include "harness.h"

/*
 * The emulated driver reads GDRCOPY_EMU once and ties itself to the process
 * that called cuInit.  So the program starts itself again for each case, with
 * emu as the variable's value (NULL: none).  A role is not run by itself but
 * by a case, through emu_start_role().
 */
struct emu_case {
	const char *name;
	const char *emu;
	void (*run)(void);
	bool role;
};

int emu_case_main(const struct emu_case *cases, size_t count, int argc, char **argv);

#define EMU_CASE_MAIN(cases)                                                                 \
	int main(int argc, char **argv)                                                      \
	{                                                                                    \
		return emu_case_main(cases, sizeof(cases) / sizeof((cases)[0]), argc, argv); \
	}

/* Starts a role in a new process that inherits fd as its standard input. */
int emu_start_role(const char *name, int fd);

/* True when that process ended with all checks passed. */
bool emu_role_passed(int pid);

/* cuInit, and a context on the device that is current. */
CUcontext emu_start(int device);

#define REQUIRE_CU(call) REQUIRE_EQ(call, CUDA_SUCCESS)
#define CHECK_CU(call) CHECK_EQ(call, CUDA_SUCCESS)

#endif
