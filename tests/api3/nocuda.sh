#!/bin/bash
# SPDX-License-Identifier: MIT
# No copy calls CUDA, on any road, by either interface (nocuda/main.c).
set -u
cd "$(dirname "$0")/../.." || exit 2
LIB=$(realpath "${GDRCOPY_LIBDIR:-src/userspace}")
EMU=$(realpath "${GDRCOPY_BUILD:-build}/emu")
SOURCES=tests/api3/nocuda
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
rc=0
if [ "$(uname -m)" != x86_64 ]; then
	echo "skip no_cuda_calls: the counting libcuda is written for x86-64"
	exit 77
fi

# Exported functions of the emulated libcuda; its door to the library is hardware, so not counted.
names() {
	nm -D --defined-only "$EMU/libcuda.so.1" | awk '$2 == "T" { print $3 }' | sort
}

# Keeps every register but r11, which calls through the PLT may change as well.
write_calls() {
	local name number=0
	echo '.text'
	for name in $(names); do
		echo ".globl $name"
		echo ".type $name, @function"
		echo "$name:"
		[[ $name != cu* ]] || echo '	lock incq .Lcount(%rip)'
		echo "	leaq count_targets(%rip), %r11"
		echo "	jmp *$((8 * number))(%r11)"
		number=$((number + 1))
	done
	echo '.section .rodata'
	number=0
	for name in $(names); do
		echo ".Lname$number: .asciz \"$name\""
		number=$((number + 1))
	done
	echo '.section .data.rel.ro, "aw"'
	echo '.balign 8'
	echo '.globl count_names, count_of_names'
	echo '.hidden count_names, count_of_names'
	echo 'count_names:'
	for ((i = 0; i < number; i++)); do
		echo "	.quad .Lname$i"
	done
	echo "count_of_names: .quad $number"
	echo '.bss'
	echo '.balign 8'
	echo '.globl count_targets, count_of_cuda_calls'
	echo '.hidden count_targets'
	echo '.type count_of_cuda_calls, @object'
	echo '.size count_of_cuda_calls, 8'
	echo "count_targets: .zero $((8 * number))"
	echo 'count_of_cuda_calls:'
	echo '.Lcount: .zero 8'
	echo '.section .note.GNU-stack, "", @progbits'
}

build() {
	mkdir "$WORK/counting"
	write_calls >"$WORK/calls.S"
	gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -fPIC -shared \
		-Wl,-soname,libcuda.so.1 "-DREAL_LIBCUDA=\"$EMU/libcuda.so.1\"" \
		-o "$WORK/counting/libcuda.so.1" $SOURCES/count.c "$WORK/calls.S" -ldl &&
	gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -Iinclude -Isrc/emu/include \
		-I$SOURCES -o "$WORK/nocuda" $SOURCES/main.c $SOURCES/old.c -L"$LIB" -lgdrapi \
		"$WORK/counting/libcuda.so.1" -ldl
}

# try NAME VARIABLE=VALUE...
try() {
	local name=$1
	shift
	if env LD_LIBRARY_PATH="$WORK/counting:$LIB" GDRCOPY_BACKEND=emu \
			GDRCOPY_EMU=devices=2 "$@" timeout 60 "$WORK/nocuda"; then
		echo "ok $name"
	else
		echo "not ok $name"
		rc=1
	fi
}

if ! build; then
	echo "not ok no_cuda_calls: does not build"
	exit 1
fi
try no_cuda_calls
try no_cuda_calls_by_cpu GDRCOPY_DMA=0
try no_cuda_calls_by_engine GDRCOPY_DMA=min=0
try no_cuda_calls_staged GDRCOPY_DMA=min=0 GDRCOPY_ROUTE=staged
try no_cuda_calls_when_an_engine_dies GDRCOPY_EMU=devices=2,dma=die:20 GDRCOPY_DMA=min=0
exit $rc
