#!/bin/bash
# SPDX-License-Identifier: MIT
# The kernel of gdrcopy_pplat is valid PTX for the GPUs of several generations.
. "$(dirname "$0")/lib.sh"

ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null)
if [ -z "$ptxas" ]; then
	echo "skip PTX of pplat: no ptxas; a CUDA toolkit has it"
	exit 77
fi
cat >"$work/print.c" <<'EOT'
#include <stdio.h>
#include "kernel_ptx.h"
int main(void) { return fputs(pplat_kernel_ptx, stdout) < 0; }
EOT
if ! ${CC:-cc} -I"$root/tools/pplat" -o "$work/print" "$work/print.c" ||
	! "$work/print" >"$work/pplat.ptx"; then
	echo "not ok PTX of pplat is not printed"
	exit 1
fi
for arch in sm_75 sm_80 sm_90 sm_100; do
	run "$ptxas" -arch=$arch -o "$work/pplat.cubin" "$work/pplat.ptx"
	[ $rc = 0 ] && [ ! -s "$work/err" ]
	verdict "PTX of pplat for $arch" $?
done
exit $status
