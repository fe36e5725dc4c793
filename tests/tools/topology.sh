#!/bin/bash
# SPDX-License-Identifier: MIT
# The NUMA warning and --bind, on a made-up sysfs: node 1 has CPU 0 and one that is not there.
. "$(dirname "$0")/lib.sh"

devices=$work/sys/bus/pci/devices
mkdir -p "$devices/0000:3b:00.0" "$devices/0000:5e:00.0" "$work/sys/devices/system/node/node1"
echo 1 >"$devices/0000:3b:00.0/numa_node"
echo -1 >"$devices/0000:5e:00.0/numa_node"
echo 0,1022-1023 >"$work/sys/devices/system/node/node1/cpulist"
if ! ${CC:-cc} -D_GNU_SOURCE -I"$root/tools" -o "$work/topology" "$root/tests/tools/topology.c" \
	"$root/tools/common/topology.c"; then
	echo "not ok topology.c is not compiled"
	exit 1
fi
"$work/topology" "$work/sys"
