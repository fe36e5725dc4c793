#!/bin/bash
# SPDX-License-Identifier: MIT
# gdr_bench on the emulated GPU: its lines, its errors, its byte check; and scripts/plot.
. "$(dirname "$0")/lib.sh"
unset GDRCOPY_DMA GDRCOPY_ROUTE GDRCOPY_CALIBRATION

bench=$bin/gdr_bench
plot=$root/scripts/plot
number='[0-9]+\.[0-9]+'
emulated='GPU is emulated: figures say nothing about hardware'

# succeeds LINE...: the run succeeded in silence, and each line is there.
succeeds() {
	local line
	[ $rc = 0 ] && [ ! -s "$work/err" ] || return 1
	for line; do prints "$line" || return 1; done
}

# refuses NAME STATUS EXPRESSION COMMAND...
refuses() {
	local name=$1 expected=$2 expression=$3
	shift 3
	run "$@"
	fails_with "$expected" "$expression"
	verdict "$name" $?
}

# column N: of the rows of the CSV, each value once.
column() {
	grep -v '^#' "$work/out" | tail -n +2 | cut -d, -f"$1" | awk '!seen[$0]++' | paste -sd' '
}

# emulated_first EXPRESSION: that line comes before the first one that matches.
emulated_first() {
	awk -v line="$emulated" -v figure="$1" \
		'index($0, line) { seen = 1 } $0 ~ figure { exit !seen }' "$work/out"
}

latency="Avg latency: [0-9]+\.[0-9]{2} us, Bandwidth: [0-9]+\.[0-9] GB/s"
spread="min $number us, p50 $number us, p99 $number us, max $number us; 1 GB above is 2\^30 bytes"

run env GDRCOPY_EMU=devices=2 "$bench" 0 1 1048576 100
succeeds "$latency" "$spread" 'road: .+' \
	'bytes: all 1048576 right, before and after 100 timed copies' && emulated_first '^Avg'
verdict 'two GPUs' $?
run env GDRCOPY_EMU=devices=2 "$bench" 1 0 4K 1
succeeds "$latency" 'bytes: all 4096 right, .*'
verdict 'the other way, a size with a suffix, a single copy' $?
run "$bench" 0 0 5001 20
succeeds "$latency" 'bytes: all 5001 right, .*'
verdict 'one GPU, a size that is no multiple of 4096' $?
# The line's figures belong together: bytes / 2^30 over the mean time.
run "$bench" 0 0 64M 5
awk '/^Avg/ { want = 67108864 / 1073741824 / ($3 / 1e6); seen = 1
		bad = ($6 - want) ^ 2 > 0.01 + (want / 100) ^ 2 }
	END { exit !seen || bad }' "$work/out"
verdict 'bandwidth is that of the latency, in 2^30 bytes' $?

# road NAME ENVIRONMENT DESTINATION ROAD
road() {
	# shellcheck disable=SC2086 # several variables
	run env GDRCOPY_EMU=devices=2 GDRCOPY_DMA=min=0 $2 "$bench" 0 "$3" 64K 5
	succeeds "road: $4"
	verdict "the road is told: $1" $?
}
road 'inside a GPU' '' 0 'copy engine, inside the GPU'
road 'GPU to GPU' '' 1 'copy engine, directly from GPU to GPU'
road 'no peer access' GDRCOPY_EMU=devices=2,no-peer 1 'copy engine, through host memory'
road 'staged on request' GDRCOPY_ROUTE=staged 1 'copy engine, through host memory'
road 'no copy engine' GDRCOPY_DMA=0 1 'CPU, through host memory'
road 'small' GDRCOPY_DMA=min=128K 1 'CPU, through host memory'
road 'small, but directly or not at all' 'GDRCOPY_DMA=min=128K GDRCOPY_ROUTE=peer' 1 \
	'copy engine, directly from GPU to GPU'

cuda=' +cuda_pageable +cuda_pinned'
run "$bench" --sweep --max 64K -n 12
succeeds 'h2d, microseconds of one copy: median/p99' 'd2d, microseconds .*' \
	" +bytes samples +auto_pageable +auto_registered +cpu +dma_pageable +dma_registered$cuda" \
	' +bytes samples +auto +cpu +dma +staged +cuda' \
	" +65536 +12( +$number/$number){7}" \
	" +8 +12( +$number/$number){3} +- +-( +$number/$number){2}" &&
	emulated_first 'median/p99'
verdict 'sweep: tables of every road' $?

run "$bench" --sweep --csv --max 4K -n 2
succeeds "# $emulated" '# gpu: Emulated GPU.*; bus id: .*; emulated: yes' \
	'direction,bytes,road,samples,median_us,p99_us,min_us,max_us' \
	"d2h,4096,auto_registered,2(,$number){4}" && emulated_first ',median_us' &&
	[ "$(column 1)" = 'h2d d2h d2d' ] &&
	[ "$(column 2)" = '1 2 4 8 16 32 64 128 256 512 768 1024 1536 2048 3072 4096' ]
