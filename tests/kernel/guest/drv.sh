# SPDX-License-Identifier: MIT
# Loading and unloading gdrdrv with a stand-in; sourced by the phases.

# load_pair STANDIN [PARAMETER...]: stand-in, module, and the rights that the udev rule gives.
load_pair() {
	standin=$1
	shift
	insmod "/modules/$standin/nvidia_emu.ko" || return 1
	insmod "/modules/$standin/gdrdrv.ko" "$@" || { rmmod nvidia_emu; return 1; }
	chown 0:44 /dev/gdrdrv
}

unload_pair() {
	rmmod gdrdrv && rmmod nvidia_emu
}

# refused LABEL STANDIN BUILT-FOR: the module of one driver on another.
refused() {
	insmod "/modules/$2/nvidia_emu.ko"
	if insmod "/modules/$3/gdrdrv.ko" 2>/tmp/err; then
		bad "$1"
		rmmod gdrdrv
	else
		ok "$1"
		check "$1_makes_no_node" test ! -e /dev/gdrdrv
		check "$1_makes_no_proc" test ! -e /proc/driver/gdrdrv
	fi
	rmmod nvidia_emu
}
