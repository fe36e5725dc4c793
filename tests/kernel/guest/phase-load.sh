# SPDX-License-Identifier: MIT
# Load, unload, node, /proc, parameters, and drivers that do not fit.
. /tests/drv.sh
[ -e /modules/pte_probe.ko ] && insmod /modules/pte_probe.ko 2>/dev/null

check load/without_driver_fails sh -c '! insmod /modules/open-2.0/gdrdrv.ko 2>/dev/null'
dmesg -c >/dev/null
check load/load load_pair open-2.0
check load/node test -c /dev/gdrdrv
check load/mode test "$(stat -c %a /dev/gdrdrv)" = 660
check load/group_opens su user -c ': <>/dev/gdrdrv'
check load/others_do_not sh -c '! su other -c ": <>/dev/gdrdrv" 2>/dev/null'
check load/proc_devices grep -q ' gdrdrv$' /proc/devices
check load/says_version \
	sh -c "dmesg | grep -q 'loading gdrdrv version 2.6 built for .*opensource'"
check load/says_major sh -c "dmesg | grep -q 'device registered with major number'"
check load/says_persistent sh -c "dmesg | grep -q 'Persistent mapping will be used'"
check load/version_in_sys test "$(cat /sys/module/gdrdrv/version)" = 2.6

printf 'Version: 2.6\nBuilt for NVIDIA driver flavor: opensource\nUse persistent mapping: yes\ndbg_enabled: 0\ninfo_enabled: 0\n' >/tmp/want
cat /proc/driver/gdrdrv/params >/tmp/have
check load/params cmp -s /tmp/want /tmp/have
check load/params_mode test "$(stat -c %a /proc/driver/gdrdrv/params)" = 444
check load/no_refcount_by_default test ! -e /proc/driver/gdrdrv/nv_get_pages_refcount
check load/old_parameters_hidden test ! -e /sys/module/gdrdrv/parameters/dbg_enabled
check load/pool_parameter test -w /sys/module/gdrdrv/parameters/dma_pool_size_mb

major=$(sed -n 's/ gdrdrv$//p' /proc/devices | tr -d ' ')
mknod /tmp/gdr0 c "$major" 0
mknod /tmp/gdr1 c "$major" 1
check load/minor_0_opens sh -c ': <>/tmp/gdr0'
check load/minor_1_does_not sh -c '! sh -c ": <>/tmp/gdr1" 2>/dev/null'
rm /tmp/gdr0 /tmp/gdr1

check load/driver_in_use sh -c '! rmmod nvidia_emu 2>/dev/null'
sleep 1000 <>/dev/gdrdrv &
holder=$!
sleep 1
check load/in_use sh -c '! rmmod gdrdrv 2>/dev/null'
kill $holder
wait $holder 2>/dev/null
check load/unload unload_pair
check load/node_is_gone test ! -e /dev/gdrdrv
check load/proc_is_gone test ! -e /proc/driver/gdrdrv
check load/devices_is_clean sh -c '! grep -q gdrdrv /proc/devices'

check load/debug load_pair open-2.0 dbg_enabled=1 info_enabled=1 use_persistent_mapping=0
printf 'Version: 2.6\nBuilt for NVIDIA driver flavor: opensource\nUse persistent mapping: no\ndbg_enabled: 1\ninfo_enabled: 1\n' >/tmp/want
cat /proc/driver/gdrdrv/params >/tmp/have
check load/debug_params cmp -s /tmp/want /tmp/have
check load/refcount_mode test "$(stat -c %a /proc/driver/gdrdrv/nv_get_pages_refcount)" = 440
check load/refcount test "$(cat /proc/driver/gdrdrv/nv_get_pages_refcount)" = 0
check load/debug_unload unload_pair

loads=0
while [ $loads -lt 20 ] && load_pair open-2.0 && unload_pair; do loads=$((loads + 1)); done
check load/twenty_times test $loads = 20

check load/pool_at_load load_pair open-2.0 dma_pool_size_mb=7
check load/pool_at_load_value test "$(cat /sys/module/gdrdrv/parameters/dma_pool_size_mb)" = 7
check load/pool_unload unload_pair

refused load/other_table_layout open-1.2 open-2.0
refused load/older_table_layout open-2.0 open-1.2

# A mere version difference warns.
dmesg -c >/dev/null
insmod /modules/open-2.0/nvidia_emu.ko driver_version=595.45.04
check load/other_version insmod /modules/open-2.0/gdrdrv.ko
check load/other_version_warns sh -c "dmesg | grep -q 'gdrdrv.*595.45.04'"
rmmod gdrdrv
rmmod nvidia_emu
