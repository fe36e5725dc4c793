#!/bin/bash
# SPDX-License-Identifier: MIT
# Every failure gives one line that names the remedy, and a status other than 0.
. "$(dirname "$0")/lib.sh"

# refuses NAME STATUS EXPRESSION COMMAND...
refuses() {
	local name=$1 expected=$2 expression=$3
	shift 3
	run "$@"
	fails_with "$expected" "$expression"
	verdict "$name" $?
}

# gives NAME GDRCOPY_EMU STATUS EXPRESSION TOOL ARGUMENTS...
gives() {
	local name=$1 emu=$2 expected=$3 expression=$4 tool=$5
	shift 5
	refuses "$name" "$expected" "$expression" env GDRCOPY_EMU="$emu" "$bin/gdrcopy_$tool" "$@"
}

for tool in copybw copylat apiperf pplat info; do
	run env -u GDRCOPY_BACKEND LD_LIBRARY_PATH="$lib" "$bin/gdrcopy_$tool" --help
	[ $rc = 0 ] && grep -q -- '--json' "$work/out" && [ ! -s "$work/err" ]
	verdict "$tool --help needs no CUDA library" $?
	run env LD_LIBRARY_PATH="$lib" "$bin/gdrcopy_$tool" --version
	[ $rc = 0 ] && prints "gdrcopy_$tool 2\.6" && prints 'CUDA driver none'
	verdict "$tool --version needs no CUDA library" $?
	gives "$tool: an unknown option" '' 1 'option' "$tool" --no-such-option
	gives "$tool: a superfluous argument" '' 1 'unexpected argument' "$tool" 5
	[ $tool = info ] && continue
	refuses "$tool: no CUDA library" 1 'no CUDA driver library' \
		env LD_LIBRARY_PATH="$lib" "$bin/gdrcopy_$tool"
	refuses "$tool: no back end" 1 \
		'gdr_open error: Is gdrdrv driver installed and loaded\?.*GDRCOPY_ENABLE_LOGGING' \
		env GDRCOPY_BACKEND=gdrdrv "$bin/gdrcopy_$tool"
	gives "$tool: no GPU" devices=0 1 'GPU|CUDA_ERROR_NO_DEVICE' "$tool"
	gives "$tool: no such GPU" '' 1 'there is no GPU 7: -d takes 0 to 0' "$tool" -d 7
	gives "$tool: no GPUDirect RDMA" no-rdma 77 'no GPUDirect RDMA support' "$tool"
	gives "$tool: no GPUDirect RDMA, JSON" no-rdma 77 'no GPUDirect RDMA' "$tool" --json
	[ ! -s "$work/out" ]
	verdict "$tool: a failure leaves no half JSON behind" $?
	gives "$tool: BAR1 is full" bar1=64K 1 'BAR1' "$tool" -s 1M
	gives "$tool: map fails" fail=map 1 'gdr_map.* failed with 12' "$tool"
	gives "$tool: no GPU memory" fail=cuMemAlloc 1 \
		'cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY' "$tool"
	gives "$tool: a refused mapping type" '' 1 'gdr_map|Caching is refused.*-M default' \
		"$tool" -M cache
	gives "$tool: -M nonsense" '' 1 'is none of: default, wc, cache, device' "$tool" -M nonsense
	gives "$tool: -a nonsense" '' 1 'is none of: cuMemAlloc, cuMemCreate' "$tool" -a malloc
	gives "$tool: -s nonsense" '' 1 '-s takes a number' "$tool" -s many
	gives "$tool: -s -1" '' 1 '-s takes a number' "$tool" -s -1
done
for tool in copybw copylat apiperf; do
	gives "$tool: size 0" '' 1 'out of range' "$tool" -s 0
	gives "$tool: a size that wraps" '' 1 'out of range' "$tool" -s 18446744073709551615G
done

gives 'copybw: odd offset' '' 1 'not a multiple of 4' copybw -o 2
gives 'copybw: offset and size too long' '' 1 'exceed the allocation' copybw -o 65536 -c 65540
gives 'copybw: offset beyond' '' 1 'exceed the allocation' copybw -o 131072
gives 'copylat: -C without a cached mapping' '' 1 'cached mapping' copylat -C -s 8
gives 'pplat: odd payload' '' 1 'not a multiple of 4' pplat -s 6
gives 'pplat: too many threads' '' 1 'out of range' pplat -T 2000
gives 'pplat: mode 2' '' 1 'out of range' pplat -m 2
gives 'pplat: unknown place' '' 1 'is none of: gpumem, hostmem' pplat -G disk
gives 'pplat: the GPU never answers' fail=kernel 1 'no answer from the GPU .* within 1 s' \
	pplat -u 1
gives 'pplat: the launch fails' fail=cuLaunchKernel 1 'cuLaunchKernel failed' pplat
gives 'pplat: wrong payload on the GPU' fail=payload 1 'had not arrived' pplat -s 64 -t 10
gives 'pplat: wrong payload from the GPU' fail=payload 1 'payload word 0' pplat -s 64 -m 1 -t 10
"$bin/gdrcopy_copybw" -w 1 -r 1 >/dev/full 2>"$work/err"
rc=$?
fails_with 1 'cannot write'
verdict 'copybw: a full disk' $?

# On x86 an uncached mapping is the classic cause of very slow writes.
run env GDRCOPY_EMU=wc=0 "$bin/gdrcopy_copybw" -w 5 -r 5
if [ "$(uname -m)" = x86_64 ]; then
	fails_with 0 'warning: the mapping is not write-combined'
	verdict 'copybw: warns of a mapping that is not write-combined' $?
fi

run env -u GDRCOPY_BACKEND LD_LIBRARY_PATH="$lib" "$bin/gdrcopy_info"
[ -e /dev/nvidiactl ] || [ -e /dev/gdrdrv ] || {
	fails_with 1 'no back end is usable' && prints ' +none: no CUDA driver library.*'
	verdict 'info: no back end' $?
}
run env GDRCOPY_EMU=no-rdma "$bin/gdrcopy_info" --probe
[ $rc = 0 ] && prints ' +mapping: none, gdr_pin_buffer fails with 22 .*'
verdict 'info: a GPU that cannot be pinned' $?
run env GDRCOPY_BACKEND=nonsense "$bin/gdrcopy_info"
[ $rc = 1 ] && ! grep -q 'is used' "$work/out"
verdict 'info: an unknown back end is asked for' $?
exit $status
