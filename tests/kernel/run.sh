#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests gdrdrv.ko in real kernels under QEMU; prints harness lines.
#
#   tests/kernel/run.sh              kernels 6.1 and 6.12, and debug kernels that were built
#   tests/kernel/run.sh 6.12 kasan   only these
#   PHASES="standin load" ...        only these parts of the guest's suite
#
# Everything that is fetched or built lies in build/kernel, and is kept.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
CACHE=$ROOT/build/kernel
ALL_PHASES=$(cat "$HERE/guest/phases.txt")
PHASES_ASKED=${PHASES:-}
PHASES=${PHASES:-$ALL_PHASES}
GUEST_SECONDS=${GUEST_SECONDS:-600}
GUEST_CPU=${GUEST_CPU:-max}
GUEST_APPEND=${GUEST_APPEND:-}
MODULE_SOURCE=${MODULE_SOURCE:-$ROOT/src/modules/gdrdrv}
. "$HERE/lib/kernels.sh"
. "$HERE/lib/arch.sh"
. "$HERE/lib/build.sh"
. "$HERE/lib/guest.sh"
. "$HERE/debug/cache.sh"
mkdir -p "$CACHE/debs"
use_arch x86

# Root, or a CI machine, must run the kernels; others may skip with the reason.
must_run() {
	[ "$(id -u)" = 0 ] || [ "${CI:-}" = true ]
}

cannot() {
	if must_run; then
		echo "not ok $1: $2"
	else
		echo "skip $1: $2"
	fi
}

missing_tool() {
	local tool
	for tool in qemu-system-x86_64 busybox cpio make gcc dpkg-deb apt-get python3; do
		command -v $tool >/dev/null || { echo "$tool"; return; }
	done
}

symbol_checksums() {
	local symbol crc
	while read -r symbol crc; do
		if grep -q "^$crc[[:space:]]$symbol[[:space:]]" "$WORK/standin-open-1.2/Module.symvers"; then
			echo "ok $1/crc_$symbol"
		else
			echo "not ok $1/crc_$symbol"
		fi
	done <"$HERE/nvidia/crcs-6.1.txt"
}

run_kernel() {
	local line=$1 abi status started=$SECONDS
	abi=$(kernel_abi "$line")
	if [ -z "$abi" ]; then
		cannot "$line" "apt knows no linux-image for $line (apt-get update?)"
		return
	fi
	WORK=$CACHE/$abi MODULES=$CACHE/$abi/modules
	mkdir -p "$WORK"
	if ! kernel_image "$abi" >"$WORK/fetch.log" 2>&1 ||
		! kernel_headers "$abi" >>"$WORK/fetch.log" 2>&1; then
		cannot "$line" "kernel $abi cannot be had, see $WORK/fetch.log"
		return
	fi
	build_for "$line" "/usr/src/linux-headers-$abi" || return
	if [ "$line" = 6.1 ]; then
		symbol_checksums "$line"
		finds_gpl_only_symbol "/usr/src/linux-headers-$abi"
		judge_the_judge "$CACHE/kernels/$abi/vmlinux"
	fi
	make_image "$abi"
	boot "$CACHE/kernels/$abi/vmlinux"
	status=$?
	judge "$line" $status
	echo "# $line: $((SECONDS - started)) s"
}

# fails_when NAME KERNEL: boots, and wants a bad verdict.
fails_when() {
	boot "$2"
	if judge planted $? | grep -q '^not ok'; then
		echo "ok judge/$1"
	else
		echo "not ok judge/$1"
	fi
}

# A symbol that is GPL-only everywhere must be named by the build as MIT.
finds_gpl_only_symbol() {
	local planted='#include <linux/kobject.h>
struct kobject *gdrdrv_planted(void); struct kobject *gdrdrv_planted(void) { return kernel_kobj; }'
	if ! build_as_mit "$1" "$planted" >"$WORK/planted.log" 2>&1 &&
		grep -q "GPL-only symbol 'kernel_kobj'" "$WORK/planted.log"; then
		echo "ok judge/gpl_only_symbol"
	else
		echo "not ok judge/gpl_only_symbol"
	fi
}

# A guest that panics, ends early or warns must never pass.
judge_the_judge() {
	local PHASES=complain
	make_image planted
	fails_when warning "$1"
	GUEST_APPEND="rdinit=/bin/false" fails_when panic "$1"
	GUEST_APPEND="rdinit=/bin/poweroff" fails_when early_end "$1"
}

# build_for LABEL KERNELDIR
build_for() {
	if ! build_modules "$2" >"$WORK/build.log" 2>&1; then
		echo "not ok $1/build"
		tail -n 40 "$WORK/build.log"
		return 1
	fi
	if grep -q 'warning:' "$WORK/build.log"; then
		echo "not ok $1/build_warnings"
		grep 'warning:' "$WORK/build.log"
	fi
	echo "ok $1/build"
	if ! grep -q ':proprietary:' <<<"$STANDINS"; then
		echo "skip $1/no_gpl_only_symbols: lock checking is GPL-only itself"
	elif build_as_mit "$2" >"$WORK/mit.log" 2>&1; then
		echo "ok $1/no_gpl_only_symbols"
	else
		echo "not ok $1/no_gpl_only_symbols"
		tail -n 20 "$WORK/mit.log"
	fi
}

# A debug kernel is used where it was built before: debug/build.sh.
run_debug_kernel() {
	local kind=$1 dir status started=$SECONDS
	# A checker makes a guest several times slower; full.sh runs everything.
	local PHASES=${PHASES_ASKED:-load layout12 faults leaks}
	dir=$(debug_kernel_dir "$kind")
	if [ ! -e "$dir/ready" ]; then
		echo "skip $kind: not built (tests/kernel/debug/build.sh $kind takes about 10 minutes)"
		return
	fi
	WORK=$CACHE/$kind MODULES=$CACHE/$kind/modules
	mkdir -p "$WORK"
	# Lock checking makes every mutex a GPL-only symbol.
	local STANDINS
	STANDINS=$(grep ':open:' <<<"$ALL_STANDINS")
	build_for "$kind" "$dir" || return
	make_image "$kind"
	# Given as an ELF file, a KASAN kernel dies at once and in silence.
	GUEST_APPEND="$GUEST_APPEND kasan_multi_shot" boot "$dir/arch/x86/boot/bzImage"
	status=$?
	judge "$kind" $status
	echo "# $kind: $((SECONDS - started)) s"
}

tool=$(missing_tool)
if [ -n "$tool" ]; then
	cannot kernel "$tool is not installed (make check-deps)"
	exit 0
fi
build_project >"$CACHE/exes.log" 2>&1 || { echo "not ok kernel/exes"; exit 1; }
build_programs >"$CACHE/programs.log" 2>&1 || {
	echo "not ok kernel/programs"
	tail -n 30 "$CACHE/programs.log"
	exit 1
}
{
	for line in ${*:-6.1 6.12 kasan kcsan}; do
		case $line in
		kasan | kcsan) run_debug_kernel "$line" ;;
		*) run_kernel "$line" ;;
		esac
	done
} | tee "$CACHE/report.txt"
! grep -q '^not ok' "$CACHE/report.txt"
