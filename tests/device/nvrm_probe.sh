#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the library and nvrm_probe, runs both of its parts on the GPU of this
# machine, and ends with "N passed, N failed".  Stops at a fault of the GPU.
#
#   tests/device/nvrm_probe.sh [DIR]	DIR: where objects and raw output go
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(realpath -m "${1:-$root/build/device}")
mkdir -p "$out/lib"
make -s -C "$root/src/userspace" BUILD="$out/obj" OUT="$out/lib"
${CC:-cc} -std=gnu11 -D_GNU_SOURCE= -O1 -Wall -Wextra -I"$root/include" \
	-I"$root/src/emu/include" "$here/nvrm_probe.c" -o "$out/nvrm_probe" \
	"$out/lib/libgdrapi.a" -ldl -lpthread

export GDRCOPY_BACKEND=nvrm GDRCOPY_ENABLE_LOGGING=1 GDRCOPY_LOG_LEVEL=3
: >"$out/nvrm_probe.txt"
for part in "" persistent; do
	timeout 120 "$out/nvrm_probe" $part >>"$out/nvrm_probe.txt" 2>&1 ||
		echo "exit status $? of nvrm_probe $part" >>"$out/nvrm_probe.txt"
	if dmesg 2>/dev/null | grep -q 'NVRM: Xid'; then
		echo "not ok gpu: $(dmesg | grep 'NVRM: Xid' | tail -n 1)" >>"$out/nvrm_probe.txt"
		break
	fi
done
cat "$out/nvrm_probe.txt"
passed=$(grep -c '^ok ' "$out/nvrm_probe.txt" || true)
failed=$(grep -c -e '^not ok ' -e '^exit status' "$out/nvrm_probe.txt" || true)
echo "$passed passed, $failed failed"
test "$failed" -eq 0
