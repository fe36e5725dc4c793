#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the whole test suite and ends with "N passed, N failed, N skipped".
#
#   tests/run.sh                 everything (make check)
#   tests/run.sh plain asan      only these parts
#
# Parts: plain, valgrind, asan, tsan, clang, cross, kernel.  Each program prints "ok NAME",
# "not ok NAME" or "skip NAME: reason" lines; those are counted.  A program
# that dies or runs out of time counts as one failure.  Logs: build/check/.
set -u
cd "$(dirname "$0")/.." || exit 2
ROOT=$PWD
LOGS=$ROOT/build/check
TIMEOUT=${GDRCOPY_TEST_TIMEOUT:-400}
JOBS=$(nproc)
parts=${*:-plain valgrind asan tsan clang cross kernel}
passed=0 failed=0 skipped=0
failures=()
mkdir -p "$LOGS"
: >"$LOGS/skipped"

# The suite must not depend on what the caller has set.
unset "${!GDRCOPY_@}" LD_PRELOAD MAKEFLAGS MFLAGS MAKELEVEL COMMONCFLAGS

note_failure() {
	failed=$((failed + 1))
	failures+=("$1")
	echo "FAILED: $1"
}

# run LABEL COMMAND...: one program; its lines are counted.
run() {
	local label=$1 log rc ok bad skip start=$SECONDS
	shift
	log=$LOGS/$(tr '/ ' '__' <<<"$label").log
	timeout -k 10 "$TIMEOUT" "$@" >"$log" 2>"$log.err" </dev/null
	rc=$?
	ok=$(grep -c '^ok ' "$log")
	bad=$(grep -c '^not ok ' "$log")
	skip=$(grep -c '^skip ' "$log")
	passed=$((passed + ok)) skipped=$((skipped + skip))
	sed -n "s|^skip |$label: |p" "$log" >>"$LOGS/skipped"
	while read -r line; do note_failure "$label: ${line#not ok }"; done \
		< <(grep '^not ok ' "$log")
	if [ "$bad" = 0 ] && [ $rc != 0 ] && [ $rc != 77 ]; then
		note_failure "$label: exit status $rc"
		bad=1
	elif [ $((ok + bad + skip)) = 0 ]; then
		note_failure "$label: reported no case"
		bad=1
	fi
	[ "$bad" = 0 ] || { grep -v '^ok ' "$log"; tail -n 30 "$log.err"; }
	printf '%-44s %5d ok %3d failed %3d skipped %4ds\n' "$label" "$ok" "$bad" "$skip" \
		$((SECONDS - start))
}

build() {
	make -s -j"$JOBS" "$@" tests >"$LOGS/build.log" 2>&1 && return 0
	tail -n 30 "$LOGS/build.log"
	note_failure "build: make $*"
	return 1
}

# Where a variant's results lie.
enter_variant() {
	export GDRCOPY_BUILD=$ROOT/build
	export GDRCOPY_LIBDIR=$ROOT/src/userspace
	if [ "$1" != plain ]; then
		GDRCOPY_BUILD=$ROOT/build/$1
		GDRCOPY_LIBDIR=$GDRCOPY_BUILD/lib
	fi
	export LD_LIBRARY_PATH=$GDRCOPY_LIBDIR:$GDRCOPY_BUILD/emu
}

# programs VARIANT FOLDER...: every program of these test folders.
programs() {
	local variant=$1 folder program
	shift
	for folder in "$@"; do
		for program in "$GDRCOPY_BUILD/tests/$folder"/*; do
			[ -x "$program" ] && run "$variant/$folder/$(basename "$program")" "$program"
		done
	done
}

# scripts VARIANT FOLDER...: every script of these test folders.
scripts() {
	local variant=$1 folder script
	shift
	for folder in "$@"; do
		for script in tests/"$folder"/*.sh; do
			[ -x "$script" ] && run "$variant/$folder/$(basename "$script" .sh)" "$script"
		done
	done
}

part_plain() {
	build || return
	enter_variant plain
	programs plain unit abi api api3 regress emu dma copy
	scripts plain abi api api3 dma tools sanity docs boot
}

part_valgrind() {
	local program
	build || return
	enter_variant plain
	if ! command -v valgrind >/dev/null; then
		note_failure "valgrind is not installed; make check-deps"
		return
	fi
	# GDRCOPY_COPY: valgrind knows neither AVX-512 nor MOVDIR64B.
	for program in "$GDRCOPY_BUILD"/tests/{unit,api,api3,abi,regress,dma}/* \
			"$GDRCOPY_BUILD"/tests/copy/{select,split}; do
		[ -x "$program" ] || continue
		# Races between busy threads: valgrind runs one thread at a time and lets
		# the others starve.  The thread and address sanitizers run it.
		case $(basename "$program") in copy_races | races) continue ;; esac
		# It starts itself anew, which valgrind does not follow.
		[ "${program#"$GDRCOPY_BUILD"/tests/}" != dma/port ] || continue
		run "valgrind/$(basename "$program")" env GDRCOPY_COPY=avx2 HARNESS_SLOW=1 \
			valgrind -q --fair-sched=yes \
			--error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
			"$program"
	done
}

part_asan() {
	build VARIANT=asan || return
	enter_variant asan
	export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
	export HARNESS_SLOW=1
	programs asan unit api api3 regress emu dma copy
	scripts asan sanity
	unset HARNESS_SLOW
}

part_tsan() {
	build VARIANT=tsan || return
	enter_variant tsan
	export TSAN_OPTIONS=halt_on_error=0:exitcode=66 HARNESS_SLOW=1
	programs tsan unit api api3 regress emu dma
	scripts tsan sanity
	unset HARNESS_SLOW
}

# Warnings of the second compiler are errors too.
part_clang() {
	if ! command -v clang >/dev/null; then
		note_failure "clang is not installed; make check-deps"
		return
	fi
	if make -s -j"$JOBS" VARIANT=clang CC=clang tests >"$LOGS/clang.log" 2>&1; then
		passed=$((passed + 1))
		enter_variant clang
		programs clang unit api api3 regress dma
	else
		tail -n 30 "$LOGS/clang.log"
		note_failure "clang: build"
	fi
}

part_cross() {
	enter_variant plain
	run cross/copy tests/copy/cross.sh
	run cross/build tests/cross_build.sh
}

# Boots kernels under QEMU, two to four minutes each (docs/kernel-testing.md).
part_kernel() {
	TIMEOUT=1200 run kernel tests/kernel/run.sh
}

start=$SECONDS
for part in $parts; do
	part_start=$SECONDS
	"part_$part"
	echo "== $part: $((SECONDS - part_start)) s"
done

if [ -s "$LOGS/skipped" ]; then
	echo "Skipped:"
	sort "$LOGS/skipped" | sed 's/^/  /'
fi
if [ ${#failures[@]} -gt 0 ]; then
	echo "Failed:"
	printf '  %s\n' "${failures[@]}"
fi
echo "Time: $((SECONDS - start)) s; logs in build/check"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
