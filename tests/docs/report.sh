# SPDX-License-Identifier: MIT
# Sourced by the scripts of this folder: how they report, and where things lie.
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$ROOT" || exit 2
BUILD=${GDRCOPY_BUILD:-$ROOT/build}
LIBDIR=${GDRCOPY_LIBDIR:-$ROOT/src/userspace}
status=0

# report NAME COMPLAINTS: passed when there are none.
report() {
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		sed 's/^/  /' <<<"$2"
		echo "not ok $1"
		status=1
	fi
}

skip() {
	echo "skip $1: $2"
	[ $# -lt 3 ] || exit "$3"
}

# The files of the project: those under version control and those that could be.
project_files() {
	if [ -e .git ] && command -v git >/dev/null; then
		git -c safe.directory="$ROOT" ls-files -co --exclude-standard -- "$@" |
			while read -r file; do [ ! -f "$file" ] || echo "$file"; done
	else
		find . -name build -prune -o -type f -print | sed 's|^\./||' |
			{ [ $# = 0 ] && cat || grep -E "\.${1##*.}\$"; }
	fi
}
