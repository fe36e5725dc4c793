#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs what make demo (argument: demo), make check, or the second tier of kernel tests
# (argument: kernel) needs on Debian or Ubuntu.
# As an ordinary user it only names what is missing.
set -u
demo="gcc make libc6-dev"
check="$demo clang valgrind python3 gcc-aarch64-linux-gnu libc6-dev-arm64-cross
gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross qemu-user binutils mandoc pkg-config cmake
qemu-system-x86 busybox-static cpio kmod bc dwarves"
kernel="$check qemu-system-arm mmdebstrap sparse linux-source-6.1 flex bison libelf-dev libssl-dev"
case ${1:-check} in
demo) wanted=$demo ;;
kernel) wanted=$kernel ;;
*) wanted=$check ;;
esac

command -v dpkg-query >/dev/null || { echo "not Debian or Ubuntu; needed: $wanted"; exit 0; }

installed() { dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

missing=()
for package in $wanted; do installed "$package" || missing+=("$package"); done
[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" != 0 ]; then
	echo "missing packages (apt-get install them, or run as root): ${missing[*]}"
	exit 0
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
