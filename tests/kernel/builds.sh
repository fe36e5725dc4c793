#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds gdrdrv.ko for every kernel and NVIDIA driver that Debian has; prints harness
# lines, and a table.
#
#   tests/kernel/builds.sh                        everything (make check-kernel-builds)
#   tests/kernel/builds.sh 6.1 7.3                only these kernels
#   DRIVERS="layout-2.0-open mit" tests/kernel/builds.sh
#
# A warning is a failure.  "mit" is a build as MODULE_LICENSE("MIT") against plain exports, in
# which modpost names each GPL-only symbol; one of them would keep the module from loading
# beside the proprietary driver.  "sparse" and "W=1" are checks, where the kernel's own
# headers pass them.  What is fetched or built lies in build/kernel, and is kept.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
CACHE=$ROOT/build/kernel
MODULE_SOURCE=${MODULE_SOURCE:-$ROOT/src/modules/gdrdrv}
JOBS=${JOBS:-$(nproc)}
. "$HERE/lib/suites.sh"
. "$HERE/lib/drivers.sh"
mkdir -p "$CACHE"

# Name, where it is built, compiler, header package, Debian suites.
KERNELS='5.10|host|gcc-12|linux-headers-5\.10\.0-[0-9]+-amd64|bullseye bullseye-security
6.1|host|gcc-12|linux-headers-6\.1\.0-[0-9]+-amd64|bookworm bookworm-security
6.12|host|gcc-12|linux-headers-6\.12\.[0-9]+\+deb12-amd64|bookworm bookworm-security
6.1-arm64|host|aarch64-linux-gnu-gcc-12|linux-headers-6\.1\.0-[0-9]+-arm64|bookworm bookworm-security
6.12-gcc14|trixie|gcc-14|linux-headers-6\.12\.[0-9]+\+deb13-amd64|trixie trixie-security
7.2|trixie|gcc-14|linux-headers-7\.2\.[0-9]+\+deb13-amd64|trixie trixie-backports
7.3|trixie|gcc-14|linux-headers-7\.3\.[0-9]+\+deb13-amd64|trixie trixie-backports
7.2-sid|sid|gcc-16|linux-headers-7\.[0-9.]+\+deb14-amd64|sid'
# Other suites may be gone one day; these two are never skipped.
MUST="6.1 6.12"
CHECKED="6.1 6.12"

cannot() {
	if [[ " $MUST " = *" $1 "* ]]; then
		echo "not ok builds/$1: $2"
	else
		echo "skip builds/$1: $2"
	fi
	echo "$1 - - $2" >>"$CACHE/builds.rows"
}

# result KERNEL DRIVER STATUS LOG
result() {
	local verdict=ok
	[ "$3" = 0 ] || verdict="not ok"
	echo "$verdict builds/$1/$2"
	[ "$3" = 0 ] || grep -v '^ *$' "$4" | tail -n 15 | sed 's/^/# /'
	echo "$1 $2 ${verdict/not ok/FAILED}" >>"$CACHE/builds.rows"
}

wanted() {
	[[ " ${DRIVERS:-$1} " = *" $1 "* ]]
}

