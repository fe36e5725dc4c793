# SPDX-License-Identifier: MIT
# Makes the guest's file system, boots it and judges the result; sourced by run.sh.

# A message that makes a run fail, whatever the tests said.
COMPLAINTS='BUG:|WARNING:|Oops|Call Trace|KASAN|KCSAN|possible circular|unreferenced object|refcount_t|general protection|MISUSE|LEAK:|hung task|soft lockup|scheduling while atomic'

# The dynamic programs are tested with the library as it is installed.
copy_dynamic() {
	local program=$1 root=$2 library
	cp "$program" "$root/bin/"
	[ "$GUEST_ARCH" = x86 ] || return 0
	LD_LIBRARY_PATH=$ROOT/src/userspace:$ROOT/build/emu ldd "$program" |
		grep -o '/[^ )]*' | while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		case $library in
		"$ROOT"/*) ;;
		*) cp -Lu "$library" "$root$library" ;;
		esac
	done
}

make_image() {
	local root=$WORK/root tool
	rm -rf "$root"
	mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,etc,lib,tests,modules}
	cp "$BUSYBOX" "$root/bin/busybox"
	[ "$GUEST_ARCH" = x86 ] || copy_libc "$root"
	for tool in $(/bin/busybox --list); do
		[ "$tool" = busybox ] || ln -s busybox "$root/bin/$tool"
	done
	printf 'root:x:0:0:root:/:/bin/sh\nuser:x:1000:44::/:/bin/sh\nother:x:1002:1002::/:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nvideo:x:44:\n' >"$root/etc/group"
	install -m 755 "$HERE/guest/init.sh" "$root/init"
	cp "$HERE"/guest/*.sh "$GUEST_PROGRAMS"/* "$root/tests/"
	mv "$root/tests/emuctl" "$root/bin/"
	cp -r "$MODULES"/* "$root/modules/"
	mkdir -p "$root/lib/gdr"
	cp -a "$GUEST_LIBS"/libgdrapi.so* "$GUEST_TOP"/emu/*.so* "$root/lib/gdr/"
	for tool in "$GUEST_TOP"/bin/gdrcopy_*; do
		[ -f "$tool" ] && [ ! -L "$tool" ] && copy_dynamic "$tool" "$root"
	done
	for tool in "$GUEST_PROGRAMS-cuda"/*; do
		copy_dynamic "$tool" "$root"
	done
	echo "$PHASES" >"$root/tests/phases"
	echo "guest of $1" >"$root/tests/build-id"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$WORK/initrd.gz"
}

GUEST_DEVICES=(-nodefaults -display none -no-reboot -m 2G -smp 2
	-object memory-backend-ram,id=bar0,size=256M,share=on -device ivshmem-plain,memdev=bar0
	-object memory-backend-ram,id=bar1,size=256M,share=on -device ivshmem-plain,memdev=bar1)

boot() {
	rm -f "$WORK/result.txt" "$WORK/console.txt"
	"run_guest_$GUEST_ARCH" "$1"
}

# complaints FILE: reports of data races count where one side is a module of ours; the
# kernel has some of its own.
complaints() {
	awk '/BUG: KCSAN/ { foreign = !/\[(gdrdrv|nvidia_emu)\]/ } /^=====/ { foreign = 0 } !foreign' "$1" |
		grep -nE -A 25 "$COMPLAINTS"
}

# judge LINE STATUS: prints the guest's cases under the kernel's name, and what the host saw.
judge() {
	local line=$1 status=$2
	sed -nE 's/\r$//; s#^(ok|not ok|skip) #\1 '"$line"'/#p' "$WORK/result.txt"
	sed -nE 's/\r$//; s/^# (phase .*)/# '"$line"' \1/p' "$WORK/result.txt"
	if [ "$status" = "$END_STATUS" ] && grep -q '^SUITE-END 0' "$WORK/result.txt"; then
		echo "ok $line/end"
	else
		echo "not ok $line/end"
		echo "# QEMU's status is $status; $END_STATUS says that the suite ended well"
		grep '^# .*failed' "$WORK/result.txt" | uniq -c | head -n 40
		tail -n 30 "$WORK/console.txt"
	fi
	if complaints "$WORK/console.txt" >"$WORK/complaints.txt"; then
		echo "not ok $line/log"
		head -n 80 "$WORK/complaints.txt"
	else
		echo "ok $line/log"
	fi
}
