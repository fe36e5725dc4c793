#!/bin/bash
# SPDX-License-Identifier: MIT
# The files that load gdrdrv at boot: where they are installed, and whether the
# programs that read them understand them.
. "$(dirname "$0")/../docs/report.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MAKEOVERRIDES
dest=$work/dest
unit=$dest/usr/lib/systemd/system/gdrdrv.service

run_make() {
	make -s DESTDIR="$dest" "$@" >"$work/log" 2>&1 || tail -n 20 "$work/log"
}

missing() {
	local file
	for file in usr/lib/udev/rules.d/60-gdrdrv.rules usr/lib/modprobe.d/gdrdrv.conf \
		usr/lib/modules-load.d/gdrdrv.conf usr/lib/systemd/system/gdrdrv.service \
		usr/libexec/gdrcopy/gdrcopy usr/local/share/man/man4/gdrdrv.4; do
		[ -f "$dest/$file" ] || echo "$file is not installed"
	done
	[ -x "$dest/usr/libexec/gdrcopy/gdrcopy" ] || echo 'the helper cannot be run'
	find "$dest" -type f -perm /022 -printf '%P can be written by others\n'
}

rule() {
	local file=$dest/usr/lib/udev/rules.d/60-gdrdrv.rules
	grep -v '^#' "$file" | grep -q 'KERNEL=="gdrdrv".*MODE="0660", GROUP="video"' || cat "$file"
}

rule_is_understood() {
	udevadm verify "$dest/usr/lib/udev/rules.d/60-gdrdrv.rules" 2>&1 | grep -i 'error\|warn\|invalid'
}

# modprobe itself says what it would load before gdrdrv.
order() {
	/sbin/modprobe -C "$dest/usr/lib/modprobe.d" -c 2>/dev/null |
		grep -qx 'softdep gdrdrv pre: nvidia nvidia[-_]uvm' ||
		/sbin/modprobe -C "$dest/usr/lib/modprobe.d" -c 2>&1 | grep softdep
}

unit_is_understood() {
	grep -qx 'ExecStart=/usr/libexec/gdrcopy/gdrcopy start' "$unit" || cat "$unit"
	# It looks for the program as well: give it the installed one's name.
	sed "s|/usr/libexec|$dest/usr/libexec|" "$unit" >"$work/gdrdrv.service"
	systemd-analyze verify --man=no "$work/gdrdrv.service" 2>&1 | grep gdrdrv
}

report boot_install "$(run_make boot_install)"
report boot_files "$(missing)"
report boot_udev_rule "$(rule)"
if command -v udevadm >/dev/null && udevadm verify --help >/dev/null 2>&1; then
	report boot_udev_verify "$(rule_is_understood)"
else
	skip boot_udev_verify "this udevadm cannot verify rules (systemd 254 or newer can)"
fi
if [ -x /sbin/modprobe ]; then
	report boot_module_order "$(order)"
else
	skip boot_module_order "modprobe is not installed; make check-deps"
fi
if command -v systemd-analyze >/dev/null; then
	report boot_unit "$(unit_is_understood)"
else
	skip boot_unit "systemd-analyze is not installed"
fi
report boot_uninstall "$(run_make boot_uninstall)"
report boot_nothing_left "$(find "$dest" ! -type d -printf '%P is left\n')"
exit $status
