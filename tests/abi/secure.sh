#!/bin/bash
# SPDX-License-Identifier: MIT
# A set-user-ID program takes no orders from its caller's environment.
set -u
cd "$(dirname "$0")/../.." || exit 2
LIB=$(realpath "${GDRCOPY_LIBDIR:-src/userspace}")
mkdir -p "${GDRCOPY_BUILD:-build}"
WORK=$(mktemp -d "$(realpath "${GDRCOPY_BUILD:-build}")/secure.XXXXXX") || exit 2
trap 'rm -rf "$WORK"' EXIT

if [ "$(id -u)" != 0 ]; then
	echo "skip set-user-id-ignores-variables: needs root to make such a program"
	exit 77
fi
# Static, since the loader ignores LD_LIBRARY_PATH for such programs.
cat >"$WORK/open.c" <<'END'
#include "gdrapi.h"
#include <stdio.h>
#include <sys/auxv.h>
int main(void)
{
	gdr_t g = gdr_open();

	gdr_close(NULL);
	printf("secure=%lu session=%d\n", getauxval(AT_SECURE), g != NULL);
	return 0;
}
END
gcc -Wall -Werror -Iinclude -o "$WORK/open" "$WORK/open.c" "$LIB/libgdrapi.a" -ldl -lpthread ||
	exit 1
run() {
	env GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=1 GDRCOPY_BACKEND=bogus "$WORK/open" 2>&1
}

plain=$(run)
chmod 755 "$WORK"
chown nobody "$WORK/open" && chmod 4755 "$WORK/open"
secure=$(run)
if ! grep -q secure=1 <<<"$secure"; then
	echo "skip set-user-id-ignores-variables: this file system knows no set-user-ID"
	exit 77
fi
if grep -q GDRCOPY_BACKEND=bogus <<<"$plain" && [ "$(wc -l <<<"$secure")" = 1 ]; then
	echo "ok set-user-id-ignores-variables"
else
	echo "not ok set-user-id-ignores-variables"
	printf '%s\n' "$plain" "$secure" >&2
	exit 1
fi
