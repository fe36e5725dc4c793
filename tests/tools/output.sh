#!/bin/bash
# SPDX-License-Identifier: MIT
# What the tools print: the lines of 2.6 that scripts read, and JSON.
. "$(dirname "$0")/lib.sh"

number='[0-9]+\.[0-9]+'
emulated='GPU is emulated: figures say nothing about hardware'

# all_print EXPRESSION...: the run succeeded in silence, and each line is there.
all_print() {
	local line
	[ $rc = 0 ] && [ ! -s "$work/err" ] || return 1
	for line; do prints "$line" || return 1; done
}

# above FIRST SECOND: the first line that matches one comes before the other.
above() {
	local first second
	first=$(grep -Enx -m1 -- "$1" "$work/out" | cut -d: -f1)
	second=$(grep -En -m1 -- "$2" "$work/out" | cut -d: -f1)
	[ -n "$first" ] && [ -n "$second" ] && [ "$first" -lt "$second" ]
}

run env GDRCOPY_EMU=devices=2 "$bin/gdrcopy_copybw" -d 1 -s 100000 -o 4 -c 4096 -w 50 -r 5
all_print 'GPU id:0; name: Emulated GPU.*; Bus id: [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}' \
	'GPU id:1; name: .*' 'selecting device 1' 'testing size: 100000' 'rounded size: 131072' \
	'gpu alloc fn: cuMemAlloc' 'device ptr: [0-9a-f]+' 'map_d_ptr: 0x[0-9a-f]+' \
	'info\.va: [0-9a-f]+' 'info\.mapped_size: 131072' 'info\.page_size: 65536' \
	'info\.mapped: 1' 'info\.wc_mapping: 1' 'page offset: 0' 'user-space pointer:0x[0-9a-f]+' \
	'writing test, size=4096 offset=4 num_iters=50' "write BW: ${number}MB/s" \
	'reading test, size=4096 offset=4 num_iters=5' "read BW: ${number}MB/s" \
	'unmapping buffer' 'unpinning buffer' 'closing gdrdrv' 'back end: emu'
verdict 'copybw: the lines of 2.6' $?
above "$emulated" 'BW: '
verdict 'copybw: says that the GPU is emulated, above the figures' $?

# The sweep ends below the largest power of two that the copy size holds.
run "$bin/gdrcopy_copybw" -l -c 5000 -w 5 -r 5
sizes=$(sed -n 's/^writing test, size=\([0-9]*\) .*/\1/p' "$work/out" | tr '\n' ' ')
[ $rc = 0 ] && [ "$sizes" = '1 2 4 8 16 32 64 128 256 512 1024 2048 ' ]
verdict 'copybw -l: sizes' $?

run "$bin/gdrcopy_copybw" -a cuMemCreate -w 5 -r 5 -M wc
all_print 'gpu alloc fn: cuMemCreate' "write BW: ${number}MB/s"
verdict 'copybw: cuMemCreate, -M wc' $?

run env GDRCOPY_EMU=coherent "$bin/gdrcopy_copybw" -M cache -w 5 -r 5
all_print 'info\.wc_mapping: 0' 'mapping type: Caching' "read BW: ${number}MB/s"
verdict 'copybw: -M cache on a coherent link' $?

run env GDRCOPY_COPY=plain "$bin/gdrcopy_copybw" -w 5 -r 5
all_print 'copy routine: plain \(GDRCOPY_COPY\)'
verdict 'copybw: a forced routine is named' $?

run "$bin/gdrcopy_copylat" -s 64 -w 100
row=$'\t       64 \t [ 0-9]{6}\\.[0-9]{4} \t [ 0-9]{6}\\.[0-9]{4}'
all_print 'device ptr: 0x[0-9a-f]+' 'allocated size: 65536' 'use cold cache: no' \
	'gdr_copy_to_mapping num iters for each size: 100' \
	'gdr_copy_from_mapping num iters for each size: 100' \
	$'Test \t+ Size\\(B\\) \t Median Time\\(us\\) \t Min\\. Time\\(us\\)' \
	"gdr_copy_to_mapping $row" "gdr_copy_from_mapping $row" &&
	[ "$(grep -c '^gdr_copy_to_mapping .*[0-9]$' "$work/out")" = 8 ] &&
	! grep -q cuMemcpy "$work/out"
