#!/bin/bash
# SPDX-License-Identifier: MIT
# Proves the DMA engine on a machine with a real GPU.
#
#   tests/device/dma_soak.sh [OUTPUT-FOLDER]        default: build/device-soak
#
# Copies beside a kernel that spins, program order, threads that share an engine,
# the search for stale bytes, and the same search where stale bytes must be found.
# The output of each goes to the folder; what the search has counted stays in
# counters.txt there, and the next run goes on from it.  Ends with "N passed, N failed, N skipped".
#
#   SOAK_SECONDS   for the search; default 300
#   SOAK_OPTIONS   for all of them, such as "--port emu"
#   SOAK_COPIES    of mixed and order, default 1000000, and of spin, a hundredth
set -u
cd "$(dirname "$0")/../.." || exit 2
out=$(realpath -m "${1:-build/device-soak}")
soak=${SOAK:-build/device-tests/soak}
seconds=${SOAK_SECONDS:-300}
copies=${SOAK_COPIES:-1000000}
read -ra options <<<"${SOAK_OPTIONS:-}"
mkdir -p "$out"
passed=0 failed=0 skipped=0

# step NAME ARGUMENT...: raw output in NAME.txt, its last line on ours.
step() {
	local name=$1 status
	shift
	timeout $((seconds + 120)) "$soak" "$@" "${options[@]}" >"$out/$name.txt" 2>&1
	status=$?
	case $status in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
	printf '%-8s status %-3s %s\n' "$name" "$status" "$(tail -n 1 "$out/$name.txt")"
}

xids() { dmesg 2>/dev/null | grep -ci 'xid' || true; }

if [ -z "${SOAK:-}" ]; then
	if ! { make -s -j"$(nproc)" lib && make -s -C tests/device "$PWD/$soak"; } \
		>"$out/build.txt" 2>&1; then
		cat "$out/build.txt"
		exit 1
	fi
fi
log_readable=yes
dmesg >/dev/null 2>&1 || log_readable=no
xid_before=$(xids)

step spin spin --copies $(((copies + 99) / 100))
step order order --copies "$copies"
step mixed mixed --copies "$copies"
step unsafe stale --completion unsafe --engine widest --way from --copies-small 0 \
	--copies-64k 100000 --copies-1m 0 --seconds 30
step stale stale --seconds "$seconds" --counters "$out/counters.txt"

if [ $log_readable = no ]; then
	skipped=$((skipped + 1))
	echo "xid      skipped: the kernel log cannot be read"
elif [ "$(xids)" = "$xid_before" ]; then
	passed=$((passed + 1))
	echo "xid      no new one in the kernel log"
else
	failed=$((failed + 1))
	dmesg | grep -i xid | tail -n 5
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
