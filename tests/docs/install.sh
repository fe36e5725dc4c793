#!/bin/bash
# SPDX-License-Identifier: MIT
# make install puts everything in place, a program for the interface of 2.6 builds
# from there, and make uninstall leaves nothing.  Version 3: install3.sh.
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
		bin/gdr_bench share/man/man3/gdr_open.3 share/man/man3/gdr_close.3 \
		share/man/man7/gdrcopy.7 share/man/man1/gdrcopy_sanity.1 share/man/man1/gdr_bench.1; do
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
	grep -qx 'prefix=/opt/other' "$work/gdrcopy.pc" &&
		grep -qxF 'libdir=${prefix}/lib' "$work/gdrcopy.pc" || cat "$work/gdrcopy.pc"
}

# The folder that pkg-config names first has version 3's header; 2.6 needs no other
# folder than the usual one.
build_program() {
	local version
	cat >"$work/program.c" <<-'END'
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
	${CC:-cc} -Wall -Werror "$work/program.c" -o "$work/program" -I"$dest$prefix/include" \
		-L"$dest$prefix/lib" -lgdrapi 2>&1 || return
	version=$(LD_LIBRARY_PATH=$dest$prefix/lib "$work/program" 2>&1)
	[ "$version" = "$(make -s version)" ] || echo "the program says $version"
}

# same_version PACKAGE
same_version() {
	[ "$(flags --modversion "$1")" = "$(make -s version)" ] ||
		echo "pkg-config says $(flags --modversion "$1")"
}

report install "$(run_make install)"
report installed_files "$(missing)"
report program_of_2_6 "$(build_program)"
if command -v pkg-config >/dev/null; then
	report version_of_gdrcopy_pc "$(same_version gdrcopy)"
	report version_of_gdrapi_pc "$(same_version gdrapi)"
else
	skip version_of_pc_files "pkg-config is not installed; make check-deps"
fi
report prefix_in_pc_file "$(other_prefix 2>&1)"
report uninstall "$(run_make uninstall)"
report nothing_left "$(find "$dest" ! -type d -printf '%P is left\n')"
exit $status
