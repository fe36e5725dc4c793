#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs gdrcopy_sanity on emulated GPUs in several configurations, and judges each
# summary: nothing fails, and exactly the tests are waived that must be.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${GDRCOPY_BUILD:-$root/build}
lib=${GDRCOPY_LIBDIR:-$root/src/userspace}
sanity=$build/bin/gdrcopy_sanity
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

unset GDRCOPY_EMU GDRCOPY_EMU_DEVICES GDRCOPY_ENABLE_LOGGING
export GDRCOPY_BACKEND=emu
# Sanitizers keep freed memory for a while; the tests that count mappings would take that of
# the channels for a leak.
[ -z "${HARNESS_SLOW:-}" ] || export GDRCOPY_DMA=0

# Conditions of tests, and the tests that are waived without them.
always="basic_with_tokens plus_offsets_disjoint"
coherent="basic_v2_forcepci_cumemalloc basic_v2_forcepci_vmmalloc
	data_validation_v2_forcepci_cumemalloc data_validation_mix_mappings_cumemalloc"
two_processes="plus_memory_ipc"
for test in fork_access_after_free fork_map_and_free unix_sock_shared_fd_gdr_pin_buffer \
	unix_sock_shared_fd_gdr_map; do
	two_processes+=" invalidation_${test}_cumemalloc invalidation_${test}_vmmalloc"
done
descriptor="data_validation_mix_mappings_cumemalloc
	invalidation_fork_child_gdr_pin_parent_with_tokens"
for test in fork_after_gdr_map fork_child_gdr_map_parent unix_sock_shared_fd_gdr_pin_buffer \
	unix_sock_shared_fd_gdr_map; do
	descriptor+=" invalidation_${test}_cumemalloc invalidation_${test}_vmmalloc"
done
extended=leakage_pin_pages_fork_cumemalloc

# with_emulator COMMAND...: the loader finds our library and the emulated driver.
with_emulator() {
	LD_LIBRARY_PATH=$lib:$build/emu "$@"
}

without_cuda() {
	LD_LIBRARY_PATH=$lib "$@"
}

# verdict NAME RESULT: one line of the harness, with the logs of a failure.
verdict() {
	if [ "$2" = 0 ]; then
		echo "ok $1"
		return
	fi
	echo "not ok $1"
	status=1
	cat "$work/out" "$work/err" >&2
}

# The names under a title of the summary.
names_under() {
	sed -n "/^$1\$/,/^[^ ]/s/^    //p" "$work/out" | sort
}

sorted() {
	tr -s ' \t\n' '\n' <<<"$*" | sed '/^$/d' | sort -u
}

# configuration NAME EMU WAIVED ARGUMENTS...: one run of the whole suite.
configuration() {
	local name=$1 emu=$2 waived=$3 rc total passed
	shift 3
	GDRCOPY_EMU=$emu with_emulator "$sanity" "$@" >"$work/out" 2>"$work/err"
	rc=$?
	read -r total passed < <(sed -n \
		's/^Total: \([0-9]*\), Passed: \([0-9]*\), Failed: 0, Waived: [0-9]*$/\1 \2/p' \
		"$work/out")
	[ $rc = 0 ] && [ -n "${total:-}" ] && [ -z "$(names_under 'List of failed tests:')" ]
	verdict "$name: no test fails" $?
	sorted "$waived" >"$work/expected"
	names_under 'List of waived tests:' | diff "$work/expected" - >>"$work/err" &&
		[ "$((${total:-0} - ${passed:-0}))" = "$(wc -l <"$work/expected")" ]
	verdict "$name: exactly the right tests are waived" $?
}

# Names of one group: 1 classic, 2 extended, 3 beyond 2.6.
list() {
	without_cuda "$sanity" -l |
		awk -v group="$1" '/^List/ { n++ } /^    / && n == group { print $1 }'
}

check_list() {
	without_cuda "$sanity" -l >"$work/out" 2>"$work/err" &&
		[ "$(sed -n 1p "$work/out")" = "List of all available tests:" ] &&
		grep -A1 '^$' "$work/out" | grep -qx 'List of all available extended tests:' &&
		[ "$(list 1 | wc -l)" = 36 ] && [ "$(list 2)" = $extended ] &&
		! list 3 | grep -qv '^plus_' && ! list 1 | grep -q '^plus_'
	verdict "list: works without CUDA, 36 tests and 1" $?
	without_cuda "$sanity" -h >"$work/out" 2>"$work/err" && grep -q -- '-t, --test' "$work/out"
	verdict "help: works without CUDA" $?
}

