# SPDX-License-Identifier: MIT
# The kernels that gdrdrv is built for; sourced by builds.sh and boots.sh.

# Name, where it is built, compiler, header package, Debian suites.
KERNELS='5.10|host|gcc-12|linux-headers-5\.10\.0-[0-9]+-amd64|bullseye bullseye-security
6.1|host|gcc-12|linux-headers-6\.1\.0-[0-9]+-amd64|bookworm bookworm-security
6.12|host|gcc-12|linux-headers-6\.12\.[0-9]+\+deb12-amd64|bookworm bookworm-security
6.1-arm64|host|aarch64-linux-gnu-gcc-12|linux-headers-6\.1\.0-[0-9]+-arm64|bookworm bookworm-security
6.12-gcc14|trixie|gcc-14|linux-headers-6\.12\.[0-9]+\+deb13-amd64|trixie trixie-security
7.2|trixie|gcc-14|linux-headers-7\.2\.[0-9]+\+deb13-amd64|trixie trixie-backports
7.3|trixie|gcc-14|linux-headers-7\.3\.[0-9]+\+deb13-amd64|trixie trixie-backports
7.2-sid|sid|gcc-16|linux-headers-7\.[0-9.]+\+deb14-amd64|sid'

# each_kernel FUNCTION [KERNEL...]: called with one row of the table each.
each_kernel() {
	local function=$1 kernel where compiler expression suites
	shift
	while IFS='|' read -r kernel where compiler expression suites; do
		[[ " ${*:-$kernel} " = *" $kernel "* ]] || continue
		"$function" "$kernel" "$where" "$compiler" "$expression" "$suites" </dev/null
	done <<<"$KERNELS"
}

# find_kernel ROW: sets place, compiler, headers and settings (for make); where it fails, reason.
find_kernel() {
	local kernel=$1 where=$2 expression=$4 suites=$5 arch=amd64
	place=/ compiler=$3 settings=("CC=$3") reason=
	if [ "$where" != host ]; then
		place=$CACHE/$where
		reason="no folder with $compiler of $where"
		folder_of "$where" "$compiler" >"$CACHE/logs/$where.log" 2>&1 || return 1
	elif ! command -v "$compiler" >/dev/null; then
		reason="$compiler is not installed"
		return 1
	fi
	if [[ $kernel = *-arm64 ]]; then
		arch=arm64
		settings+=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	fi
	reason="no package index of $suites"
	# shellcheck disable=SC2086 # suites are words
	use_suite "$kernel" $arch $suites || return 1
	headers=$(newest "$expression")
	reason="no such headers in $suites"
	[ -n "$headers" ] || return 1
	headers_into "$place" "$headers" >"$CACHE/logs/$kernel-headers.log" 2>&1 && return 0
	reason="$headers: $(tail -n 1 "$CACHE/logs/$kernel-headers.log")"
	return 1
}
