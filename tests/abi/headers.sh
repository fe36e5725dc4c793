#!/bin/bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone, twice, in C and C++, without a warning.
set -u
cd "$(dirname "$0")/../.." || exit 2
FLAGS="-Wall -Wextra -pedantic -Werror -Wshadow -Wundef -Wconversion -Iinclude -fsyntax-only"
rc=0

# try NAME COMPILER LANGUAGE STANDARD: the program comes on stdin.
try() {
	local errors
	if errors=$("$2" -x "$3" -std="$4" $FLAGS - 2>&1); then
		echo "ok $1"
	else
		echo "not ok $1"
		echo "$errors" >&2
		rc=1
	fi
}

for header in gdrapi.h gdrconfig.h; do
	text=$(printf '#include "%s"\n#include "%s"\nint unused_;\n' "$header" "$header")
	for compiler in gcc clang; do
		for standard in c99 c11 c17 gnu11; do
			try "$header-$compiler-$standard" $compiler c $standard <<<"$text"
		done
	done
	for compiler in g++ clang++; do
		for standard in c++11 c++14 c++17 c++20; do
			try "$header-$compiler-$standard" $compiler c++ $standard <<<"$text"
		done
	done
done

# Exactly one of the three processor names.
try one-processor gcc c c11 <<'END'
#include "gdrconfig.h"
#if defined(GDRAPI_X86) + defined(GDRAPI_ARM64) + defined(GDRAPI_POWER) != 1
#error "none or several"
#endif
int unused_;
END

# The declarations of 2.6 may be repeated after ours: they are the same types.
for compiler in gcc clang; do
	try "repeated-$compiler" $compiler c c11 <<'END'
#include "gdrapi.h"
gdr_t gdr_open(void);
int gdr_close(gdr_t g);
int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token,
		   uint32_t va_space, gdr_mh_t *handle);
int gdr_map_v2(gdr_t g, gdr_mh_t handle, void **ptr_va, size_t size, int flags);
int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size);
#undef gdr_get_info
int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info);
END
done
exit $rc
