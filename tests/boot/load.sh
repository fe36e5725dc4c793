#!/bin/bash
# SPDX-License-Identifier: MIT
# The scripts that load gdrdrv, on a made-up system: every command that would change
# something is a stand-in that writes down its call.
. "$(dirname "$0")/../docs/report.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=$work/bin
helper=$PWD/packages/common/gdrdrv
export GDRDRV_NODE=$work/gdrdrv GDRDRV_DEVICES=$work/devices WORLD=$work

# stand_in NAME BODY
stand_in() {
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}

# What is loaded stands in a file; the node is a link to a true character device.
make_system() {
	mkdir -p "$bin"
	stand_in id 'cat "$WORLD/uid"'
	stand_in lsmod 'cat "$WORLD/loaded"'
	stand_in modprobe 'echo "modprobe $*" >>"$WORLD/calls"
		grep -qx "$1" "$WORLD/refused" && exit 1
		name=$(echo "$1" | tr - _)
		[ "$name" = gdrdrv ] && { echo "nvidia 1 1" >>"$WORLD/loaded"; ln -sf /dev/null "$GDRDRV_NODE"; }
		echo "$name 1 0" >>"$WORLD/loaded"'
	stand_in insmod 'echo "insmod $*" >>"$WORLD/calls"
		grep -qx gdrdrv "$WORLD/refused" && exit 1
		echo "gdrdrv 1 0" >>"$WORLD/loaded"; [ -e "$WORLD/no_devtmpfs" ] || ln -sf /dev/null "$GDRDRV_NODE"'
	stand_in rmmod 'echo "rmmod $*" >>"$WORLD/calls"
		[ ! -e "$WORLD/in_use" ] || exit 1
		sed -i "/^$1 /d" "$WORLD/loaded"'
	stand_in mknod 'echo "mknod $*" >>"$WORLD/calls"; ln -sf /dev/null "$GDRDRV_NODE"'
	stand_in chgrp 'echo "chgrp $*" >>"$WORLD/calls"; [ ! -e "$WORLD/no_group" ] || exit 1; echo "$1" >"$WORLD/group"'
	stand_in stat 'cat "$WORLD/group"'
}

# fresh: nothing is loaded, root asks.
fresh() {
	rm -f "$work"/{in_use,no_group,no_devtmpfs,gdrdrv}
	: >"$work/loaded"
	: >"$work/refused"
	: >"$work/calls"
	echo root >"$work/group"
	echo 0 >"$work/uid"
	printf 'Character devices:\n 10 misc\n240 gdrdrv\n' >"$work/devices"
	touch "$work/gdrdrv.ko"
}

run() {
	PATH=$bin:$PATH "$@" >"$work/out" 2>&1
	rc=$?
}

# wants CONDITION...: what is missing of: status, a line of output, the calls.
wants_status() { [ "$rc" = "$1" ] || echo "status $rc instead of $1: $(cat "$work/out")"; }
wants_line() { grep -Eq -- "$1" "$work/out" || echo "no line '$1' in: $(cat "$work/out")"; }
wants_calls() { [ "$(cat "$work/calls")" = "$1" ] || echo "calls were: $(cat "$work/calls")"; }

start_installed() {
	fresh
	run "$helper" start
	wants_status 0
	wants_line '^gdrdrv: loaded, version'
	wants_line "is for root and group video"
	wants_calls "modprobe gdrdrv
chgrp video $GDRDRV_NODE"
}

second_start() {
	start_installed
	: >"$work/calls"
	run "$helper" start
	wants_status 0
	wants_line 'is loaded already'
	wants_calls ''
}

stop_twice() {
	start_installed
	: >"$work/calls"
	run "$helper" stop
	wants_status 0
	wants_line 'unloaded'
	[ ! -e "$GDRDRV_NODE" ] || echo 'the node is left'
	run "$helper" stop
	wants_status 0
	wants_line 'is not loaded'
	wants_calls 'rmmod gdrdrv'
}