verdict 'sweep --csv: comments, columns, sizes' $?
cp "$work/out" "$work/emulated.csv"

run "$bench" --sweep --csv --min 1000 --max 2M -n 1 --direction d2h,d2d
succeeds && [ "$(column 1)" = 'd2h d2d' ] && [ "$(column 2)" = "1000 1024 1536 2048 3072 4096 \
6144 8192 12288 16384 24576 32768 49152 65536 98304 131072 196608 262144 393216 524288 786432 \
1048576 1572864 2097152" ]
verdict 'sweep: --min, --max, --direction' $?

run env GDRCOPY_EMU=dma=0 "$bench" --sweep --csv --min 64 --max 64 -n 1
succeeds && [ "$(column 3)" = 'auto_pageable auto_registered cpu cuda_pageable cuda_pinned auto cuda' ]
verdict 'sweep: without copy engines their roads are left out' $?

run env GDRCOPY_DMA=0 "$bench" --sweep --csv --min 4K --max 4K -n 1
succeeds '# environment: GDRCOPY_DMA=0'
verdict "sweep: says which settings were the caller's" $?

run env GDRCOPY_EMU=devices=2 "$bench" --sweep --csv -d 1 --max 2 -n 1
succeeds '# gpu: .* bus id: e001:00:00; .*'
verdict 'sweep: the second GPU' $?

run "$bench" --check --csv --min 2M --max 4M -n 1
succeeds '# check,direction,bytes,road,us,against,against_us,ratio,verdict' \
	"# check,h2d,2097152,auto_pageable,$number,(cpu|cuda_pageable)(,$number){2},(ok|missed)" \
	"# check,d2h,2097152,auto_registered,$number,(cpu|cuda_pinned)(,$number){2},(ok|missed)" \
	"# check,d2d,2097152,auto,$number,cuda(,$number){2},(ok|missed)" \
	"# check,d2d,4194304,auto,$number,cuda(,$number){2},reported" \
	'# check: [0-9]+ ok, [0-9]+ missed'
verdict 'check: one line for each judgement' $?
# The verdicts follow from the figures: the ratio, and 1.03 between host and GPU.
awk -F, '/^# check,[hd]2/ && $9 != "reported" {
		limit = $6 == "target" || $2 == "d2d" ? 1 : 1.03; lines++
		if (($5 / $7 - $8) ^ 2 > 1e-4) exit 1
		if ($8 != limit && ($8 <= limit) != ($9 == "ok")) exit 1 }
	END { exit !lines }' "$work/out"
verdict 'check: verdicts follow from ratios' $?
run "$bench" --check --min 4K --max 4K -n 3
succeeds " +d2h +4096 +auto_pageable +$number +target +3\.400 +$number  (ok|missed)" \
	" +d2d +4096 +auto +$number +target +3\.200 +$number  (ok|missed)" \
	'check: [0-9]+ ok, [0-9]+ missed'
verdict 'check: fixed targets' $?

for arguments in '0 0 4096 20' '--check --max 64 -n 11'; do
	if ! command -v python3 >/dev/null; then
		echo "skip --json: python3 is not installed"
		break
	fi
	run "$bench" $arguments --json
	succeeds && python3 "$root/tests/tools/json_check.py" gdr_bench <"$work/out" 2>>"$work/err"
	verdict "$arguments --json" $?
done

run env -u GDRCOPY_BACKEND LD_LIBRARY_PATH="$lib" "$bench" --help
succeeds 'Usage: gdr_bench \[options\] SRC_DEV DST_DEV SIZE ITERS \| --sweep'
verdict '--help needs no CUDA library' $?
run env LD_LIBRARY_PATH="$lib" "$bench" --version
succeeds 'gdr_bench 2\.6' 'CUDA driver none'
verdict '--version needs no CUDA library' $?

refuses 'no arguments' 1 '0 arguments where SRC_DEV DST_DEV SIZE ITERS are needed' "$bench"
refuses 'three arguments' 1 '3 arguments where SRC_DEV' "$bench" 0 0 4096
refuses 'five arguments' 1 '5 arguments where SRC_DEV' "$bench" 0 0 4096 1 1
refuses 'size 0' 1 'SIZE 0 is out of range: 1 to' "$bench" 0 0 0 1
refuses 'a size with a strange suffix' 1 "SIZE takes a number, not '4X'" "$bench" 0 0 4X 1
refuses 'no iterations' 1 'ITERS 0 is out of range' "$bench" 0 0 4096 0
refuses 'a GPU that is no number' 1 "SRC_DEV takes a number, not 'a'" "$bench" a 0 4096 1
refuses 'no such GPU' 1 'there is no GPU 1: SRC_DEV and DST_DEV take 0 to 0' "$bench" 0 1 4096 1
refuses 'sweep: no such GPU' 1 'there is no GPU 3: -d takes 0 to 0' "$bench" --sweep -d 3
refuses 'sweep: an argument' 1 "a sweep takes no '0'" "$bench" --sweep 0
refuses 'sweep: two formats' 1 '--csv and --json are two formats' "$bench" --sweep --csv --json
refuses 'sweep: no size is left' 1 '--min 8 is above --max 4' "$bench" --sweep --min 8 --max 4
refuses 'sweep: too large' 1 '--max 2G is out of range' "$bench" --sweep --max 2G
refuses 'sweep: unknown direction' 1 "'up' is none of: h2d, d2h, d2d" \
	"$bench" --sweep --direction up
