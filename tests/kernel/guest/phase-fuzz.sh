# SPDX-License-Identifier: MIT
# Random calls, in both pinning modes.
. /tests/drv.sh
calls=100000
# Checkers slow a kernel down so much that this many take an hour.
if [ -e /sys/kernel/debug/kmemleak ] || [ -e /sys/kernel/debug/kcsan ]; then
	calls=20000
fi
check fuzz/load load_pair open-2.0
program fuzz-persistent /tests/fuzz $calls
check fuzz/unload unload_pair
check fuzz/load_callbacks load_pair open-2.0 use_persistent_mapping=0
program fuzz-callbacks /tests/fuzz $calls
check fuzz/unload_callbacks unload_pair
