#!/bin/bash
# SPDX-License-Identifier: MIT
# make demo: builds, then shows the main job on a GPU, or on the emulated one and says so.
set -eu
cd "$(dirname "$0")/.."
scripts/install-deps.sh demo
make -s -j"$(nproc)" all

have_gpu() { build/bin/gdrcopy_info >/dev/null 2>&1; }

export LD_LIBRARY_PATH=$PWD/src/userspace${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if have_gpu; then
	echo "A real GPU was found."
else
	echo "No usable GPU here (gdrcopy_info says why): an EMULATED GPU is used."
	echo "Its figures are those of host memory and say nothing about hardware."
	export LD_LIBRARY_PATH=$PWD/build/emu:$LD_LIBRARY_PATH GDRCOPY_BACKEND=emu
fi
build/bin/gdrcopy_copybw
echo
echo "Next: make check; README.md shows the five-line program."
