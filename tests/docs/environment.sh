#!/bin/bash
# SPDX-License-Identifier: MIT
# docs/environment.md lists what the code reads, and the code reads what it lists.
. "$(dirname "$0")/report.sh"
PAGE=docs/environment.md

# Names in quotes of their own are looked up; names inside messages are not.
read_by_code() {
	find src tools -name '*.[ch]' -exec grep -Eoh \
		'"GDRCOPY_[A-Z0-9_]+"|getenv\("[A-Z0-9_]+"\)' {} + |
		grep -Eo '[A-Z][A-Z0-9_]+' | sort -u
}

read_by_tests() {
	{
		grep -Eoh '\$\{(GDRCOPY|HARNESS)_[A-Z_]+' tests/*.sh tests/*/*.sh
		grep -Eoh 'getenv\("[A-Z_]+"\)' tests/*.[ch] tests/*/*.[ch]
	} | grep -Eo '(GDRCOPY|HARNESS)_[A-Z_]+' | sort -u
}

# The first column of the table rows, between lines that match $1 and $2.
listed() {
	sed -n "/$1/,/$2/p" $PAGE | sed -n 's/^| `\([A-Za-z0-9_-]*\)[^`]*` |.*/\1/p' | sort -u
}

emulator_keys() {
	grep -oE 'strcmp\(key, "[a-z0-9-]+"' src/emu/config.c | cut -d'"' -f2 | sort -u
}

# only_left NAME A B: complains about lines of A that are not in B.
only_left() {
	comm -23 <(echo "$2") <(echo "$3") | sed "s|\$|: $1|"
}

code=$(read_by_code)
tests=$(read_by_tests)
page_code=$(listed '^## The library' '^## Tests' | grep -E '^[A-Z]')
page_tests=$(listed '^## Tests' '^## End')
page_keys=$(listed '^| key ' '^`SIZE`' | grep -E '^[a-z]')

report variables_found_in_code "$(grep -qx GDRCOPY_BACKEND <<<"$code" || echo none)"
report code_variables_are_listed \
	"$(only_left "read in src/ or tools/, not in $PAGE" "$code" "$page_code")"
report listed_variables_are_read "$(only_left "in $PAGE, read nowhere" "$page_code" "$code")"
report test_variables_are_listed "$(only_left "read in tests/, not in $PAGE" \
	"$(comm -23 <(echo "$tests") <(echo "$code"))" "$page_tests")"
report listed_test_variables_are_read "$(only_left "in $PAGE, read nowhere" "$page_tests" "$tests")"
report emulator_keys_are_listed \
	"$(only_left "key of GDRCOPY_EMU, not in $PAGE" "$(emulator_keys)" "$page_keys")"
report listed_keys_are_read \
	"$(only_left "key in $PAGE, unknown to src/emu/config.c" "$page_keys" "$(emulator_keys)")"
exit $status
