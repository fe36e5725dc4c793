#!/bin/bash
# SPDX-License-Identifier: MIT
# The tools check what they moved: planted errors of the copies must be found.
. "$(dirname "$0")/lib.sh"

if ! ${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -I"$root/include" -o "$work/wrong_data.so" \
	"$root/tests/tools/wrong_data.c" -ldl; then
	echo "not ok wrong_data.c is not compiled"
	exit 1
fi

# finds FAULT EXPRESSION TOOL ARGUMENTS...
finds() {
	local fault=$1 expression=$2 tool=$3
	shift 3
	run env PLANT="$fault" LD_PRELOAD="$work/wrong_data.so" "$bin/gdrcopy_$tool" "$@"
	fails_with 1 "$expression"
	verdict "$tool $* finds $fault" $?
}

run env PLANT= LD_PRELOAD="$work/wrong_data.so" "$bin/gdrcopy_copybw" -w 3 -r 3
[ $rc = 0 ]
verdict 'no fault, no failure' $?
for fault in write-nothing write-byte write-beyond; do
	finds $fault 'gdr_copy_to_mapping moved wrong data: byte [0-9]+ of' copybw -w 3 -r 3 -c 1000 -o 8
done
for fault in read-nothing read-byte; do
	finds $fault 'gdr_copy_from_mapping moved wrong data: byte' copybw -w 3 -r 3 -c 1000 -o 8
done
finds write-nothing 'gdr_copy_to_mapping moved wrong data: byte 0 of' copylat -s 64 -w 100
finds write-byte 'gdr_copy_to_mapping moved wrong data: byte' copylat -s 64 -w 100
finds read-nothing 'gdr_copy_from_mapping moved wrong data: byte 0 of' copylat -s 64 -w 100
finds read-byte 'gdr_copy_from_mapping moved wrong data: byte' copylat -s 64 -w 100
finds write-byte 'no answer from the GPU|had not arrived' pplat -s 64 -t 10 -u 1
finds read-byte 'payload word' pplat -s 64 -t 10 -m 1
exit $status