stop_in_use() {
	start_installed
	touch "$work/in_use"
	run "$helper" stop
	wants_status 1
	wants_line 'a program has .* open'
	[ -e "$GDRDRV_NODE" ] || echo 'the node of a loaded module was removed'
	run "$helper" restart
	wants_status 1
}

restart() {
	start_installed
	: >"$work/calls"
	run "$helper" restart
	wants_status 0
	wants_calls "rmmod gdrdrv
modprobe gdrdrv"
}

no_driver() {
	fresh
	printf 'nvidia\ngdrdrv\n' >"$work/refused"
	run "$helper" start
	wants_status 1
	wants_line 'NVIDIA driver is not loaded'
	GDRDRV_KO=$work/gdrdrv.ko run ./insmod.sh
	wants_status 1
	wants_line 'NVIDIA driver is not loaded and cannot be'
	[ ! -e "$GDRDRV_NODE" ] || echo 'a node was made'
}

module_refused() {
	fresh
	echo 'nvidia 1 0' >"$work/loaded"
	echo gdrdrv >"$work/refused"
	run "$helper" start
	wants_status 1
	wants_line 'modprobe gdrdrv failed: see dmesg'
	GDRDRV_KO=$work/gdrdrv.ko run ./insmod.sh
	wants_status 1
	wants_line 'the kernel refused .*gdrdrv.ko: see dmesg'
}

insmod_script() {
	fresh
	GDRDRV_KO=$work/gdrdrv.ko run ./insmod.sh dbg_enabled=1 info_enabled=1
	wants_status 0
	wants_calls "modprobe nvidia
modprobe nvidia-uvm
insmod $work/gdrdrv.ko dbg_enabled=1 info_enabled=1
chgrp video $GDRDRV_NODE"
	: >"$work/calls"
	GDRDRV_KO=$work/gdrdrv.ko run ./insmod.sh
	wants_status 0
	wants_line "loaded already, nothing changed"
	wants_calls ''
}

insmod_without_uvm() {
	fresh
	echo nvidia-uvm >"$work/refused"
	GDRDRV_KO=$work/gdrdrv.ko run ./insmod.sh
	wants_status 0
	wants_line 'nvidia-uvm cannot be loaded; going on'
}

insmod_without_file() {
	fresh
	GDRDRV_KO=$work/none.ko run ./insmod.sh
	wants_status 1
	wants_line 'none.ko does not exist: make driver'
	wants_calls ''
}

# A folder for /dev that the kernel does not fill, as in some containers.
node_by_hand() {
	fresh
	touch "$work/no_devtmpfs"
	GDRDRV_KO=$work/gdrdrv.ko run ./insmod.sh
	wants_status 0
	wants_line "made $GDRDRV_NODE, major 240"
	grep -qx "mknod -m 660 $GDRDRV_NODE c 240 0" "$work/calls" || cat "$work/calls"
}

no_group() {
	fresh
	touch "$work/no_group"
	run "$helper" start
	wants_status 0
	wants_line "there is no group video: .* stays root's"
}

not_root() {
	local command
	fresh
	echo 1000 >"$work/uid"
	for command in start stop restart; do
		run "$helper" $command
		wants_status 1
		wants_line 'takes root'
	done
	wants_calls ''
}

status_and_usage() {
	fresh
	run "$helper" status
	wants_status 3
	run "$helper" start
	run "$helper" status
	wants_status 0
	wants_line 'is loaded, version'
	run "$helper"
	wants_status 2
	run "$helper" remove
	wants_status 2
}

never_for_all() {
	grep -rnE '66[1-7]|666|777|a[+=]r?w|o[+=]r?w' insmod.sh packages/common
}

make_system
for case in start_installed second_start stop_twice stop_in_use restart no_driver module_refused \
	insmod_script insmod_without_uvm insmod_without_file node_by_hand no_group not_root \
	status_and_usage never_for_all; do
	report boot_$case "$($case)"
done
exit $status
