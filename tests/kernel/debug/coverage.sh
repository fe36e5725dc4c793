#!/bin/bash
# SPDX-License-Identifier: MIT
# Coverage of gdrdrv from guest runs with the phase "coverage": coverage.sh RESULT...
#
# RESULT is what came over the guest's second serial port (build/kernel/kasan/result.txt);
# the module's build folders must be as they were.  Lines count as run when any build of the
# module ran them in any of the runs.  -l lists the lines that did not run.
set -u
list=
[ "${1:-}" = -l ] && { list=-l; shift; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number=0
for result; do
	dir=$work/$((number += 1))
	mkdir -p "$dir"
	sed -n 's/\r$//; s/^GCDA //p' "$result" | base64 -d | tar -xz -C "$dir" ||
		{ echo "$result holds no counts" >&2; exit 1; }
	while read -r counts; do
		object=/${counts#"$dir"/}
		cp "${object%.gcda}.gcno" "${counts%/*}/" || exit 1
		(cd "${counts%/*}" && "${GCOV:-gcov-12}" -j -t "$(basename "$counts")") >>"$work/counts.json"
	done < <(find "$dir" -name '*.gcda')
done

python3 - "$work/counts.json" "$list" <<'END'
import json, os, sys
lines, functions = {}, {}
for text in open(sys.argv[1]):
    for source in json.loads(text)["files"]:
        name = os.path.basename(source["file"])
        # Headers of the kernel are counted where they are inlined; they are not ours.
        if "/gdrdrv-" not in source["file"] or name.endswith(".mod.c") or "dummy" in name:
            continue
        for line in source["lines"]:
            at = (name, line["line_number"])
            lines[at] = max(lines.get(at, 0), line["count"])
if not lines:
    sys.exit("no line of gdrdrv was counted")
total = [0, 0]
for name in sorted({at[0] for at in lines}):
    of = [n for (f, n) in lines if f == name]
    run = [n for n in of if lines[name, n]]
    total[0] += len(run)
    total[1] += len(of)
    print("%-12s %4d of %4d lines  %5.1f %%" % (name, len(run), len(of), 100 * len(run) / len(of)))
    if sys.argv[2]:
        print("    not run:", *sorted(set(of) - set(run)))
print("%-12s %4d of %4d lines  %5.1f %%" % ("all", *total, 100 * total[0] / total[1]))
END
