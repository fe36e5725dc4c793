#!/bin/bash
# SPDX-License-Identifier: MIT
# docs/troubleshooting.md quotes messages that the code really has.
. "$(dirname "$0")/report.sh"
PAGE=docs/troubleshooting.md

# All C sources on one line, with adjacent string literals joined.
messages() {
	cat $(find src -name '*.[ch]') | tr '\n\t' '  ' | sed 's/" *"//g'
}

# The quoted fragments of the first column; "..." stands for anything.
fragments() {
	grep '^| `' $PAGE | cut -d'|' -f2 | grep -oE '`[^`]+`' | tr -d '`' |
		grep -v '^SIG' | sed 's/ *\.\.\. */\n/g; s/=\n/\n/g' | grep -v '^$' | sort -u
}

# What a format prints from its arguments is in the sources once more, on its own.
unknown() {
	local text
	text=$(messages)
	fragments | while IFS= read -r fragment; do
		grep -qF -- "$fragment" <<<"$text" || echo "no message has: $fragment"
	done
}

count=$(fragments | wc -l)
report fragments_found "$([ "$count" -gt 40 ] || echo "too few: $count")"
report quoted_messages_exist "$(unknown)"
exit $status
