#!/bin/bash
# SPDX-License-Identifier: MIT
# The soak that is meant for a real GPU (tests/device/dma_soak.sh), for some seconds on the emulated one.
set -u
cd "$(dirname "$0")/../.." || exit 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
make -s -C tests/device >"$folder/build" 2>&1 || { cat "$folder/build"; echo "not ok build"; exit 1; }
SOAK_SECONDS=2 SOAK_COPIES=${SOAK_COPIES:-10000} SOAK_OPTIONS="--port emu" \
	tests/device/dma_soak.sh "$folder" >"$folder/summary"
bad=0
while read -r name word status _; do
	[ "$word" = status ] || continue
	case $status in
	0) echo "ok $name" ;;
	77) echo "skip $name: its kernel runs on a real GPU alone" ;;
	*) echo "not ok $name"; tail -n 20 "$folder/$name.txt"; bad=1 ;;
	esac
done <"$folder/summary"
exit $bad
