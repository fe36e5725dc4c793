#!/bin/bash
# SPDX-License-Identifier: MIT
# The programs of examples/guide, compiled against an installed tree as their first comments
# say, on two emulated GPUs: bytes, printed lines, and what the log says of each pitfall.
set -u
cd "$(dirname "$0")/../.." || exit 2
EMU=$(realpath "${GDRCOPY_BUILD:-build}/emu")
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
unset MAKEFLAGS MAKEOVERRIDES "${!GDRCOPY_@}"
PREFIX=$WORK/prefix
status=0

# report NAME COMPLAINTS: passed when there are none.
report() {
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		echo "not ok $1"
		echo "$2" >&2
		status=1
	fi
}

# A machine with the CUDA toolkit finds its files by itself; here these are the stand-ins.
export CPATH=$EMU LIBRARY_PATH=$EMU

# compile PROGRAM ARGUMENTS...
compile() {
	local program=$1
	shift
	report "guide_compiles_$program" "$(cd examples/guide &&
		gcc -Wall -Wextra -Wshadow -Werror "$@" -o "$WORK/$program" 2>&1)"
}

# run VARIABLE=VALUE... PROGRAM ARGUMENTS...: what it prints, and a line for a failure.
run() {
	env LD_LIBRARY_PATH="$PREFIX/lib:$EMU" GDRCOPY_BACKEND=emu GDRCOPY_EMU=devices=2 \
		timeout 60 env "$@" 2>"$WORK/stderr" </dev/null ||
		{ echo "exit status $?"; cat "$WORK/stderr"; }
}

# prints NAME EXPECTED VARIABLE=VALUE... PROGRAM ARGUMENTS...
prints() {
	local output
	output=$(run "${@:3}")
	report "$1" "$([ "$output" = "$2" ] || printf 'printed: %s\nexpected: %s' "$output" "$2")"
}

# logs NAME TEXT: the run before has logged it.
logs() {
	report "$1" "$(grep -q "^ERR: .*$2" "$WORK/stderr" || cat "$WORK/stderr" - <<<"no line with: $2")"
}

if ! make -s prefix="$PREFIX" lib_install >"$WORK/log" 2>&1; then
	tail -n 20 "$WORK/log" >&2
	echo "not ok guide_installs"
	exit 1
fi
make -s lib >/dev/null 2>&1	# the .pc files as they were
for program in copy pitfalls; do
	compile $program "-I$PREFIX/include/gdrcopy" $program.c "-L$PREFIX/lib" -lgdrapi -lcudart
done
compile all_gather -pthread "-I$PREFIX/include/gdrcopy" all_gather.c "-L$PREFIX/lib" -lgdrapi \
	-lcudart
compile benchmark -O3 "-I$PREFIX/include/gdrcopy" "-L$PREFIX/lib" benchmark.c -lgdrapi \
	-lnvidia-ml -lcuda

for road in GDRCOPY_DMA=1 GDRCOPY_DMA=0 GDRCOPY_DMA=min=0 GDRCOPY_ROUTE=staged; do
	prints "guide_copy-$road" "all of it: right, a part of it: right" $road "$WORK/copy"
	prints "guide_all_gather-$road" "4 of 4 ranks have the part of rank 0" $road \
		GDRCOPY_EMU=devices=4 "$WORK/all_gather"
done
prints guide_copy-no-peer "all of it: right, a part of it: right" GDRCOPY_EMU=devices=2,no-peer \
	"$WORK/copy"

for devices in "0 1" "1 0" "0 0"; do
	# shellcheck disable=SC2086 # two words
	output=$(run "$WORK/benchmark" $devices 1048576 100)
	report "guide_benchmark-${devices/ /-}" "$(grep -qxE \
		'Avg latency: [0-9]+\.[0-9]{2} us, Bandwidth: [0-9]+\.[0-9] GB/s' <<<"$output" ||
		echo "$output")"
done

LOUD=GDRCOPY_ENABLE_LOGGING=1
if [ -c /dev/gdrdrv ]; then
	echo "skip guide_pitfall_open: /dev/gdrdrv exists"
else
	prints guide_pitfall_open \
		"open: 2, no back end opens: no NVIDIA driver, no GPU, or no access to it" \
		GDRCOPY_BACKEND=gdrdrv $LOUD "$WORK/pitfalls" open
	logs guide_pitfall_open_is_logged "gdrdrv"
fi
prints guide_pitfall_argument "host memory: 1, invalid argument
odd size: 1, invalid argument
large device id: 1, invalid argument
rounded up: 0, success" $LOUD "$WORK/pitfalls" argument
logs guide_pitfall_host_memory_is_logged "not GPU memory"
logs guide_pitfall_size_is_logged "multiple of 4096; round it up"
logs guide_pitfall_device_is_logged "device 99 does not exist; this process sees 2"
for way in GDRCOPY_STRICT_P2P=1 GDRCOPY_ROUTE=peer; do
	prints "guide_pitfall_reach-$way" \
		"copy: 3, not supported for this memory, platform or pair of GPUs" \
		GDRCOPY_EMU=devices=2,no-peer $way $LOUD "$WORK/pitfalls" reach
	logs "guide_pitfall_reach_is_logged-$way" "do not reach each other"
done
prints guide_pitfall_reach_staged "copy: 0, success" GDRCOPY_EMU=devices=2,no-peer \
	"$WORK/pitfalls" reach
prints guide_pitfall_effect "the GPU has: written
as it should be: mapped 1, freed 0
after unmap: mapped 0, freed 0
unmap again: 1, invalid argument
after free: mapped 0, freed 1" $LOUD "$WORK/pitfalls" effect
logs guide_pitfall_effect_is_logged "not mapped"
report guide_is_silent "$(run "$WORK/pitfalls" effect >/dev/null; cat "$WORK/stderr")"
exit $status