fresh_folder() {
	rm -rf "$1"
	mkdir -p "$1"
	cp -p "$MODULE_SOURCE"/* "$1/"
}

# make_module DRIVER MAKE-ARGUMENT...: in the place of the current kernel.
make_module() {
	local driver=$1
	shift
	rm -rf "${place%/}/$folder/driver"
	cp -r "$CACHE/drivers/$driver" "${place%/}/$folder/driver"
	inside "$place" make -s -j"$JOBS" -C "/$folder/gdrdrv" KERNELDIR="/usr/src/$headers" \
		KVER="${headers#linux-headers-}" NV_DRIVER_PATH="/$folder/driver" \
		"${cross[@]}" "$@"
}

# The module must be there, and the log hold no warning about anything.
built_clean() {
	[ -e "${place%/}/$folder/gdrdrv/gdrdrv.ko" ] && ! grep -qi 'warning' "$1"
}

build_driver() {
	local kernel=$1 driver=$2 log=$CACHE/logs/$1-$2.log
	fresh_folder "${place%/}/$folder/gdrdrv"
	make_module "$driver" >"$log" 2>&1 && built_clean "$log"
	result "$kernel" "$driver" $? "$log"
}

build_mit() {
	local kernel=$1 dir=${place%/}/$folder/gdrdrv log=$CACHE/logs/$1-mit.log
	fresh_folder "$dir"
	sed -i 's|MODULE_LICENSE("Dual MIT/GPL")|MODULE_LICENSE("MIT")|' "$dir"/*.c
	[ "$(grep -l 'MODULE_LICENSE("MIT")' "$dir"/*.c | wc -l)" = 2 ] &&
		make_module layout-2.0-proprietary >"$log" 2>&1 && built_clean "$log"
	result "$kernel" mit $? "$log"
}

# check_with KERNEL NAME MAKE-ARGUMENT...: for both flavours; only lines about our own files count.
check_with() {
	local kernel=$1 name=$2 driver status=0 log=$CACHE/logs/$1-$2.log
	shift 2
	: >"$log"
	for driver in layout-2.0-open layout-2.0-proprietary; do
		fresh_folder "${place%/}/$folder/gdrdrv"
		make_module "$driver" "$@" >>"$log" 2>&1 || status=1
	done
	grep -E "(^|[ /])($(cd "$MODULE_SOURCE" && echo *.[ch] | tr ' ' '|')):[0-9]+.*(warning|error)" "$log" && status=1
	result "$kernel" "$name" $status "$log"
}

build_all() {
	local kernel=$1 driver
	for driver in $(driver_names); do
		wanted "$driver" || continue
		if [ -e "$CACHE/drivers/$driver/dkms.conf" ]; then
			build_driver "$kernel" "$driver"
		else
			echo "$kernel $driver -" >>"$CACHE/builds.rows"
		fi
	done
	wanted mit && build_mit "$kernel"
	[[ " $CHECKED " = *" $kernel "* ]] || return
	wanted W=1 && check_with "$kernel" W=1 W=1
	wanted sparse || return
	if command -v sparse >/dev/null; then
		check_with "$kernel" sparse C=2 CF=-D__CHECK_ENDIAN__
	else
		echo "skip builds/$kernel/sparse: sparse is not installed"
	fi
}

# Sets place, headers, folder and cross for the functions above.
run_kernel() {
	local kernel=$1 where=$2 compiler=$3 expression=$4 suites=$5 arch=amd64
	place=/ folder=${CACHE#/}/builds/$kernel cross=("CC=$compiler")
	if [ "$where" != host ]; then
		place=$CACHE/$where folder=builds/$kernel
		folder_of "$where" "$compiler" >"$CACHE/logs/$where.log" 2>&1 ||
			{ cannot "$kernel" "no folder with $compiler of $where"; return; }
	elif ! command -v "$compiler" >/dev/null; then
		cannot "$kernel" "$compiler is not installed"
		return
	fi
	if [[ $kernel = *-arm64 ]]; then
		arch=arm64
		cross+=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	fi
	# shellcheck disable=SC2086 # suites are words
	use_suite "$kernel" $arch $suites ||
		{ cannot "$kernel" "no package index of $suites"; return; }
	headers=$(newest "$expression")
	[ -n "$headers" ] || { cannot "$kernel" "no such headers in $suites"; return; }
	headers_into "$place" "$headers" >"$CACHE/logs/$kernel-headers.log" 2>&1 ||
		{ cannot "$kernel" "$headers: $(tail -n 1 "$CACHE/logs/$kernel-headers.log")"; return; }
	echo "# $kernel: $headers with $compiler"
	mkdir -p "${place%/}/$folder"
	build_all "$kernel"
}

print_table() {
	python3 - "$CACHE/builds.rows" <<-'END'
		import sys
		kernels, drivers, cell, reason = [], [], {}, {}
		for line in open(sys.argv[1]):
		    kernel, driver, verdict = line.split(None, 2)
		    if kernel not in kernels:
		        kernels.append(kernel)
		    if driver == "-":
		        reason[kernel] = verdict[2:].strip()
		        continue
		    if driver not in drivers:
		        drivers.append(driver)
		    cell[kernel, driver] = verdict.strip()
		width = max([len(d) for d in drivers] + [6])
		print("# " + "driver".ljust(width), *[k.rjust(max(len(k), 6)) for k in kernels])
		for d in drivers:
		    print("# " + d.ljust(width),
		          *[cell.get((k, d), "-").rjust(max(len(k), 6)) for k in kernels])
		for k in reason:
		    print("# %s: %s" % (k, reason[k]))
	END
}

run_all() {
	local kernel where compiler expression suites
	while IFS='|' read -r kernel where compiler expression suites; do
		[[ " ${*:-$kernel} " = *" $kernel "* ]] || continue
		run_kernel "$kernel" "$where" "$compiler" "$expression" "$suites" </dev/null
	done <<<"$KERNELS"
	print_table
}

mkdir -p "$CACHE/logs" "$CACHE/drivers"
: >"$CACHE/builds.rows"
{
	standin_drivers
	real_drivers
	run_all "$@"
} | tee "$CACHE/builds.txt"
! grep -q '^not ok' "$CACHE/builds.txt" && grep -q '^ok' "$CACHE/builds.txt"
