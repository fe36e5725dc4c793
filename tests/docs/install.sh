#!/bin/bash
# SPDX-License-Identifier: MIT
# make install puts everything in place, a program builds from there with pkg-config,
# and make uninstall leaves nothing.
. "$(dirname "$0")/report.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MAKEOVERRIDES
dest=$work/dest
prefix=/usr/local

run_make() {
	make -s DESTDIR="$dest" prefix=$prefix "$@" >"$work/log" 2>&1 || tail -n 20 "$work/log"
}

missing() {
	local file
	for file in lib/libgdrapi.so lib/libgdrapi.so.2 lib/libgdrapi.so.2.6 lib/libgdrapi.a \
		lib/pkgconfig/gdrcopy.pc lib/pkgconfig/gdrapi.pc include/gdrapi.h \
		include/gdrconfig.h bin/gdrcopy_sanity bin/gdrcopy_copybw bin/copybw bin/sanity \
		share/man/man3/gdr_open.3 share/man/man3/gdr_close.3 share/man/man7/gdrcopy.7 \
		share/man/man1/gdrcopy_sanity.1; do
		[ -e "$dest$prefix/$file" ] || echo "$file is not installed"
	done
	find "$dest" -xtype l -printf '%P is a dangling link\n'
	find "$dest" -path '*emu*' -printf '%P: the emulated GPU is not for installing\n'
}

# pkg-config puts the stage's folder in front of the paths of the .pc file.
flags() {
	PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_LIBDIR=$dest$prefix/lib/pkgconfig pkg-config "$@"
}

# Another prefix reaches the .pc file.
other_prefix() {
	make -s -C src/userspace prefix=/opt/other OUT="$work" BUILD="$work/obj" "$work/gdrcopy.pc" ||
		return
	grep -qx 'libdir=/opt/other/lib' "$work/gdrcopy.pc" || cat "$work/gdrcopy.pc"
}

# build_program NAME PACKAGE: a program with no other flags than those of pkg-config.
build_program() {
	cat >"$work/$1.c" <<-'END'
		#include <gdrapi.h>
		#include <stdio.h>
		int main(void)
		{
			int major = 0, minor = 0;
			gdr_runtime_get_version(&major, &minor);
			printf("%d.%d\n", major, minor);
			return 0;
		}
	END
	# shellcheck disable=SC2046 # flags are words
	${CC:-cc} "$work/$1.c" -o "$work/$1" $(flags --cflags --libs "$2") 2>&1 || return
	[ "$(LD_LIBRARY_PATH=$dest$prefix/lib "$work/$1" 2>&1)" = "$(flags --modversion "$2")" ] ||
		echo "the program and pkg-config name different versions"
}

report install "$(run_make install)"
report installed_files "$(missing)"
if command -v pkg-config >/dev/null; then
	report program_with_gdrcopy_pc "$(build_program one gdrcopy)"
	report program_with_gdrapi_pc "$(build_program two gdrapi)"
else
	skip program_with_pkg_config "pkg-config is not installed; make check-deps"
fi
report prefix_in_pc_file "$(other_prefix 2>&1)"
report uninstall "$(run_make uninstall)"
report nothing_left "$(find "$dest" ! -type d -printf '%P is left\n')"
exit $status
