# SPDX-License-Identifier: MIT
# What the scripts of this folder share: where things lie, and how a case is judged.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${GDRCOPY_BUILD:-$root/build}
lib=${GDRCOPY_LIBDIR:-$root/src/userspace}
bin=$build/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
unset GDRCOPY_EMU GDRCOPY_EMU_DEVICES GDRCOPY_ENABLE_LOGGING GDRCOPY_COPY
export GDRCOPY_BACKEND=emu LD_LIBRARY_PATH=$lib:$build/emu

# run COMMAND...: $rc, $work/out, $work/err.
run() {
	"$@" >"$work/out" 2>"$work/err" </dev/null
	rc=$?
}

# verdict NAME RESULT: one line of the harness, and the output of a failure.
verdict() {
	if [ "$2" = 0 ]; then
		echo "ok $1"
		return
	fi
	echo "not ok $1"
	status=1
	echo "rc $rc" >&2
	cat "$work/out" "$work/err" >&2
}

# prints EXPRESSION: a whole line of stdout, as an extended regular expression.
prints() {
	grep -Eqx -- "$1" "$work/out" || { echo "no line: $1" >>"$work/err"; false; }
}

# fails_with STATUS EXPRESSION: one line on stderr, nothing else there.
fails_with() {
	[ "$rc" = "$1" ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -Eq -- "$2" "$work/err"
}
