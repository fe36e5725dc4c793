#!/bin/bash
# SPDX-License-Identifier: MIT
# The man pages: well formed, one for every call and tool, and no reference without a page.
. "$(dirname "$0")/report.sh"
PAGES=docs/man

calls_of() {
	sed -n 's/^[a-z].*[ *]\(gdr_[a-z0-9_]*\)(.*/\1/p' "$1" | sort -u
}

# The calls of both headers, by the names that the library exports.
public_calls() {
	calls_of include/gdrapi.h
	calls_of include/gdrcopy/gdrapi.h | sed 's/$/_v3/'
}

# NAME_v3 is a name of the library alone.
in_source() {
	[[ $1 == *_v3 ]] && echo "${1%_v3}" || echo "$1"
}

lint() {
	mandoc -T lint -W warning $PAGES/*.[1-8] 2>&1 | grep -v 'outdated mandoc.db'
}

# A page names the call in NAME, shows its prototype, and has the usual sections.
calls_without_page() {
	local call page section
	for call in $(public_calls); do
		page=$PAGES/$call.3
		[ -f "$page" ] || { echo "$call: no $page"; continue; }
		grep -q "^\.Nm $call\( ,\)\?$" "$page" || echo "$call: not in NAME of $page"
		grep -q "^\.F[no] \"\?$(in_source "$call")\b" "$page" || echo "$call: no prototype in $page"
		for section in SYNOPSIS DESCRIPTION 'RETURN VALUES' ERRORS THREADS 'SEE ALSO'; do
			[ "$call $section" = 'gdr_runtime_get_version ERRORS' ] ||
				grep -q "^\.Sh $section$" "$page" || echo "$page: no $section"
		done
		grep -q "Xr $call 3" $PAGES/gdrcopy.7 || echo "$call: not in gdrcopy.7"
	done
}

tools_without_page() {
	local tool
	for tool in $(sed -n 's/^TOOL_NAMES := //p' mk/install.mk); do
		[ -f $PAGES/gdrcopy_"$tool".1 ] || echo "gdrcopy_$tool: no $PAGES/gdrcopy_$tool.1"
	done
	for tool in $(sed -n 's/^GUIDE_TOOLS := //p' mk/install.mk); do
		[ -f $PAGES/"$tool".1 ] || echo "$tool: no $PAGES/$tool.1"
	done
}

# References to our own pages; those to other manuals are not looked up.
dangling_references() {
	grep -Eoh '^\.Xr gdr[a-z0-9_]* [1-8]' $PAGES/*.[1-8] | sort -u |
		while read -r _ name section; do
			[ -f "$PAGES/$name.$section" ] || echo "$name($section) has no page"
		done
}

# Pages of calls that do not exist.
pages_without_call() {
	local page name
	for page in $PAGES/gdr_*.3; do
		name=$(basename "$page" .3)
		public_calls | grep -qx "$name" || echo "$page: no such call in a public header"
	done
}

if command -v mandoc >/dev/null; then
	report man_pages_lint "$(lint)"
else
	skip man_pages_lint "mandoc is not installed; make check-deps"
fi
for header in include/gdrapi.h:17 include/gdrcopy/gdrapi.h:17; do
	[ "$(calls_of "${header%:*}" | wc -l)" -ge "${header#*:}" ] ||
		report header_has_calls "fewer than ${header#*:} calls in ${header%:*}"
done
report man_page_for_every_call "$(calls_without_page)"
report man_page_for_every_tool "$(tools_without_page)"
report man_pages_of_calls_only "$(pages_without_call)"
report man_references_resolve "$(dangling_references)"
exit $status
