# SPDX-License-Identifier: MIT
# Where debug kernels are kept; sourced with ROOT set.
CACHE_ROOT=${GDRCOPY_KERNEL_CACHE:-$ROOT/build/kernel/debug}

source_version() {
	dpkg-query -W -f '${Version}' linux-source-6.1 2>/dev/null || echo none
}

# debug_kernel_dir KIND: named by all that decides what it contains.
debug_kernel_dir() {
	local fragments=$ROOT/tests/kernel/debug
	local sum
	sum=$({ source_version; gcc -dumpfullversion; cat "$fragments/base.config" \
		"$fragments/$1.config"; } | sha256sum | cut -c1-12)
	echo "$CACHE_ROOT/$1-$sum"
}
