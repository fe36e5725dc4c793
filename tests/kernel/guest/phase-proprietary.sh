# SPDX-License-Identifier: MIT
# Proprietary drivers, with page-table layout 2.0 and as old as 470.  They taint, so lock
# checking ends here: this phase is the last.
. /tests/drv.sh
proprietary_drivers() {
	insmod /modules/pte_probe.ko 2>/dev/null
	refused proprietary/open_module_refused proprietary-2.0 open-2.0
	refused proprietary/module_on_open_driver open-2.0 proprietary-2.0
	check proprietary/load load_pair proprietary-2.0
	check proprietary/flavour grep -q 'flavor: proprietary' /proc/driver/gdrdrv/params
	for test in ioctl_abi map lifetime; do
		program "proprietary/$test" "/tests/$test"
	done
	check proprietary/unload unload_pair
	check old-driver/load load_pair proprietary-old
	check old-driver/not_persistent grep -q 'Use persistent mapping: no' /proc/driver/gdrdrv/params
	for test in ioctl_abi map lifetime; do
		program "old-driver/$test" "/tests/$test"
	done
	check old-driver/unload unload_pair
}
if [ -d /modules/proprietary-2.0 ]; then
	proprietary_drivers
else
	echo "skip proprietary: this kernel has no proprietary stand-in"
fi
