# SPDX-License-Identifier: MIT
# GDRCopy's sanity suite and the tools through library, module and stand-in.
. /tests/drv.sh
export LD_LIBRARY_PATH=/lib/gdr GDRCOPY_EMU=provider=bar,devices=2 GDRCOPY_BACKEND=gdrdrv

# sanity LABEL LEAST: one line for each test of the suite; at least LEAST must have run.
sanity() {
	gdrcopy_sanity -v -e >/tmp/sanity 2>/tmp/sanity.err
	status=$?
	sed -n "s#^&&&& PASSED #ok $1/#p; s#^&&&& FAILED #not ok $1/#p; s#^&&&& WAIVED \(.*\)#skip $1/\1: waived#p" /tmp/sanity
	grep -q '^&&&& FAILED' /tmp/sanity && failed=1
	check "$1/status" test $status = 0
	[ $status = 0 ] || { tail -n 40 /tmp/sanity; tail -n 40 /tmp/sanity.err; } | sed 's/^/# /'
	passed=$(grep -c '^&&&& PASSED' /tmp/sanity)
	check "$1/ran_at_least_$2" test "$passed" -ge "$2"
	check "$1/refcount" test "$(cat /proc/driver/gdrdrv/nv_get_pages_refcount)" = 0
}

check sanity/load load_pair open-2.0 dbg_enabled=1
emuctl
sanity sanity-persistent 50
emuctl scattered=1
sanity sanity-scattered 50
emuctl
check sanity/copybw sh -c 'gdrcopy_copybw -s 1048576 -w 20 -r 2 >/tmp/bw && grep -q "write BW:" /tmp/bw && grep -q "read BW:" /tmp/bw'
check sanity/copylat sh -c 'gdrcopy_copylat -s 65536 -w 100 -r 100 | grep -q gdr_copy_from_mapping'
check sanity/apiperf sh -c 'gdrcopy_apiperf -s 262144 -n 5 -w 1 | grep -q unpin.Time'
check sanity/pplat sh -c 'gdrcopy_pplat -t 20 | grep -q "Round-trip latency per iteration"'
check sanity/info sh -c 'gdrcopy_info | grep -qi gdrdrv'
# A GPU with a coherent link: forced PCIe mappings and cached ones.
emuctl coherent=1 table_flags=1
export GDRCOPY_EMU=provider=bar,devices=2,coherent
sanity sanity-coherent 50
for test in basic_v2_forcepci_cumemalloc data_validation_v2_forcepci_cumemalloc \
	data_validation_mix_mappings_cumemalloc; do
	check "sanity-coherent/ran_$test" grep -q "^&&&& PASSED $test" /tmp/sanity
done
emuctl
export GDRCOPY_EMU=provider=bar,devices=2
check sanity/unload unload_pair
check sanity/load_callbacks load_pair open-2.0 dbg_enabled=1 use_persistent_mapping=0
sanity sanity-callbacks 50
check sanity/unload_callbacks unload_pair
