# SPDX-License-Identifier: MIT
# The module on an open driver with page-table layout 2.0, persistent pins.
. /tests/drv.sh
insmod /modules/pte_probe.ko 2>/dev/null
check persistent/load load_pair open-2.0
for test in ioctl_abi map lifetime races pool; do
	program "persistent/$test" "/tests/$test"
done
check persistent/unload unload_pair
