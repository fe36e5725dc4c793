#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs and libraries of two makers in all combinations: one client source,
# built with the project's header or with declarations written from the facts,
# linked to this library (shared, static, link-time optimised) or to a model of
# another one, and run with either.
set -u
cd "$(dirname "$0")/../.." || exit 2
LIB=$(realpath "${GDRCOPY_LIBDIR:-src/userspace}")
EMU=$(realpath "${GDRCOPY_BUILD:-build}/emu")
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
MODEL=$WORK/model
CLIENT=tests/abi/helper_client.c
WARN="-Wall -Wextra -Werror"
MODEL_ADDRESS=0x7f1234560000
rc=0

# check NAME COMMAND...
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

run_ours() {
	LD_LIBRARY_PATH=$LIB:$EMU GDRCOPY_BACKEND=emu "$1" emu
}

run_model() {
	LD_LIBRARY_PATH=$MODEL "$1" $MODEL_ADDRESS
}

mkdir "$MODEL"
check model-builds gcc -std=gnu11 -D_GNU_SOURCE $WARN -O2 -fPIC -shared -Itests/abi \
	-Wl,-soname,libgdrapi.so.2 -o "$MODEL/libgdrapi.so.2" tests/abi/helper_model.c
ln -s libgdrapi.so.2 "$MODEL/libgdrapi.so"

# LINK=... pair NAME COMPILER...: build with either header, run with both libraries.
pair() {
	local name=$1 header
	shift
	for header in gdrapi.h facts_2_6.h; do
		check "$name-$header-builds" "$@" $WARN -O2 -Iinclude -Itests/abi \
			"-DDECLARATIONS=\"$header\"" -o "$WORK/$name" "$CLIENT" $LINK
		check "$name-$header-on-ours" run_ours "$WORK/$name"
		[ "${ONLY_OURS-}" ] || check "$name-$header-on-model" run_model "$WORK/$name"
	done
}

for compiler in "gcc -std=c11" "clang -std=c11" \
		"g++ -x c++ -std=c++17" "clang++ -x c++ -std=c++11"; do
	name=${compiler%% *}
	LINK="-x none -L$LIB -lgdrapi -ldl" pair "$name-shared" $compiler -D_GNU_SOURCE
	LINK="-x none -L$MODEL -lgdrapi -ldl" pair "$name-model" $compiler -D_GNU_SOURCE
	LINK="-x none -L$LIB -l:libgdrapi.a -ldl -lpthread" ONLY_OURS=1 \
		pair "$name-static" $compiler -D_GNU_SOURCE
done
LINK="-L$LIB -lgdrapi -ldl" pair gcc-shared-lto gcc -std=c11 -D_GNU_SOURCE -flto
LINK="-L$LIB -l:libgdrapi.a -ldl -lpthread" ONLY_OURS=1 \
	pair gcc-static-lto gcc -std=c11 -D_GNU_SOURCE -flto
LINK="-L$LIB -lgdrapi -ldl -Wl,-z,now" pair gcc-now gcc -std=c11 -D_GNU_SOURCE
LINK="-L$LIB -lgdrapi -ldl -Wl,-z,lazy" pair gcc-lazy gcc -std=c11 -D_GNU_SOURCE
LINK="-L$LIB -l:libgdrapi.a -ldl -lpthread" ONLY_OURS=1 \
	pair gcc-static-pie gcc -std=c11 -D_GNU_SOURCE -fPIE -pie
LINK="-L$LIB -l:libgdrapi.a -ldl -lpthread" ONLY_OURS=1 \
	pair gcc-static-nopie gcc -std=c11 -D_GNU_SOURCE -fno-pie -no-pie

# An autoconf test: one symbol, one library, nothing else.
cat >"$WORK/conftest.c" <<'END'
char gdr_pin_buffer(void);
int main(void)
{
	return gdr_pin_buffer == 0;
}
END
check autoconf gcc -w -o "$WORK/conftest" "$WORK/conftest.c" -L"$LIB" -lgdrapi
check autoconf-runs env LD_LIBRARY_PATH="$LIB" "$WORK/conftest"

# Names of the program's own, the same as internal ones, clash with nothing.
cat >"$WORK/clash.c" <<'END'
#include "gdrapi.h"
int gdri_core_table_create = 1, gdri_core_log = 2, gdri_backend_open = 3;
int main(void)
{
	int major, minor;

	gdr_runtime_get_version(&major, &minor);
	return gdr_open() || major + minor != 8 || gdri_core_log != 2;
}
END
check static-names-are-private gcc $WARN -Iinclude -o "$WORK/clash" "$WORK/clash.c" \
	"$LIB/libgdrapi.a" -ldl -lpthread
check static-names-are-private-runs env GDRCOPY_BACKEND=gdrdrv "$WORK/clash"
exit $rc
