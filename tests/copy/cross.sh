#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the copy tests for arm64 and ppc64le and runs them under qemu's user mode.
cd "$(dirname "$0")/../.." || exit 2
ROOT=$PWD
status=0

fail() {
	echo "not ok $1"
	status=1
}

# build CPU TRIPLET PROGRAM...: static programs, so that no foreign loader is needed.
build() {
	local top=$ROOT/build/$2
	local flags="CC=$2-gcc AR=$2-ar BUILD=$top/obj/$1"
	local programs=("${@:3}")

	make -s -C src/userspace $flags OUT="$top/lib" >&2 &&
		make -s -C tests $flags OUT="$top/tests" LDFLAGS=-static \
			"${programs[@]/#/$top/tests/copy/}" >&2
}

# run_copy_tests CPU TRIPLET QEMU PROGRAM...
run_copy_tests() {
	local cpu=$1 triplet=$2 qemu=$3 program output rc
	shift 3

	for tool in "$triplet-gcc" "$qemu"; do
		if ! command -v "$tool" >/dev/null; then
			echo "skip $cpu: $tool is not installed; make check-deps"
			return
		fi
	done
	if ! build "$cpu" "$triplet" "$@"; then
		fail "${cpu}_build"
		return
	fi
	for program; do
		output=$("$qemu" "$ROOT/build/$triplet/tests/copy/$program")
		rc=$?
		sed -nE "s/^(ok|not ok|skip) /&${cpu}_${program}_/p" <<<"$output"
		grep -q '^not ok ' <<<"$output" && status=1
		if [ $rc != 0 ] && [ $rc != 1 ] && [ $rc != 77 ]; then
			fail "${cpu}_${program}: exit status $rc"
		elif ! grep -qE '^(ok|skip) ' <<<"$output"; then
			fail "${cpu}_${program}: reported no case"
		fi
	done
}

run_copy_tests arm64 aarch64-linux-gnu qemu-aarch64 split select matrix
run_copy_tests power powerpc64le-linux-gnu qemu-ppc64le split select matrix
exit $status