refuses 'sweep: an empty direction' 1 'is none of: h2d' "$bench" --sweep --direction h2d,
refuses 'a sweep option without sweep' 1 '--csv belongs to a sweep: add --sweep' \
	"$bench" --csv 0 0 1 1
refuses 'an unknown option' 1 'option' "$bench" --no-such-option
refuses 'no CUDA library' 1 'no CUDA driver library' env LD_LIBRARY_PATH="$lib" "$bench" 0 0 4096 1
refuses 'no back end' 1 'gdr_open failed with 2 .*gdrcopy_info' \
	env GDRCOPY_BACKEND=gdrdrv "$bench" 0 0 4096 1
refuses 'no GPU' 1 'CUDA finds no GPU|CUDA_ERROR_NO_DEVICE' \
	env GDRCOPY_EMU=devices=0 "$bench" 0 0 4096 1
refuses 'no GPUDirect RDMA' 77 'no GPUDirect RDMA' env GDRCOPY_EMU=no-rdma "$bench" 0 0 4096 1
refuses 'BAR1 is full' 1 'BAR1 .* smaller SIZE' env GDRCOPY_EMU=bar1=64K "$bench" 0 0 1M 1
refuses 'sweep: BAR1 is full' 1 'BAR1 .* smaller --max' env GDRCOPY_EMU=bar1=64K "$bench" --sweep
refuses 'no GPU memory' 1 'cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY' \
	env GDRCOPY_EMU=fail=cuMemAlloc "$bench" 0 0 4096 1
run env GDRCOPY_EMU=fail=cuMemAlloc "$bench" --sweep --json
[ $rc = 1 ] && [ ! -s "$work/out" ]
verdict 'a failure leaves no half JSON behind' $?

# Planted errors of the copies must be found, before or after the timed copies.
if ${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -I"$root/include" -o "$work/wrong_data_v3.so" \
	"$root/tests/tools/wrong_data_v3.c" -ldl; then
	planted=$work/wrong_data_v3.so
	for plant in short nothing late; do
		refuses "one GPU: finds $plant" 1 \
			'gdr_copy_to_device moved wrong data: byte [0-9]+ of 5001 is' \
			env PLANT=$plant:device LD_PRELOAD="$planted" "$bench" 0 0 5001 10
		for pair in h2d:from_host d2h:to_host d2d:device; do
			direction=${pair%:*}
			refuses "sweep $direction: finds $plant" 1 \
				"$direction by road [a-z_]+ moved wrong data: byte [0-9]+ of 100" \
				env PLANT=$plant:${pair#*:} LD_PRELOAD="$planted" \
				"$bench" --sweep --direction $direction --min 100 --max 100 -n 3
		done
	done
	run env PLANT= LD_PRELOAD="$planted" "$bench" --sweep --min 100 --max 100 -n 3
	succeeds
	verdict 'nothing planted, nothing found' $?
else
	echo "not ok wrong_data_v3.c is not compiled"
	status=1
fi

if ! command -v python3 >/dev/null; then
	echo "skip plot: python3 is not installed"
	exit $status
fi
refuses 'plot: refuses emulated figures' 1 'emulated GPU and say nothing about hardware' \
	"$plot" "$work/emulated.csv" -o "$work/no.png"
grep -v '^#' "$work/emulated.csv" >"$work/stripped.csv"
refuses 'plot: refuses figures of no named GPU' 1 'lines that begin with # belong to it' \
	"$plot" "$work/stripped.csv" -o "$work/no.png"
refuses 'plot: no such file' 1 'No such file' "$plot" "$work/missing.csv"
[ ! -e "$work/no.png" ]
verdict 'plot: a refusal writes no picture' $?
if python3 -c 'import matplotlib' 2>/dev/null; then
	run env -u DISPLAY "$plot" "$root/tests/tools/gdr_bench.csv" -o "$work/sweep.png"
	succeeds && [ "$(head -c 4 "$work/sweep.png" | tail -c 3)" = PNG ]
	verdict 'plot: draws a PNG without a display' $?
else
	echo "skip plot: draws a PNG: matplotlib is not installed"
fi
exit $status
