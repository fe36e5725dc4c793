# SPDX-License-Identifier: MIT
# Random calls, in both pinning modes.
. /tests/drv.sh
check fuzz/load load_pair open-2.0
program fuzz-persistent /tests/fuzz 100000
check fuzz/unload unload_pair
check fuzz/load_callbacks load_pair open-2.0 use_persistent_mapping=0
program fuzz-callbacks /tests/fuzz 100000
check fuzz/unload_callbacks unload_pair