verdict 'copylat: the lines of 2.6' $?
above "$emulated" '^Test '
verdict 'copylat: says that the GPU is emulated, above the figures' $?

run "$bin/gdrcopy_copylat" -s 4 -w 100 -c
all_print "cuMemcpy_H2D .*" "cuMemcpy_D2H .*" 'crossover: cuMemcpy_H2D is .*' \
	'crossover: cuMemcpy_D2H is .*'
verdict 'copylat -c: rows of cuMemcpy and the crossover' $?

run "$bin/gdrcopy_copylat" -s 4 -w 100 --pinned
all_print 'cuMemcpy_H2D_pinned .*' 'cuMemcpy_D2H_pinned .*' 'crossover: cuMemcpy_D2H_pinned is .*'
verdict 'copylat --pinned: rows of page-locked memory' $?

run "$bin/gdrcopy_copylat" -s 1 -w 101 -r 1
[ $rc = 0 ] && prints 'gdr_copy_to_mapping num iters for each size: 200' &&
	[ "$(grep -c warning "$work/err")" = 2 ]
verdict 'copylat: iterations are rounded up, with a warning' $?

run env GDRCOPY_EMU=coherent "$bin/gdrcopy_copylat" -C -s 4 -w 100
all_print 'use cold cache: yes' "gdr_copy_from_mapping .*"
verdict 'copylat -C: cached mapping' $?

run "$bin/gdrcopy_apiperf" -s 8 -n 10 -w 1
header=$'Size\\(B\\)\tpin.Time\\(us\\)\tmap.Time\\(us\\)\tget_info.Time\\(us\\)'
header+=$'\tunmap.Time\\(us\\)\tunpin.Time\\(us\\)'
all_print "$header" \
	"65536($(printf '\t')$number){5}" 'Histogram of gdr_pin_buffer latency for 65536 bytes' &&
	[ "$(grep -Ec "^\[$number"$'\t-\t'"$number\]"$'\t[0-9]+$' "$work/out")" = 10 ] &&
	[ "$(sed -n 's/^\[.*\]\t//p' "$work/out" | awk '{ n += $1 } END { print n }')" = 10 ]
verdict 'apiperf: the lines of 2.6, and a histogram of every round' $?

run "$bin/gdrcopy_apiperf" -s 262144 -n 2 -w 0
[ $rc = 0 ] && [ "$(grep -Ec '^(65536|131072|262144)'$'\t' "$work/out")" = 3 ]
verdict 'apiperf: sizes double' $?

for flags in '' '-s 4096' '-s 4096 -m 1' '-s 64 -D hostmem' '-s 64 -m 1 -D hostmem -B 2 -T 32' \
	'-G hostmem' '-C gpumem' '-G hostmem -C gpumem -a cuMemCreate'; do
	run "$bin/gdrcopy_pplat" -t 20 $flags
	all_print "Round-trip latency per iteration is \(min\) $number, \(median\) $number us"
	verdict "pplat $flags" $?
done
above "$emulated" 'Round-trip'
verdict 'pplat: says that the GPU is emulated, above the figures' $?

run "$bin/gdrcopy_info" --probe
all_print ' +emu +opens, and is used' ' +gdrdrv +does not open: .*' ' +GPU id:0; .*' \
	' +BAR1: 262144 MiB, .*' ' +mapping: Write Combining, by back end emu' \
	'copy routines of this CPU:.* plain.*' 'versions: libgdrapi 2\.6; .*'
verdict 'info: back ends, GPU, mapping, routines, versions' $?

if command -v python3 >/dev/null; then
	for command in 'copybw -w 5 -r 5' 'copybw -l -w 5 -r 5 -c 64' 'copylat -s 16 -w 100 --pinned' \
		'apiperf -s 65536 -n 5' 'pplat -t 20' 'info --probe'; do
		run "$bin/gdrcopy_"$command --json
		[ $rc = 0 ] && python3 "$root/tests/tools/json_check.py" "${command%% *}" \
			<"$work/out" 2>>"$work/err"
		verdict "$command --json" $?
	done
else
	echo "skip --json: python3 is not installed"
fi
exit $status
