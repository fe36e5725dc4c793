#!/bin/bash
# SPDX-License-Identifier: MIT
# Links in Markdown files lead to files and headings that exist.
. "$(dirname "$0")/report.sh"

# GitHub's rule for the anchor of a heading.
anchors() {
	sed -n '/^```/,/^```/d; s/^#\{1,6\} //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'
}

check_link() {
	local file=$1 target=${2%%#*} anchor=
	[[ $2 == *#* ]] && anchor=${2#*#}
	if [ -n "$target" ]; then
		target=$(dirname "$file")/$target
		[ -e "$target" ] || { echo "$file: $2: no such file"; return; }
	else
		target=$file
	fi
	[ -z "$anchor" ] || anchors "$target" | grep -qx -- "$anchor" ||
		echo "$file: $2: no such heading"
}

# Inline links outside code blocks and code spans.
links() {
	sed '/^```/,/^```/d; s/`[^`]*`//g' "$1" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' |
		grep -vE '^[a-z]+:'
}

broken() {
	local file link
	for file in $files; do
		for link in $(links "$file"); do check_link "$file" "$link"; done
	done
}

# Files and folders of the project that a document names in a code span.
unknown_paths() {
	local file path
	for file in $files; do
		sed '/^```/,/^```/d' "$file" |
			grep -oE '`(src|include|tests|tools|docs|examples|scripts|mk)/[a-zA-Z0-9_./-]*`' |
			tr -d '`' | sort -u | while read -r path; do
				[[ $path =~ [A-Z]{4} || $path == src/userspace/*.so* ]] && continue
				[ -e "$path" ] || echo "$file: $path does not exist"
			done
	done
}

files=$(project_files '*.md')
report markdown_files_found "$(grep -qx README.md <<<"$files" || echo "no README.md")"
report markdown_links_resolve "$(broken)"
report markdown_paths_exist "$(unknown_paths)"
exit $status
