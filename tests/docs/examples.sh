#!/bin/bash
# SPDX-License-Identifier: MIT
# Each example compiles by the line in its first comment and runs on the emulated GPU.
. "$(dirname "$0")/report.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export LD_LIBRARY_PATH=$LIBDIR:$BUILD/emu GDRCOPY_BACKEND=emu
unset GDRCOPY_EMU GDRCOPY_EMU_DEVICES GDRCOPY_ENABLE_LOGGING

compile_line() {
	sed -n '2s|^/\* \(cc .*\) \*/$|\1|p' "$1"
}

# The words of the line as they stand, then stricter warnings, and an output that is not shared.
compile() {
	local line
	line=$(compile_line "$1")
	[ -n "$line" ] || { echo "$1: line 2 is no comment with a compile line"; return 1; }
	[[ $line == *" $1 "* ]] || { echo "$1: its line compiles another file"; return 1; }
	# shellcheck disable=SC2086 # the line is a list of words
	${line/#cc/${CC:-cc}} -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
		-Wwrite-strings -Wvla -Werror -o "$2" 2>&1
}

# The README shows the compile line of hello.c, its five calls and those of hello_v3.c.
readme_differences() {
	grep -qF "$(compile_line examples/hello.c)" README.md || echo "other compile line of hello.c"
	sed -n '/gdr_open(/,/gdr_close(/p' examples/hello.c examples/hello_v3.c | sed 's|[ 	]*/\*.*||; s/^[ 	]*//' |
		while read -r line; do
			grep -qF "$line" README.md || echo "not in README.md: $line"
		done
}

for source in examples/*.c; do
	name=$(basename "$source" .c)
	if ! message=$(compile "$source" "$work/$name"); then
		report "example_$name" "$message"
		continue
	fi
	output=$(timeout 60 "$work/$name" 2>&1)
	rc=$?
	[ $rc = 0 ] && output=
	report "example_$name" "$output${output:+$'\n'}$([ $rc = 0 ] || echo "exit status $rc")"

	# Without a usable back end an example says so and fails, and does not crash.
	GDRCOPY_BACKEND=gdrdrv GDRCOPY_EMU=no-rdma timeout 60 "$work/$name" >/dev/null 2>"$work/err"
	rc=$?
	[ $rc = 1 ] && [ -s "$work/err" ] && rc=0
	[ -c /dev/gdrdrv ] && { skip "example_${name}_without_gpu" "/dev/gdrdrv exists"; continue; }
	report "example_${name}_without_gpu" "$([ $rc = 0 ] || echo "exit status $rc, or no message")"
done
report readme_shows_hello "$(readme_differences)"
exit $status
