#!/bin/bash
# SPDX-License-Identifier: MIT
# Version 3 as installed: its header, and programs that pkg-config and CMake build from
# there, also after the installed tree has moved; make uninstall leaves nothing of it.
. "$(dirname "$0")/report.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MAKEOVERRIDES CMAKE_PREFIX_PATH gdrapi_DIR gdrapi_ROOT
unset GDRCOPY_EMU GDRCOPY_EMU_DEVICES GDRCOPY_ENABLE_LOGGING
export GDRCOPY_BACKEND=emu
dest=$work/dest
prefix=/usr/local
tree=$dest$prefix
cuda="-I$BUILD/emu -L$BUILD/emu -lcuda"

run_make() {
	make -s DESTDIR="$dest" prefix=$prefix "$@" >"$work/log" 2>&1 ||
		tail -n 20 "$work/log"
}

check_file() {
	[ "$(stat -c %a "$tree/$2" 2>&1)" = "$1" ] || echo "$2 is not installed with mode $1"
}

installed() {
	check_file 644 include/gdrcopy/gdrapi.h
	check_file 644 lib/cmake/gdrapi/gdrapi-config.cmake
	check_file 644 lib/cmake/gdrapi/gdrapi-config-version.cmake
	cmp include/gdrcopy/gdrapi.h "$tree/include/gdrcopy/gdrapi.h" 2>&1
	grep -nE "@[A-Z]|$dest" "$tree"/lib/cmake/gdrapi/*
}

# A second install from the same sources.
same_bytes() {
	make -s DESTDIR="$work/again" prefix=$prefix lib_install >/dev/null 2>&1
	diff -r "$tree/lib" "$work/again$prefix/lib" 2>&1
	diff -r "$tree/include" "$work/again$prefix/include" 2>&1
}

# Two builds, of sources in two folders.
equal_builds() {
	local folder=. number
	mkdir "$work/sources"
	cp -a include mk src gdrcopy.pc.in "$work/sources"
	for number in 1 2; do
		make -s -j2 -C "$folder/src/userspace" OUT="$work/build$number" \
			BUILD="$work/obj$number" 2>&1 >/dev/null
		folder=$work/sources
	done
	diff -r "$work/build1" "$work/build2" 2>&1
	[ -s "$work/build2/libgdrapi.so.$(make -s version)" ] || echo "nothing was built"
}

# The .pc file names /usr/local; --define-prefix puts the place where it lies instead.
flags() {
	PKG_CONFIG_LIBDIR=$1/lib/pkgconfig pkg-config --define-prefix "${@:2}"
}

# run PROGRAM LIBDIR: copies on the emulated GPU.
run() {
	local output
	output=$(LD_LIBRARY_PATH=$2:$BUILD/emu timeout 60 "$1" 2>&1)
	[ "$output" = "the GPU says: hello, GPU" ] || echo "$1: $output"
}

pkg_config_program() {
	# shellcheck disable=SC2046,SC2086 # flags are words
	${CC:-cc} -Wall -Wextra -Werror examples/hello_v3.c -o "$work/by_pc" $cuda \
		$(flags "$1" --cflags --libs "$2") 2>&1 || return
	run "$work/by_pc" "$1/lib"
}

# A program that says <gdrapi.h> with the flags of pkg-config gets version 3.
modversion() {
	[ "$(flags "$tree" --modversion gdrapi)" = "$(make -s version)" ] ||
		echo "pkg-config --modversion gdrapi: $(flags "$tree" --modversion gdrapi 2>&1)"
	[[ " $(flags "$tree" --cflags gdrapi) " == *" -I$tree/include/gdrcopy "* ]] ||
		echo "flags: $(flags "$tree" --cflags gdrapi)"
}

# cmake_project VERSION: as a program's author writes it.
cmake_project() {
	mkdir -p "$work/project"
	cp examples/hello_v3.c "$work/project"
	cat >"$work/project/CMakeLists.txt" <<-END
		cmake_minimum_required(VERSION 3.10)
		project(hello C)
		find_package(gdrapi $1 REQUIRED)
		find_package(gdrapi REQUIRED)
		add_executable(by_cmake hello_v3.c)
		target_include_directories(by_cmake PRIVATE $BUILD/emu)
		target_link_libraries(by_cmake gdrapi::gdrapi $BUILD/emu/libcuda.so.1)
	END
}

# cmake_program TREE [VERSION [LIBDIR]]
cmake_program() {
	rm -rf "$work/project"
	cmake_project "${2:-}"
	{ cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$1" &&
		cmake --build "$work/project/build"; } \
		>"$work/log" 2>&1 || { tail -n 20 "$work/log"; return; }
	run "$work/project/build/by_cmake" "$1/${3:-lib}"
}

# A library folder that lies deeper, as Debian has it.
cmake_multiarch() {
	local arch
	arch=$(${CC:-cc} -print-multiarch 2>/dev/null)
	[ -n "$arch" ] || return
	make -s DESTDIR="$work/deep" prefix=$prefix libdir="$prefix/lib/$arch" lib_install 2>&1
	make -s lib 2>&1	# the .pc files as they were
	cmake_program "$work/deep$prefix" "" "lib/$arch"
}

# refused TEXT ARGUMENTS: cmake_program fails, with this text.
refused() {
	cmake_program "${@:2}" >/dev/null
	grep -q "$1" "$work/log" || { echo "not refused, or for another reason:"; cat "$work/log"; }
}

incomplete() {
	cp -a "$tree" "$work/incomplete"
	rm "$work/incomplete/include/gdrcopy/gdrapi.h"
	refused 'gdrapi.h is missing' "$work/incomplete"
}

report install_v3 "$(run_make lib_install)"
report installed_v3_files "$(installed)"
report installs_are_equal "$(same_bytes)"
report builds_are_equal "$(equal_builds)"
cp -a "$tree" "$work/moved"
if command -v pkg-config >/dev/null; then
	report pkg_config_names_v3 "$(modversion)"
	report v3_program_with_gdrapi_pc "$(pkg_config_program "$tree" gdrapi)"
	report v3_program_with_gdrcopy_pc "$(pkg_config_program "$tree" gdrcopy)"
	report v3_program_with_pc_moved "$(pkg_config_program "$work/moved" gdrapi)"
else
	skip v3_program_with_pkg_config "pkg-config is not installed; make check-deps"
fi
if command -v cmake >/dev/null; then
	report v3_program_with_cmake "$(cmake_program "$tree")"
	report v3_program_with_cmake_version "$(cmake_program "$tree" "$(make -s version)")"
	report v3_program_with_cmake_moved "$(cmake_program "$work/moved" 2.0)"
	report v3_program_with_cmake_multiarch "$(cmake_multiarch)"
	report cmake_refuses_newer "$(refused 'version: 2.6' "$tree" 2.99)"
	report cmake_refuses_other_major "$(refused 'version: 2.6' "$tree" 4)"
	report cmake_refuses_incomplete "$(incomplete)"
else
	skip v3_program_with_cmake "cmake is not installed; make check-deps"
fi
report uninstall_v3 "$(run_make uninstall)"
report nothing_of_v3_left "$(find "$dest" ! -type d -printf '%P is left\n'
	for folder in include/gdrcopy lib/cmake/gdrapi; do
		[ ! -e "$tree/$folder" ] || echo "$folder is left"
	done)"
exit $status
