#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds library, tools and emulator for arm64 and ppc64le; nothing built is run.
cd "$(dirname "$0")/.." || exit 2
status=0
for triplet in aarch64-linux-gnu powerpc64le-linux-gnu; do
	if ! command -v $triplet-gcc >/dev/null; then
		echo "skip cross_build_$triplet: $triplet-gcc is not installed; make check-deps"
	elif make -s -j"$(nproc)" VARIANT=$triplet CC=$triplet-gcc AR=$triplet-ar all emu >&2; then
		echo "ok cross_build_$triplet"
	else
		echo "not ok cross_build_$triplet"
		status=1
	fi
done
exit $status
