#!/bin/bash
# SPDX-License-Identifier: MIT
# What the built library files show to the loader and the linker.
set -u
cd "$(dirname "$0")/../.." || exit 2
LIB=${GDRCOPY_LIBDIR:-src/userspace}
SO=$LIB/libgdrapi.so.2.6
rc=0

# check NAME EXPECTED ACTUAL
check() {
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		echo "not ok $1"
		diff <(echo "$2") <(echo "$3") >&2
		rc=1
	fi
}

names=$(sort <<'END'
gdr_close
gdr_copy_from_mapping
gdr_copy_to_mapping
gdr_driver_get_version
gdr_get_attribute
gdr_get_callback_flag
gdr_get_info
gdr_get_info_v2
gdr_get_mapping_type_string
gdr_map
gdr_map_v2
gdr_open
gdr_pin_buffer
gdr_pin_buffer_v2
gdr_runtime_get_version
gdr_unmap
gdr_unpin_buffer
END
)
check list-has-17-names 17 "$(wc -l <<<"$names")"

# Version 3's names, as its header gives them to the linker.
names3=$(grep -o 'gdr_[a-z_]*_v3' include/gdrcopy/gdrapi.h | sort)
check list-3-is-complete 17 "$(wc -l <<<"$names3")"

# A version would follow the name after an @.
check shared-names "$names" "$(nm -D --defined-only --with-symbol-versions "$SO" |
	awk '$2 == "T" && $3 !~ /@/ { print $3 }' | sort)"
check shared-names-3 "$(sed 's/$/@@GDRAPI_3.0/' <<<"$names3")" \
	"$(nm -D --defined-only --with-symbol-versions "$SO" |
		awk '$2 == "T" && $3 ~ /@/ { print $3 }' | sort)"
check shared-kinds "A
T" "$(nm -D --defined-only "$SO" | awk '{ print $2 }' | sort -u)"
check one-version GDRAPI_3.0 "$(nm -D --defined-only "$SO" | awk '$2 == "A" { print $3 }')"
check static-names "$(sort <<<"$names
$names3")" "$(nm -g --defined-only "$LIB/libgdrapi.a" | awk 'NF == 3 { print $3 }' | sort)"
check static-needs-no-cuda "" "$(nm -u "$LIB/libgdrapi.a" | awk '{ print $2 }' |
	grep -E '^(cu[A-Z]|cuda|nvml|gdr)')"

check soname libgdrapi.so.2 "$(readelf -d "$SO" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
check link-1 libgdrapi.so.2 "$(readlink "$LIB/libgdrapi.so")"
check link-2 libgdrapi.so.2.6 "$(readlink "$LIB/libgdrapi.so.2")"
# Before glibc 2.34 threads and dlopen have libraries of their own; ppc64 names its loader.
check needs-libc-alone "" "$(readelf -d "$SO" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -vE '^(libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld(64|-linux.*)\.so\.[12])$')"
check no-rpath 0 "$(readelf -d "$SO" | grep -cE 'RPATH|RUNPATH')"

check no-text-relocations 0 "$(readelf -d "$SO" | grep -cE 'TEXTREL')"
check no-executable-stack RW "$(readelf -lW "$SO" | awk '$1 == "GNU_STACK" { print $(NF - 1) }')"
check no-writable-code 0 "$(readelf -lW "$SO" | grep -cE '^ +LOAD.* RWE ')"
check relro 1 "$(readelf -lW "$SO" | grep -c GNU_RELRO)"
check bind-now 1 "$(readelf -d "$SO" | grep -c 'FLAGS_1.*NOW')"
# Threads may be inside a call when the program ends or drops the library.
check stays-loaded 1 "$(readelf -d "$SO" | grep -c 'FLAGS_1.*NODELETE')"
check no-thread-local-storage 0 "$(readelf -lW "$SO" | awk '$1 == "TLS"' | wc -l)"
# What runs at exit besides the compiler's own clean-up would race with threads.
check no-destructor 8 "$(readelf -SW "$SO" |
	sed -n 's/.*\.fini_array *FINI_ARRAY *[0-9a-f]* [0-9a-f]* 0*\([0-9a-f]*\) .*/\1/p')"
exit $rc
