#!/bin/bash
# SPDX-License-Identifier: MIT
# The tools under valgrind: no use of memory that holds nothing, no leak.
. "$(dirname "$0")/lib.sh"

if ! command -v valgrind >/dev/null; then
	echo "skip tools under valgrind: valgrind is not installed"
	exit 77
fi
# valgrind knows neither AVX-512 nor MOVDIR64B.
export GDRCOPY_COPY=avx2

# check PROGRAM ARGUMENTS..., in one word
check() {
	run valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
		"$bin/"$1
	[ $rc = 0 ]
	verdict "${1#gdrcopy_}" $?
}

for command in 'copybw -s 65536 -w 2 -r 2' 'copybw -l -c 64 -w 2 -r 2 --json' \
	'copylat -s 16 -w 100 --pinned' 'copylat -s 2 -w 100 -c --json' 'apiperf -s 65536 -n 3 -w 1' \
	'pplat -t 5 -s 64' 'pplat -t 5 -s 64 -m 1 --json' 'info --probe' 'info --json' 'copybw --help'; do
	check "gdrcopy_$command"
done
check 'gdr_bench 0 0 5001 3'
check 'gdr_bench --check --json --min 4K --max 6K -n 2'
exit $status
