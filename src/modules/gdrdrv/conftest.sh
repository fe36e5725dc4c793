#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Asks the kernel's and the NVIDIA driver's headers what they have, by compiling.
#
#   conftest.sh OUTPUT COMPILER FLAG...
#
# Each question has a control: the same program without the doubtful line.  If the
# control does not compile, the answer would mean nothing, and the build stops.
# An answer in the environment (HAVE_...=y or n) spares the question.
set -u
output=$1
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
	echo "gdrdrv: $1" >&2
	[ ! -s "$work/errors" ] || head -n 12 "$work/errors" >&2
	exit 1
}

# compiles FLAGS... <PROGRAM
compiles() {
	cat >"$work/probe.c"
	"$compiler" "$@" -Wno-error -Werror=implicit-function-declaration \
		-Werror=incompatible-pointer-types -Wno-unused-variable \
		-c -o "$work/probe.o" "$work/probe.c" 2>"$work/errors"
}

compiler=$1
shift
# A compiler with a wrapper in front, as "ccache gcc", comes as two words.
case ${1:--} in
-*) ;;
*)
	wrapped=$1
	shift
	wrapper=$compiler
	compiler=$work/compiler
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$wrapper" "$wrapped" >"$compiler"
	chmod +x "$compiler"
	;;
esac

define() {
	case $2 in
	y) echo "#define $1 1" ;;
	n) echo "/* $1 is not there */" ;;
	*) fail "$1 must be y or n, not '$2'" ;;
	esac >>"$work/probes.h"
}

# ask NAME MACRO GIVEN CONTROL LINE FLAGS...
ask() {
	name=$1 macro=$2 given=$3 control=$4 line=$5
	shift 5
	if [ -n "$given" ]; then
		define "$macro" "$given"
	elif printf '%s\nvoid probe(void);\nvoid probe(void)\n{\n%s\n}\n' "$control" "$line" |
		compiles "$@"; then
		define "$macro" y
	elif printf '%s\nvoid probe(void);\nvoid probe(void)\n{\n}\n' "$control" | compiles "$@"; then
		define "$macro" n
	else
		fail "the question for $name cannot be asked: headers and compiler do not fit together"
	fi
}

KERNEL='#include <linux/mm.h>'
NVIDIA='#include <linux/types.h>
#include "nv-p2p.h"'

# What every driver has that gdrdrv can work with; the one of Tegra has other calls.
P2P_CALLS='int (*get)(uint64_t, uint32_t, uint64_t, uint64_t, struct nvidia_p2p_page_table **,
	void (*)(void *), void *) = nvidia_p2p_get_pages;
int (*put)(uint64_t, uint32_t, uint64_t, struct nvidia_p2p_page_table *) = nvidia_p2p_put_pages;'

if ! printf '%s\n' "$KERNEL" | compiles "$@"; then
	fail "this compiler cannot compile for this kernel (CC=... names another one):"
fi
if ! printf '%s\n' "$NVIDIA" | compiles "$@"; then
	fail "$NVIDIA_SRC_DIR/nv-p2p.h does not compile for this kernel:"
fi
if ! printf '%s\nvoid probe(void);\nvoid probe(void)\n{\n%s\n}\n' "$NVIDIA" "$P2P_CALLS" |
	compiles "$@"; then
	fail "$NVIDIA_SRC_DIR/nv-p2p.h is not that of a driver for discrete GPUs (Jetson's is not supported):"
fi

{
	echo "/* Made by conftest.sh. */"
	echo "#ifndef GDRDRV_PROBES_H"
	echo "#define GDRDRV_PROBES_H"
	echo "#define GDRDRV_NV_VERSION \"${NVIDIA_VERSION:-unknown}\""
} >"$work/probes.h"
define GDRDRV_OPEN_DRIVER "${NVIDIA_IS_OPENSOURCE:-n}"
# vm_flags_init() came together with vm_flags_set(), whose name the old variable has.
ask vm_flags_init GDRDRV_HAVE_VM_FLAGS_INIT "${HAVE_VM_FLAGS_SET:-}" "$KERNEL" \
	'vm_flags_init((struct vm_area_struct *)0, 0);' "$@"
ask mmap_read_lock GDRDRV_HAVE_MMAP_LOCK "${HAVE_MMAP_LOCK:-}" "$KERNEL" \
	'mmap_read_lock((struct mm_struct *)0);' "$@"
ask nvidia_p2p_get_pages_persistent GDRDRV_NV_PERSISTENT_CALLS "${NV_PERSISTENT_CALLS:-}" \
	"$NVIDIA" 'int (*get)(uint64_t, uint64_t, struct nvidia_p2p_page_table **, uint32_t) =
	nvidia_p2p_get_pages_persistent;' "$@"
ask nvidia_p2p_cap_persistent_pages GDRDRV_NV_PERSISTENT_VARIABLE "${NV_PERSISTENT_VARIABLE:-}" \
	"$NVIDIA" 'int *variable = &nvidia_p2p_cap_persistent_pages;' "$@"
ask "flags of the page table" GDRDRV_NV_TABLE_FLAGS "${NV_TABLE_FLAGS:-}" "$NVIDIA" \
	'struct nvidia_p2p_page_table table = { .flags = NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE };' "$@"
ask NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING GDRDRV_NV_FORCE_BAR1 "${NV_FORCE_BAR1:-}" "$NVIDIA" \
	'uint32_t flags = NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING;' "$@"
echo "#endif" >>"$work/probes.h"
cp "$work/probes.h" "$output"
