#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the guest's suite in kernels of other Debian suites; prints harness lines.
#
#   tests/kernel/boots.sh             5.10, 6.1 of arm64, 6.12 of trixie, 7.2, 7.3
#   tests/kernel/boots.sh 7.2-sid     only these (names: lib/matrix.sh)
#
# PHASES, GUEST_SECONDS, GUEST_CPU and GUEST_APPEND are those of run.sh.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
CACHE=$ROOT/build/kernel
PHASES=${PHASES:-$(cat "$HERE/guest/phases.txt")}
GUEST_SECONDS=${GUEST_SECONDS:-600}
GUEST_CPU=${GUEST_CPU:-max}
GUEST_APPEND=${GUEST_APPEND:-}
MODULE_SOURCE=${MODULE_SOURCE:-$ROOT/src/modules/gdrdrv}
for part in kernels arch build guest suites matrix; do . "$HERE/lib/$part.sh"; done
mkdir -p "$CACHE/logs"

# The modules' make runs where the kernel's compiler is, with the project under its own name.
make() {
	if [ "$place" = / ]; then
		command make "$@" "${settings[@]}"
		return
	fi
	mkdir -p "$place$ROOT"
	unshare -m sh -c 'mount -t proc proc "$0/proc" && mount --bind "$1" "$0$1" && shift &&
		exec chroot "$0" make "$@"' "$place" "$ROOT" "$@" "${settings[@]}"
}

# image_of ABI: 7.x keeps the kernel in another package, and under another name.
image_of() {
	local abi=$1 dir=$CACHE/kernels/$1 file
	[ -s "$dir/vmlinux" ] && return 0
	mkdir -p "$dir"
	if [[ $abi = 7.* ]]; then
		file=$(fetch_package "linux-binary-$abi") || return 1
		dpkg-deb --fsys-tarfile "$file" | tar -xO --wildcards "*/vmlinuz*" >"$dir/vmlinuz"
	else
		file=$(fetch_package "linux-image-$abi") || return 1
		dpkg-deb --fsys-tarfile "$file" | tar -xO "./boot/vmlinuz-$abi" >"$dir/vmlinuz"
	fi
	# An arm64 kernel is not compressed.
	[[ $abi != *-arm64 ]] || { mv "$dir/vmlinuz" "$dir/vmlinux"; return; }
	extract_vmlinux "$dir/vmlinuz" "$dir/vmlinux.part" && mv "$dir/vmlinux.part" "$dir/vmlinux"
}

# Library, tools and the guest's own programs, for the processor of this kernel.
prepare_programs() {
	use_arch x86
	if [[ $1 = *-arm64 ]]; then
		use_arch arm64
		fetch_busybox >"$WORK/busybox.log" 2>&1 || { echo "skip $1: no busybox"; return 1; }
		command -v qemu-system-aarch64 >/dev/null ||
			{ echo "skip $1: qemu-system-aarch64 is not installed"; return 1; }
	fi
	build_project >"$CACHE/exes.log" 2>&1 || { echo "not ok $1/exes"; return 1; }
	build_programs >"$CACHE/programs.log" 2>&1 || { echo "not ok $1/programs"; return 1; }
}

run_kernel() {
	local kernel=$1 abi started=$SECONDS
	find_kernel "$@" || { echo "skip $kernel: $reason"; return; }
	abi=${headers#linux-headers-}
	WORK=$CACHE/$kernel MODULES=$WORK/modules
	mkdir -p "$WORK"
	prepare_programs "$kernel" || return
	image_of "$abi" >"$WORK/fetch.log" 2>&1 ||
		{ echo "skip $kernel: no image of $abi"; return; }
	if ! build_modules "/usr/src/$headers" >"$WORK/build.log" 2>&1; then
		echo "not ok $kernel/build"
		tail -n 20 "$WORK/build.log"
		return
	fi
	make_image "$kernel"
	boot "$CACHE/kernels/$abi/vmlinux"
	judge "$kernel" $?
	echo "# $kernel: $abi, $((SECONDS - started)) s"
}

[ $# != 0 ] || set -- 5.10 6.1-arm64 6.12-gcc14 7.2 7.3
each_kernel run_kernel "$@" | tee "$CACHE/boots.txt"
! grep -q '^not ok' "$CACHE/boots.txt"
