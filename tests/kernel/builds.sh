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
. "$HERE/lib/matrix.sh"
. "$HERE/lib/drivers.sh"
mkdir -p "$CACHE"

# Other suites may be gone one day; these two are never skipped.
MUST="6.1 6.12"
CHECKED="6.1 6.12"

cannot() {
	if [[ " $MUST " = *" $1 "* ]]; then
		echo "not ok builds/$1: $2"
	else
		echo "skip builds/$1: $2"
	fi
	echo "$1 - - $2" >>"$rows"
}

# result KERNEL DRIVER STATUS LOG
result() {
	local verdict=ok
	[ "$3" = 0 ] || verdict="not ok"
	echo "$verdict builds/$1/$2"
	[ "$3" = 0 ] || grep -v '^ *$' "$4" | tail -n 15 | sed 's/^/# /'
	echo "$1 $2 ${verdict/not ok/FAILED}" >>"$rows"
}

wanted() {
	[[ " ${DRIVERS:-$1} " = *" $1 "* ]]
}

fresh_folder() {
	rm -rf "$1"
	mkdir -p "$1"
	cp -p "$MODULE_SOURCE"/{*.[ch],*.sh,Kbuild,Makefile} "$1/"
	rm -f "$1"/*.mod.c "$1/probes.h"
}

# make_module DRIVER MAKE-ARGUMENT...: in the place of the current kernel.
make_module() {
	local driver=$1
	shift
	rm -rf "${place%/}/$folder/driver"
	cp -r "$CACHE/drivers/$driver" "${place%/}/$folder/driver"
	inside "$place" make -s -j"$JOBS" -C "/$folder/gdrdrv" KERNELDIR="/usr/src/$headers" \
		KVER="${headers#linux-headers-}" NV_DRIVER_PATH="/$folder/driver" \
		"${settings[@]}" "$@"
}

# The module must be there, and the log hold no warning about anything; that pahole is
# another one, or none, is the kernel's way to say that it leaves type information out.
built_clean() {
	[ -e "${place%/}/$folder/gdrdrv/gdrdrv.ko" ] &&
		! grep -v 'pahole version differs' "$1" | grep -qi 'warning'
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
			echo "$kernel $driver -" >>"$rows"
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

run_kernel() {
	local kernel=$1
	find_kernel "$@" || { cannot "$kernel" "$reason"; return; }
	folder=builds/$kernel
	[ "$place" != / ] || folder=${CACHE#/}/$folder
	echo "# $kernel: $headers with $compiler"
	mkdir -p "${place%/}/$folder"
	build_all "$kernel"
}

print_table() {
	python3 - "$rows" <<-'END'
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

mkdir -p "$CACHE/logs" "$CACHE/drivers"
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
{
	standin_drivers
	real_drivers
	each_kernel run_kernel "$@"
	print_table
} | tee "$CACHE/builds.txt"
! grep -q '^not ok' "$CACHE/builds.txt" && grep -q '^ok' "$CACHE/builds.txt"
