#!/bin/bash
# SPDX-License-Identifier: MIT
# The header of version 3 beside that of 2.6: it compiles alone, a file has one of the two, and
# programs have files of both, with each way to link.
set -u
cd "$(dirname "$0")/../.." || exit 2
LIB=$(realpath "${GDRCOPY_LIBDIR:-src/userspace}")
EMU=$(realpath "${GDRCOPY_BUILD:-build}/emu")
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
WARN="-Wall -Wextra -pedantic -Werror -Wshadow -Wundef -Wconversion"
rc=0

# check NAME COMMAND...: passes when the command does.
check() {
	local name=$1 errors
	shift
	if errors=$("$@" 2>&1); then
		echo "ok $name"
	else
		echo "not ok $name"
		echo "$errors" >&2
		rc=1
	fi
}

# compile COMPILER LANGUAGE STANDARD: the program is $WORK/program.
compile() {
	# shellcheck disable=SC2086 # flags are words
	"$1" -x "$2" -std="$3" $WARN -Iinclude -fsyntax-only "$WORK/program"
}

# Refused, with the header's own words.
refused() {
	local errors
	errors=$(compile "$@" 2>&1) && { echo "compiles"; return 1; }
	grep -q 'error.*one of the two interfaces' <<<"$errors" || { echo "$errors"; return 1; }
}

# each NAME COMMAND: by every compiler and standard.
each() {
	local compiler standard
	for compiler in gcc clang; do
		for standard in c99 c11 gnu17; do
			check "$1-$compiler-$standard" "$2" $compiler c $standard
		done
	done
	for compiler in g++ clang++; do
		for standard in c++11 c++17 c++20; do
			check "$1-$compiler-$standard" "$2" $compiler c++ $standard
		done
	done
}

printf '#include "gdrcopy/gdrapi.h"\n#include "gdrcopy/gdrapi.h"\nint unused_;\n' >"$WORK/program"
each v3_header compile
printf '#include "gdrapi.h"\n#include "gdrcopy/gdrapi.h"\nint unused_;\n' >"$WORK/program"
each v3_after_2.6 refused
printf '#include "gdrcopy/gdrapi.h"\n#include "gdrapi.h"\nint unused_;\n' >"$WORK/program"
each 2.6_after_v3 refused

# Values that programs print, store and pass on; they never change.
cat >"$WORK/program" <<'END'
#include "gdrcopy/gdrapi.h"
#ifdef __cplusplus
#define SAME(what, value) static_assert((what) == (value), "")
#else
#define SAME(what, value) _Static_assert((what) == (value), "")
#endif
SAME(GDR_API_MAJOR_VERSION, 3);
SAME(GDR_SUCCESS, 0);
SAME(GDR_ERR_INVALID_ARG, 1);
SAME(GDR_ERR_NO_DEVICE, 2);
SAME(GDR_ERR_OP_NOT_SUPPORTED, 3);
SAME(GDR_ERR_PERMISSION, 4);
SAME(GDR_ERR_NO_MEMORY, 5);
SAME(GDR_ERR_BUSY, 6);
SAME(GDR_ERR_TIMEOUT, 7);
SAME(GDR_ERR_IO, 8);
SAME(GDR_ERR_DRIVER_MISMATCH, 9);
SAME(GDR_ERR_STALE_HANDLE, 10);
SAME(GDR_PIN_BUFFER_SYNC, 1);
SAME(GDR_PIN_BUFFER_UNALIGNED, 2);
SAME(sizeof(gdr_result_t), 4);
SAME(offsetof(gdr_info_t, size), 0);
SAME(offsetof(gdr_status_t, size), 0);
END
for compiler in gcc clang; do
	check "v3_values-$compiler" compile $compiler c c11
done
for compiler in g++ clang++; do
	check "v3_values-$compiler" compile $compiler c++ c++11
done

# One program, two files, one interface each.
FLAGS="-D_GNU_SOURCE -Wall -Wextra -Werror -O2 -Iinclude -Isrc/emu/include -Itests/api3"
PAIR=tests/api3/pair

# both NAME COMPILER LINK: compiles, and copies on the emulated GPU.
both() {
	local name=$1 compiler=$2 link=$3
	# shellcheck disable=SC2086 # flags are words
	check "$name" $compiler $FLAGS -o "$WORK/$name" $PAIR/new.c $PAIR/old.c -x none $link \
		-L"$EMU" -lcuda -ldl -lpthread
	check "$name-runs" env LD_LIBRARY_PATH="$LIB:$EMU" GDRCOPY_BACKEND=emu \
		timeout 60 "$WORK/$name"
}

shared="-L$LIB -lgdrapi"
static="-L$LIB -l:libgdrapi.a"
for compiler in "gcc -std=gnu11" "clang -std=gnu11" "g++ -x c++ -std=c++11" \
		"clang++ -x c++ -std=c++17"; do
	both "pair-${compiler%% *}-shared" "$compiler" "$shared"
	both "pair-${compiler%% *}-static" "$compiler" "$static"
done
both pair-gcc-shared-lto "gcc -std=gnu11 -flto" "$shared"
both pair-gcc-static-lto "gcc -std=gnu11 -flto" "$static"
both pair-gcc-static-nopie "gcc -std=gnu11 -fno-pie -no-pie" "$static"
both pair-gcc-now "gcc -std=gnu11" "$shared -Wl,-z,now"
exit $rc
