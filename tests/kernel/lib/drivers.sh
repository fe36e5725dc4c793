# SPDX-License-Identifier: MIT
# Source folders of NVIDIA drivers, true and made up; sourced by builds.sh.

# The made-up ones: header, flavour, version.
STANDIN_DRIVERS="layout-1.2-open:layout-1.2:open:550.163.01
layout-1.2-proprietary:layout-1.2:proprietary:550.163.01
layout-2.0-open:layout-2.0:open:580.65.06
layout-2.0-proprietary:layout-2.0:proprietary:580.65.06
old-proprietary:no-persistent:proprietary:470.256.02"

# NVIDIA's, as Debian has them: suite, package, version.
REAL_DRIVERS="470.256-proprietary:bookworm:nvidia-tesla-470-kernel-dkms:470.256.02
535.261-proprietary:bookworm:nvidia-kernel-dkms:535.261.03
535.261-open:bookworm:nvidia-open-kernel-dkms:535.261.03
550.163-proprietary:trixie:nvidia-kernel-dkms:550.163.01
550.163-open:trixie:nvidia-open-kernel-dkms:550.163.01"

standin_drivers() {
	local name layout flavour version dir
	while IFS=: read -r name layout flavour version; do
		dir=$CACHE/drivers/$name
		mkdir -p "$dir/nvidia"
		cp "$HERE/nvidia/$layout/nvidia/nv-p2p.h" "$dir/nvidia/"
		if [ "$flavour" = open ]; then
			echo 'MODULE_LICENSE("Dual MIT/GPL");' >"$dir/nvidia/nv.c"
		else
			echo 'MODULE_LICENSE("NVIDIA");' >"$dir/nvidia/nv.c"
		fi
		printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\n' "$version" >"$dir/dkms.conf"
	done <<<"$STANDIN_DRIVERS"
}

# Only the sources in clear are kept; the prebuilt objects are large.
unpack_driver() {
	local name=$1 package=$2 version=$3 dir=$CACHE/drivers/$1 file
	[ -e "$dir/dkms.conf" ] && return 0
	file=$(fetch_package "$package=$(apt-cache madison "$package" |
		awk -v want="$version" 'index($3, want) == 1 {print $3; exit}')" "$version-*") || return 1
	mkdir -p "$dir.part"
	dpkg-deb --fsys-tarfile "$file" | tar -C "$dir.part" -x --strip-components=4 --wildcards \
		'./usr/src/nvidia*/dkms.conf' './usr/src/nvidia*/nvidia/*.[ch]' || return 1
	mv "$dir.part" "$dir"
}

# Says which driver is missing, and why; the others are enough to go on.
real_drivers() {
	local name suite package version
	while IFS=: read -r name suite package version; do
		[ -e "$CACHE/drivers/$name/dkms.conf" ] && continue
		use_suite "$suite" amd64 "$suite" &&
			unpack_driver "$name" "$package" "$version" >>"$CACHE/drivers.log" 2>&1 ||
			echo "skip driver/$name: $package $version of $suite cannot be had"
	done <<<"$REAL_DRIVERS"
}

driver_names() {
	cut -d : -f 1 <<<"$STANDIN_DRIVERS"
	cut -d : -f 1 <<<"$REAL_DRIVERS"
}
