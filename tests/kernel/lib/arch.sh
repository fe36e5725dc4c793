# SPDX-License-Identifier: MIT
# What differs between a guest of this machine's processor and an arm64 one; sourced by run.sh and boots.sh.

# use_arch x86|arm64: where programs and libraries of that processor lie, and how they are built.
use_arch() {
	GUEST_ARCH=$1
	case $1 in
	x86)
		CROSS='' GUEST_TOP=$ROOT/build GUEST_LIBS=$ROOT/src/userspace
		GUEST_PROGRAMS=$CACHE/guest BUSYBOX=/bin/busybox END_STATUS=33
		;;
	arm64)
		CROSS=aarch64-linux-gnu- GUEST_TOP=$ROOT/build/arm64 GUEST_LIBS=$ROOT/build/arm64/lib
		GUEST_PROGRAMS=$CACHE/guest-arm64 BUSYBOX=$CACHE/arm64/busybox END_STATUS=0
		;;
	esac
}

# Library, tools and emulator, as users build them.
build_project() {
	if [ "$GUEST_ARCH" = x86 ]; then
		command make -s -C "$ROOT" exes
	else
		command make -s -C "$ROOT" VARIANT=arm64 CC=${CROSS}gcc AR=${CROSS}ar exes
	fi
}

# With the package index of an arm64 kernel in use.
fetch_busybox() {
	local file
	[ -x "$BUSYBOX" ] && return 0
	file=$(fetch_package busybox-static '*_arm64') || return 1
	mkdir -p "$(dirname "$BUSYBOX")"
	dpkg-deb --fsys-tarfile "$file" | tar -xO ./bin/busybox >"$BUSYBOX" && chmod 755 "$BUSYBOX"
}

# The loader and the C library for the dynamic programs.
copy_libc() {
	local root=$1 name
	mkdir -p "$root/lib"
	for name in ld-linux-aarch64.so.1 libc.so.6 libdl.so.2 libm.so.6 libpthread.so.0; do
		cp -L "/usr/aarch64-linux-gnu/lib/$name" "$root/lib/"
	done
}

# run_guest KERNEL: the result's serial port is the second one, and the way out tells the verdict.
run_guest_x86() {
	timeout -k 5 "$GUEST_SECONDS" qemu-system-x86_64 -accel tcg,thread=multi -cpu "$GUEST_CPU" \
		-serial "file:$WORK/console.txt" -serial "file:$WORK/result.txt" \
		-device isa-debug-exit,iobase=0xf4,iosize=0x04 \
		"${GUEST_DEVICES[@]}" -kernel "$1" -initrd "$WORK/initrd.gz" \
		-append "console=ttyS0 panic=-1 oops=panic quiet loglevel=7 $GUEST_APPEND" </dev/null
}

# Pointer authentication by its definition is slow to emulate.
run_guest_arm64() {
	timeout -k 5 "$GUEST_SECONDS" qemu-system-aarch64 -M virt -accel tcg,thread=multi \
		-cpu "$GUEST_CPU,pauth-impdef=on" \
		-serial "file:$WORK/console.txt" -chardev "file,id=result,path=$WORK/result.txt" \
		-device pci-serial,chardev=result \
		"${GUEST_DEVICES[@]}" -kernel "$1" -initrd "$WORK/initrd.gz" \
		-append "console=ttyAMA0 RESULT=/dev/ttyS0 panic=-1 oops=panic quiet loglevel=7 $GUEST_APPEND" \
		</dev/null
}
