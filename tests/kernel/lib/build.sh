# SPDX-License-Identifier: MIT
# Builds modules and guest programs into build/kernel; sourced by run.sh.

# The stand-ins: name, layout, flavour, driver version they claim.
ALL_STANDINS="open-1.2:layout-1.2:open:550.163.01
open-2.0:layout-2.0:open:580.65.06
proprietary-2.0:layout-2.0:proprietary:580.65.06
proprietary-old:no-persistent:proprietary:470.256.02"
STANDINS=$ALL_STANDINS

# kbuild KERNELDIR MODULE-FOLDER [VARIABLE=VALUE...]
kbuild() {
	local kernel=$1 dir=$2
	shift 2
	# Kernels from 6.12 on want pahole for module BTF, which no test reads.
	make -s -C "$kernel" M="$dir" CONFIG_DEBUG_INFO_BTF_MODULES= \
		"$@" modules
}

# fresh_copy SOURCE TARGET: kbuild writes beside its sources.
fresh_copy() {
	mkdir -p "$2"
	cp -pu "$1"/* "$2"/
}

build_standin() {
	local kernel=$1 name=$2 layout=$3 flavour=$4 version=$5 dir=$WORK/standin-$2
	fresh_copy "$HERE/standin" "$dir"
	kbuild "$kernel" "$dir" STANDIN_HEADERS="$HERE/nvidia/$layout/nvidia" \
		STANDIN_FLAVOUR="$flavour" STANDIN_VERSION="$version" W=1 || return 1
	mkdir -p "$MODULES/$name"
	"${CROSS}strip" --strip-debug -o "$MODULES/$name/nvidia_emu.ko" "$dir/nvidia_emu.ko"
}

# What the module's build looks for beside nv-p2p.h in the driver's source folder.
driver_source() {
	local name=$1 layout=$2 flavour=$3 version=$4 dir=$WORK/nvidia-$1
	mkdir -p "$dir/nvidia"
	cp -p "$HERE/nvidia/$layout/nvidia/nv-p2p.h" "$dir/nvidia/"
	if [ "$flavour" = open ]; then
		echo 'MODULE_LICENSE("Dual MIT/GPL");' >"$dir/nvidia/nv.c"
	else
		echo 'MODULE_LICENSE("NVIDIA");' >"$dir/nvidia/nv.c"
	fi
	printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\n' "$version" >"$dir/dkms.conf"
	cp "$WORK/standin-$name/Module.symvers" "$dir/Module.symvers"
	echo "$dir"
}

build_gdrdrv() {
	local kernel=$1 name=$2 dir=$WORK/gdrdrv-$2
	fresh_copy "$MODULE_SOURCE" "$dir"
	make -s -C "$dir" KERNELDIR="$kernel" CONFIG_DEBUG_INFO_BTF_MODULES= \
		NV_DRIVER_PATH="$(driver_source "$2" "$3" "$4" "$5")" || return 1
	mkdir -p "$MODULES/$name"
	"${CROSS}strip" --strip-debug -o "$MODULES/$name/gdrdrv.ko" "$dir/gdrdrv.ko"
}

# A licence that is not the GPL makes modpost name every GPL-only symbol.  On a
# proprietary driver one such symbol would keep the module from loading.
build_as_mit() {
	local kernel=$1 planted=${2:-} dir=$WORK/gdrdrv-mit
	rm -rf "$dir"
	fresh_copy "$MODULE_SOURCE" "$dir"
	echo "$planted" >>"$dir/main.c"
	sed -i 's|MODULE_LICENSE("Dual MIT/GPL")|MODULE_LICENSE("MIT")|' "$dir"/*.c
	grep -q 'MODULE_LICENSE("MIT")' "$dir"/*.c || { echo "no licence line to change"; return 1; }
	make -s -C "$dir" KERNELDIR="$kernel" CONFIG_DEBUG_INFO_BTF_MODULES= \
		NV_DRIVER_PATH="$WORK/nvidia-proprietary-2.0"
}

build_probe() {
	fresh_copy "$HERE/probe" "$WORK/probe"
	kbuild "$1" "$WORK/probe" W=1 || return 1
	"${CROSS}strip" --strip-debug -o "$MODULES/pte_probe.ko" "$WORK/probe/pte_probe.ko"
}

build_modules() {
	local kernel=$1 name layout flavour version
	mkdir -p "$MODULES"
	build_probe "$kernel" || return 1
	while IFS=: read -r name layout flavour version; do
		build_standin "$kernel" "$name" "$layout" "$flavour" "$version" || return 1
		build_gdrdrv "$kernel" "$name" "$layout" "$flavour" "$version" || return 1
	done <<<"$STANDINS"
}

GUEST_CFLAGS="-std=gnu11 -D_GNU_SOURCE -O2 -g -pthread -Wall -Wextra -Wshadow
	-Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Werror"

# Programs that use the emulated CUDA driver, as dynamic as a user's.
build_cuda_programs() {
	local source out=$GUEST_PROGRAMS-cuda
	mkdir -p "$out"
	for source in "$HERE"/guest/cuda/*.c; do
		"${CROSS}gcc" $GUEST_CFLAGS -I"$HERE/standin" -I"$ROOT/tests" -I"$ROOT/src/emu/include" \
			-o "$out/cuda_$(basename "$source" .c)" "$source" "$ROOT/tests/harness.c" \
			-L"$GUEST_TOP/emu" -lcuda || return 1
	done
}

build_programs() {
	local source name out=$GUEST_PROGRAMS
	mkdir -p "$out"
	build_cuda_programs || return 1
	for source in "$HERE"/guest/*.c; do
		name=$(basename "$source" .c)
		[ "$name" = bench ] && continue
		"${CROSS}gcc" $GUEST_CFLAGS -static \
			-I"$HERE/guest" -I"$HERE/standin" -I"$HERE/probe" -I"$ROOT/tests" \
			-I"$ROOT/src/modules/gdrdrv" -o "$out/$name" \
			"$source" "$HERE/guest/bench.c" "$ROOT/tests/harness.c" || return 1
	done
}
