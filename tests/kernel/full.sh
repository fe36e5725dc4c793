#!/bin/bash
# SPDX-License-Identifier: MIT
# The second tier: kernels with checkers inside, which are built where they are not there yet
# (10 minutes each), the module's coverage, kernels of other suites, and the build matrix.
# Prints harness lines.
#
# A checker makes a guest several times slower, so that the phases run a few at a time.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
CACHE=$ROOT/build/kernel
export GUEST_SECONDS=${GUEST_SECONDS:-1200}

GROUPS_kasan=("standin provider load persistent" layout12 faults sanity fuzz)
GROUPS_kcsan=(persistent layout12 fuzz)

# run_groups KIND: one guest for each group; the counts of each run are kept.
run_groups() {
	local kind=$1 group number=0
	local -n groups=GROUPS_$kind
	results=()
	for group in "${groups[@]}"; do
		number=$((number + 1))
		PHASES="$group leaks coverage" "$HERE/run.sh" "$kind"
		cp "$CACHE/$kind/result.txt" "$CACHE/$kind/result-$number.txt" &&
			results+=("$CACHE/$kind/result-$number.txt")
	done
}

{
	for kind in kasan kcsan; do
		if ! "$HERE/debug/build.sh" "$kind" >"$CACHE/debug-$kind.log" 2>&1; then
			echo "not ok $kind/kernel"
			tail -n 20 "$CACHE/debug-$kind.log"
			continue
		fi
		GCOV_PROFILE=y run_groups "$kind"
		[ "$kind" = kasan ] || continue
		if "$HERE/debug/coverage.sh" "${results[@]}" >"$CACHE/coverage.txt"; then
			echo "ok kasan/coverage"
		else
			echo "not ok kasan/coverage"
		fi
		sed 's/^/# /' "$CACHE/coverage.txt"
	done
	"$HERE/boots.sh"
	"$HERE/builds.sh"
} | tee "$CACHE/full.txt"
! grep -q '^not ok' "$CACHE/full.txt"
