#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a summary table from the raw output of tests/device/run.

The columns "peer" are quoted: GDRCopy 2.6's own copy loops on the same kind of
machine, measured by the project before this code existed (one H200, PCIe 5
x16, the same driver).  Everything else is measured in the run that is
summarised.
"""
import json
import pathlib
import re
import sys

# Median microseconds of GDRCopy 2.6's loops, by size: write, read.
PEER = {
    4: (0.09, 1.0), 1024: (0.16, 1.07), 4096: (0.27, 4.0), 16384: (0.98, 17),
    65536: (3.8, 66), 262144: (15, 302), 1048576: (59, 1271),
    4194304: (267, 5212), 16777216: (1042, None),
}
ROWS = {
    "write": ("gdr_copy_to_mapping", "cuMemcpy_H2D", "cuMemcpy_H2D_pinned"),
    "read": ("gdr_copy_from_mapping", "cuMemcpy_D2H", "cuMemcpy_D2H_pinned"),
}


def number(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def size_name(size):
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def latencies(folder):
    """{direction: {test: {size: us}}} of one copylat run; refuses emulated figures."""
    report = json.loads((folder / "copylat_json.txt").read_text())
    if report["gpu"]["emulated"]:
        sys.exit("the GPU is emulated: its figures say nothing about hardware")
    table = {}
    for direction in ROWS:
        for row in report[direction]["rows"]:
            table.setdefault(direction, {}).setdefault(row["test"], {})[row["size"]] = row["us"]
    return table


def print_latencies(table):
    for column, direction in enumerate(ROWS):
        ours, pageable, pinned = ROWS[direction]
        print(f"\n### {direction}, median us (p99)\n")
        print("| bytes | ours | p99 | ours GB/s | peer (quoted) | cuMemcpy pageable | "
              "cuMemcpy pinned |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for size, quoted in PEER.items():
            if size not in table[direction][ours]:
                continue
            own = table[direction][ours][size]
            cells = [size_name(size), number(own["median"]), number(own["p99"]),
                     f"{size / own['median'] / 1000:.2f}", number(quoted[column])]
            cells += [number(table[direction][test][size]["median"])
                      for test in (pageable, pinned)]
            print("| " + " | ".join(cells) + " |")


def print_routines(folder):
    """The automatic choice against the best forced routine, per size."""
    print("\n### automatic choice against the best forced routine (us, interleaved)\n")
    print("| direction | bytes | automatic | best forced | which | rate of best |")
    print("| --- | --- | --- | --- | --- | --- |")
    direction, names = None, []
    for line in (folder / "routines.txt").read_text().splitlines():
        words = line.split()
        if line.startswith("gdr_copy"):
            direction = "write" if "to_mapping" in line else "read"
        elif words[:1] == ["bytes"]:
            names = words[1:]
        elif direction and words and words[0].isdigit():
            times = dict(zip(names, map(float, words[1:])))
            auto = times.pop("auto")
            best = min(times, key=times.get)
            print(f"| {direction} | {words[0]} | {auto:.3f} | {times[best]:.3f} | {best} | "
                  f"{times[best] / auto:.3f} |")


def first(pattern, text, default="?"):
    found = re.search(pattern, text, re.M)
    return found.group(1) if found else default


def main():
    folder = pathlib.Path(sys.argv[1])

    def text(name):
        return (folder / f"{name}.txt").read_text()

    print("# Measured without the kernel module\n")
    print("```\n" + text("machine").strip() + "\n```\n")
    print("| what | measured | expected |")
    print("| --- | --- | --- |")
    table = latencies(folder)
    write = table["write"]["gdr_copy_to_mapping"]
    read = table["read"]["gdr_copy_from_mapping"]
    print(f"| write 4 bytes | {write[4]['median']:.3f} us | at most 0.12 |")
    print(f"| write rate at 64 KiB | {65536 / write[65536]['median'] / 1000:.2f} GB/s (10^9) | "
          "at least 16.5 |")
    print(f"| read 4 bytes | {read[4]['median']:.3f} us | about 1.0 |")
    print(f"| pin + map of 64 KiB | "
          f"{first(r'^median of pin and map together for 65536 bytes: (.*)', text('apiperf'))} | "
          "at most 60 us |")
    pingpong = first(r"^Round-trip latency per iteration is (.*)", text("pplat"))
    print(f"| CPU-GPU ping-pong | {pingpong} | 1.38 best, 1.43 median |")
    print(f"| sanity | {first(r'^(Total: .*)', text('sanity'))} | none failed |")
    print_latencies(table)
    print_routines(folder)


if __name__ == "__main__":
    main()
