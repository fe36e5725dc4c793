#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds a debug kernel from Debian's linux-source-6.1 and keeps it: debug/build.sh kasan|kcsan.
#
# It takes 7 to 12 minutes on two cores.  The result lies under GDRCOPY_KERNEL_CACHE
# (build/kernel/debug), in a folder named by source version, fragments and compiler, so that
# it is built once; tests/kernel/run.sh uses what it finds there.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
KIND=$1
. "$HERE/cache.sh"
dir=$(debug_kernel_dir "$KIND")
[ -e "$dir/ready" ] && { echo "$dir"; exit 0; }

# Who comes second waits, and then finds it ready.
mkdir -p "$CACHE_ROOT"
exec 9>"$CACHE_ROOT/lock"
flock 9
[ -e "$dir/ready" ] && { echo "$dir"; exit 0; }

source=$CACHE_ROOT/source/$(source_version)
if [ ! -e "$source/Makefile" ]; then
	mkdir -p "$source"
	tar -C "$source" --strip-components=1 -xf /usr/src/linux-source-6.1.tar.xz
fi
mkdir -p "$dir"
make -s -C "$source" O="$dir" tinyconfig
(cd "$dir" && "$source/scripts/kconfig/merge_config.sh" -m -O "$dir" "$dir/.config" \
	"$HERE/base.config" "$HERE/$KIND.config" >/dev/null)
make -s -C "$source" O="$dir" olddefconfig
# An option that Kconfig dropped in silence would leave a kernel that finds nothing.
for line in $(grep -h '^CONFIG_' "$HERE/base.config" "$HERE/$KIND.config"); do
	grep -qx "$line" "$dir/.config" || { echo "$line is not in the result" >&2; exit 1; }
done
make -s -C "$source" O="$dir" -j"$(nproc)" bzImage modules modules_prepare
touch "$dir/ready"
echo "$dir"
