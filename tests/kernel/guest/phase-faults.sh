# SPDX-License-Identifier: MIT
# Failures inside the kernel, where it can inject them, in both pinning modes.
. /tests/drv.sh
if [ -e /proc/self/fail-nth ]; then
	check faults/load load_pair open-2.0
	program faults-persistent /tests/faults
	check faults/unload unload_pair
	check faults/load_callbacks load_pair open-2.0 use_persistent_mapping=0
	program faults-callbacks /tests/faults
	check faults/unload_callbacks unload_pair
else
	echo "skip faults: this kernel cannot inject failures"
fi
