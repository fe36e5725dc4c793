#!/bin/bash
# SPDX-License-Identifier: MIT
# Plants one fault at a time in the library and expects gdrcopy_sanity to find it
# with the test that is there for it, and to survive it.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${GDRCOPY_BUILD:-$root/build}
lib=${GDRCOPY_LIBDIR:-$root/src/userspace}
sanity=$build/bin/gdrcopy_sanity
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

if [ -n "${HARNESS_SLOW:-}" ]; then
	echo "skip planted faults: sanitizers want to be loaded first"
	exit 77
fi
if ! [ -x "$sanity" ]; then
	echo "not ok $sanity is not built"
	exit 1
fi
if ! ${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -I"$root/include" -o "$work/planted.so" \
	"$root/tests/sanity/planted.c" -ldl; then
	echo "not ok planted faults: planted.c is not compiled"
	exit 1
fi
export GDRCOPY_BACKEND=emu LD_LIBRARY_PATH=$lib:$build/emu
unset GDRCOPY_EMU GDRCOPY_EMU_DEVICES GDRCOPY_ENABLE_LOGGING

# plant FAULT TEST PATTERN [TIMEOUT]: the test fails, with PATTERN in its reason.
plant() {
	PLANT=$1 LD_PRELOAD=$work/planted.so "$sanity" --timeout "${4:-60}" -t "$2" \
		>"$work/out" 2>"$work/err"
	if [ $? = 1 ] && grep -qx 'Total: 1, Passed: 0, Failed: 1, Waived: 0' "$work/out" &&
		grep -q "^$2 failed: .*$3" "$work/err"; then
		echo "ok $1 is found by $2"
		return
	fi
	echo "not ok $1 is found by $2"
	status=1
	cat "$work/out" "$work/err" >&2
}

# The preloaded library alone changes nothing.
if ! PLANT='' LD_PRELOAD=$work/planted.so "$sanity" --classic >"$work/out" 2>&1; then
	echo "not ok no fault, no failure"
	cat "$work/out" >&2
	exit 1
fi
echo "ok no fault, no failure"
plant crash basic_cumemalloc 'signal 6'
plant hang basic_cumemalloc 'no end after 3 seconds' 3
plant handle-kept plus_bad_pins 'handle'
plant pin-error plus_bad_pins 'returned 5'
plant flags-ignored plus_bad_pins 'gdr_pin_buffer_v2'
plant flags-ignored plus_force_pcie 'coherent'
plant unpin-accepts plus_stale_handles 'gdr_unpin_buffer'
plant unmap-accepts plus_stale_handles 'gdr_unmap'
plant map-any-size plus_bad_maps 'returned'
plant map-any-size data_validation_cumemalloc .
plant copy-short data_validation_cumemalloc 'copy to mapping'
plant copy-short plus_copy_random_cumemalloc .
plant copy-torn plus_copy_not_torn 'torn'
plant copy-beyond plus_copy_random_vmmalloc .
plant copy-nothing plus_copy_nothing 'gdr_copy_from_mapping'
plant copy-unchecked plus_copy_range 'returned'
plant close-keeps invalidation_access_after_gdr_close_cumemalloc 'value'
plant close-keeps plus_close_releases_all .
plant fork-inherits invalidation_fork_after_gdr_map_cumemalloc 'fault_read'
plant fork-accepts plus_fork_parent_session 'gdr_copy_from_mapping'
plant leak-fd plus_cycles_cumemalloc .
plant leak-fd plus_few_descriptors_vmmalloc 'returned 24'
plant exec-fd plus_exec_descriptors 'exec'
plant info-long plus_info_layouts 'byte 40'
plant no-version plus_versions 'gdr_driver_get_version'
plant chatter plus_quiet .
exit $status
