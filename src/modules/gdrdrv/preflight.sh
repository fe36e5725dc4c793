#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Finds the NVIDIA driver's sources and says in one line what a build would lack.
#
# Prints make variables for Kbuild, quoted for a shell; everything else goes to stderr.
# Settings come from the environment: see Makefile.
set -u

say() {
	echo "gdrdrv: $*" >&2
}

die() {
	say "$@"
	exit 1
}

running=$(uname -r)

check_kernel() {
	[ -d "$KERNELDIR" ] ||
		die "no kernel build tree at $KERNELDIR: install linux-headers-$KVER (kernel-devel-$KVER), or set KERNELDIR"
	[ -f "$KERNELDIR/Makefile" ] || die "$KERNELDIR has no Makefile: it is not a kernel build tree"
	[ -f "$KERNELDIR/include/generated/autoconf.h" ] && [ -x "$KERNELDIR/scripts/mod/modpost" ] ||
		die "$KERNELDIR is not prepared for modules: run 'make modules_prepare' there, or install the headers package"
	[ -f "$KERNELDIR/Module.symvers" ] ||
		die "$KERNELDIR has no Module.symvers: build the kernel's modules there, or install the headers package"
}

# What make calls cc by default says nothing about the kernel's compiler.
check_compiler() {
	compiler=${CC%% *}
	[ "$compiler" = cc ] && compiler=${CROSS_COMPILE}gcc
	command -v "$compiler" >/dev/null ||
		die "the compiler $compiler is not installed: install it, or name another one with CC"
}

check_folder() {
	[ -w . ] || die "$(pwd) cannot be written to: build in a copy of your own, not with sudo"
}

# The version that runs, or nothing.
running_driver() {
	sed -n 's/^NVRM version:.*  \([0-9][0-9]*\.[0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version 2>/dev/null
}

version_of() {
	found=
	for conf in "$1/dkms.conf" "$1/../dkms.conf"; do
		[ -z "$found" ] && [ -f "$conf" ] &&
			found=$(sed -n 's/^PACKAGE_VERSION="\{0,1\}\([0-9.]*\).*/\1/p' "$conf" | head -n 1)
	done
	for kbuild in "$1/Kbuild" "$1/../Kbuild"; do
		[ -z "$found" ] && [ -f "$kbuild" ] &&
			found=$(sed -n 's/.*NV_VERSION_STRING=[\\"]*\([0-9][0-9.]*\).*/\1/p' "$kbuild" | head -n 1)
	done
	[ -n "$found" ] || found=$(echo "$1" | sed -n 's/.*-\([0-9][0-9]*\.[0-9.]*[0-9]\).*/\1/p')
	echo "$found"
}

# The folder with nv-p2p.h inside a driver's source folder.
folder_in() {
	for folder in "$1/nvidia" "$1" "$1/kernel-open/nvidia" "$1/kernel/nvidia"; do
		[ -f "$folder/nv-p2p.h" ] && { echo "$folder"; return; }
	done
}

# The running version's sources if they are there, else the newest.
find_sources() {
	wanted=$(running_driver)
	newest=
	for base in $(ls -d /usr/src/nvidia-* /usr/src/kernel-modules/nvidia-* 2>/dev/null | sort -V); do
		folder=$(folder_in "$base")
		[ -n "$folder" ] || continue
		newest=$folder
		[ -n "$wanted" ] && [ "$(version_of "$base")" = "$wanted" ] && { echo "$folder"; return; }
	done
	echo "$newest"
}

missing_sources="install the driver's source package (nvidia-kernel-open-dkms, kmod-nvidia-*-dkms, or the .run installer), or set NV_DRIVER_PATH"

choose_sources() {
	if [ -n "$NVIDIA_SRC_DIR" ]; then
		[ -f "$NVIDIA_SRC_DIR/nv-p2p.h" ] || die "no nv-p2p.h in $NVIDIA_SRC_DIR: $missing_sources"
	elif [ -n "$NV_DRIVER_PATH" ]; then
		NVIDIA_SRC_DIR=$(folder_in "$NV_DRIVER_PATH")
		[ -n "$NVIDIA_SRC_DIR" ] || die "no nv-p2p.h under $NV_DRIVER_PATH: $missing_sources"
	else
		NVIDIA_SRC_DIR=$(find_sources)
		[ -n "$NVIDIA_SRC_DIR" ] || die "no nv-p2p.h under /usr/src: $missing_sources"
	fi
	NVIDIA_SRC_DIR=$(cd "$NVIDIA_SRC_DIR" && pwd) || exit 1
}

choose_flavour() {
	[ -n "$NVIDIA_IS_OPENSOURCE" ] && return
	licence=$(grep -hs 'MODULE_LICENSE' "$NVIDIA_SRC_DIR"/*.c)
	[ -n "$licence" ] ||
		die "no MODULE_LICENSE in $NVIDIA_SRC_DIR/*.c tells the driver's flavour: set NVIDIA_IS_OPENSOURCE to y or n"
	case $licence in
	*GPL*) NVIDIA_IS_OPENSOURCE=y ;;
	*) NVIDIA_IS_OPENSOURCE=n ;;
	esac
}

# An error only where the module is surely meant for the driver that runs now.
check_running() {
	wanted=$(running_driver)
	[ -n "$wanted" ] && [ "$wanted" != "$NVIDIA_VERSION" ] || return
	if [ -z "$NV_MISMATCH" ]; then
		NV_MISMATCH=error
		[ "$KVER" = "$running" ] && [ -z "${DKMS_BUILD:-}" ] && is_tree_of_running || NV_MISMATCH=warn
	fi
	message="sources in $NVIDIA_SRC_DIR are of driver ${NVIDIA_VERSION:-(unknown)}, running is $wanted"
	case $NV_MISMATCH in
	error) die "$message: set NV_DRIVER_PATH to the running driver's, or NV_MISMATCH=warn" ;;
	warn) say "warning: $message" ;;
	esac
}

is_tree_of_running() {
	[ "$(cd "$KERNELDIR" && pwd -P)" = "$(cd "/lib/modules/$running/build" 2>/dev/null && pwd -P)" ]
}

quote() {
	printf "'%s=%s' " "$1" "$(printf %s "$2" | sed "s/'/'\\\\''/g")"
}

check_folder
check_kernel
check_compiler
choose_sources
choose_flavour
[ -n "$NVIDIA_VERSION" ] || NVIDIA_VERSION=$(version_of "$NVIDIA_SRC_DIR")
check_running
flavour=proprietary
[ "$NVIDIA_IS_OPENSOURCE" = y ] && flavour=opensource
say "for kernel $KERNELDIR and NVIDIA driver ${NVIDIA_VERSION:-of unknown version} ($flavour) in $NVIDIA_SRC_DIR"
quote NVIDIA_SRC_DIR "$NVIDIA_SRC_DIR"
quote NVIDIA_IS_OPENSOURCE "$NVIDIA_IS_OPENSOURCE"
quote NVIDIA_VERSION "${NVIDIA_VERSION:-unknown}"
