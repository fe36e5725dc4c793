# SPDX-License-Identifier: MIT
# Fetches Debian kernels and headers into build/kernel; sourced by run.sh.

# The package behind a line's meta package: versions change with each update.
package_of() {
	apt-cache depends "$1" 2>/dev/null | awk -v want="$2" '$1 == "Depends:" && $2 ~ want {print $2; exit}'
}

# abi LINE: prints the ABI name, for example 6.1.0-57-amd64.
kernel_abi() {
	local meta=linux-image-$1-amd64 package
	[ "$1" = 6.1 ] && meta=linux-image-amd64
	package=$(package_of "$meta" '^linux-image-')
	[ -n "$package" ] && echo "${package#linux-image-}"
}

download() {
	(cd "$CACHE/debs" && compgen -G "$1_*.deb" >/dev/null || apt-get download -q "$1") >&2
}

unpack_to() {
	dpkg-deb --fsys-tarfile "$CACHE/debs/$1"_*.deb | tar -C "$2" -x --keep-directory-symlink
}

# Prints the ELF kernel: decompressing under emulation would take seconds per boot.
extract_vmlinux() {
	python3 - "$1" "$2" <<-'END'
		import lzma, subprocess, sys
		data = open(sys.argv[1], "rb").read()
		out = None
		for magic, how in ((b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")):
		    at = data.find(magic)
		    while at >= 0 and out is None:
		        try:
		            if how == "xz":
		                body = lzma.LZMADecompressor().decompress(data[at:])
		            else:
		                body = subprocess.run(["zstd", "-dc"], input=data[at:],
		                                      capture_output=True).stdout
		            if body[:4] == b"\x7fELF":
		                out = body
		        except (lzma.LZMAError, OSError):
		            pass
		        at = data.find(magic, at + 1)
		if out is None:
		    sys.exit("no ELF kernel inside " + sys.argv[1])
		open(sys.argv[2], "wb").write(out)
	END
}

# kernel_image ABI: leaves $CACHE/kernels/ABI/vmlinux.
kernel_image() {
	local abi=$1 dir=$CACHE/kernels/$1
	[ -s "$dir/vmlinux" ] && return 0
	mkdir -p "$dir"
	download "linux-image-$abi" || return 1
	dpkg-deb --fsys-tarfile "$CACHE/debs/linux-image-$abi"_*.deb |
		tar -C "$dir" -x --strip-components=2 "./boot/vmlinuz-$abi" "./boot/config-$abi" || return 1
	extract_vmlinux "$dir/vmlinuz-$abi" "$dir/vmlinux.part" || return 1
	mv "$dir/vmlinux.part" "$dir/vmlinux"
}

# kernel_headers ABI: the build folder must exist; unpacking needs root, since
# the packages of one kernel point at each other by absolute names.
kernel_headers() {
	local abi=$1 common package
	[ -e "/usr/src/linux-headers-$abi/Makefile" ] && return 0
	[ "$(id -u)" = 0 ] || return 1
	common=linux-headers-${abi%-amd64}-common
	for package in "linux-headers-$abi" "$common" \
		"$(apt-cache depends "linux-headers-$abi" | awk '/Depends: linux-kbuild/{print $2; exit}')"; do
		download "$package" && unpack_to "$package" / || return 1
	done
}