check_refusals() {
	! without_cuda "$sanity" -x >"$work/out" 2>"$work/err" &&
		! without_cuda "$sanity" -t no_such_test >>"$work/out" 2>>"$work/err" &&
		! without_cuda "$sanity" -d x >>"$work/out" 2>>"$work/err" &&
		! without_cuda "$sanity" extra >>"$work/out" 2>>"$work/err" &&
		[ ! -s "$work/out" ] && [ -s "$work/err" ]
	verdict "options: bad ones are refused on stderr" $?
	without_cuda "$sanity" -t attributes_sanity >"$work/out" 2>"$work/err"
	[ $? = 1 ] && grep -q 'no CUDA driver library' "$work/err" &&
		grep -qx 'Total: 1, Passed: 0, Failed: 1, Waived: 0' "$work/out" &&
		grep -qx 'Error: Encountered an error or a test failure with status=1' "$work/err"
	verdict "no CUDA: one line says so, the test fails" $?
	with_emulator "$sanity" -d 7 -t attributes_sanity >"$work/out" 2>"$work/err"
	[ $? = 1 ] && grep -q 'there is no GPU 7' "$work/err"
	verdict "no such GPU: one line says so, the test fails" $?
}

check_verbose() {
	with_emulator "$sanity" -v -s -t basic_cumemalloc -t basic_with_tokens \
		>"$work/out" 2>"$work/err" &&
		diff - "$work/out" >>"$work/err" <<-'END'
			&&&& RUNNING basic_cumemalloc
			&&&& PASSED basic_cumemalloc
			&&&& RUNNING basic_with_tokens
			&&&& WAIVED basic_with_tokens
		END
	verdict "verbose, no summary: the four lines and nothing else" $?
	grep -q '^basic_with_tokens waived: .*persistent' "$work/err"
	verdict "verbose: the reason of a waiver is on stderr" $?
}

check_json() {
	if ! command -v python3 >/dev/null; then
		echo "skip json: no python3 to parse it"
		return
	fi
	with_emulator "$sanity" --json -t basic_cumemalloc -t basic_with_tokens \
		>"$work/out" 2>"$work/err" &&
		python3 - "$work/out" >>"$work/err" 2>&1 <<-'END'
			import json, sys
			run = json.load(open(sys.argv[1]))
			assert [t["result"] for t in run["tests"]] == ["passed", "waived"]
			assert "persistent" in run["tests"][1]["reason"]
			counts = [run[key] for key in ("total", "passed", "failed", "waived")]
			assert counts == [2, 1, 0, 1]
			assert run["attributes"]["use_persistent_mapping"] == 1
		END
	verdict "json: parses and agrees" $?
}

if ! [ -x "$sanity" ]; then
	echo "not ok $sanity is not built"
	exit 1
fi
check_list
check_refusals
check_verbose
check_json
configuration "one GPU" "" "$always $coherent"
configuration "coherent, second GPU" devices=2,coherent "$always" -d 1
# The rest repeats the same code with other attributes: not under slow instruments.
if [ -z "${HARNESS_SLOW:-}" ]; then
	configuration "two GPUs, first" devices=2 "$always $coherent" -d 0
	configuration "two GPUs, second" devices=2 "$always $coherent" -d 1
	configuration "exclusive mode" exclusive "$always $coherent $two_processes"
	configuration "device mappings" wc=0 "$always $coherent"
	configuration "extended" "" "$always $coherent $extended" -e
	GDRCOPY_BACKEND=dmabuf configuration "dma-buf back end" driver=13030 \
		"$always $coherent $descriptor"
	GDRCOPY_BACKEND=dmabuf configuration "dma-buf back end, coherent" \
		driver=13030,coherent "$always $descriptor"
	configuration "no GPUDirect RDMA" no-rdma "$(list 1) $(list 3)"
	[ "$(grep -c 'does not support GPUDirect RDMA' "$work/err")" = 1 ]
	verdict "no GPUDirect RDMA: said once" $?
fi
exit $status
