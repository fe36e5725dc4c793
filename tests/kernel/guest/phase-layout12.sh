# SPDX-License-Identifier: MIT
# The same with page-table layout 1.2, non-persistent.
. /tests/drv.sh
insmod /modules/pte_probe.ko 2>/dev/null
check layout12/load load_pair open-1.2
for test in ioctl_abi map; do
	program "layout12/$test" "/tests/$test"
done
check layout12/unload unload_pair
check callbacks/load load_pair open-1.2 use_persistent_mapping=0
for test in ioctl_abi map lifetime races pool; do
	program "callbacks/$test" "/tests/$test"
done
check callbacks/unload unload_pair
