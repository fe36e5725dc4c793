#!/bin/bash
# SPDX-License-Identifier: MIT
# What holds for every file of the project: a license line, and no trace of one machine.
. "$(dirname "$0")/report.sh"
files=$(project_files)

# Documents and data say it in LICENSE alone.
is_source() {
	case $1 in
	*.md | *.txt | *.json | *.csv | LICENSE | .gitignore | docs/results/* | *.pc.in) return 1 ;;
	*.[ch] | *.h | *.sh | *.mk | *.py | *.map | */Makefile | Makefile | docs/man/* | .ci/*) return 0 ;;
	esac
	head -c 2 "$1" | grep -q '#!'
}

without_license_line() {
	local file
	for file in $files; do
		[ ! -L "$file" ] && is_source "$file" || continue
		head -n 2 "$file" | grep -q 'SPDX-License-Identifier: ' || echo "$file"
	done
}

# Folders of users and workplaces, and this machine's own name when it is not a common word.
machine_traces() {
	local host patterns='/(wor[k]|home|root|Users)/[a-z]'
	host=$(uname -n)
	[[ $host =~ ^[a-z]+$ ]] || patterns+="|\\b$host\\b"
	grep -InE "$patterns" $files
}

trailing_space() {
	grep -InE '[ 	]+$' $files | grep -v '^docs/results/' | cut -c1-120
}

report files_found "$(grep -qx include/gdrapi.h <<<"$files" || echo "include/gdrapi.h is missing")"
report license_lines "$(without_license_line)"
report no_machine_names "$(machine_traces)"
report no_trailing_space "$(trailing_space)"
exit $status
