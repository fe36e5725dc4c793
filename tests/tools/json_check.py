# SPDX-License-Identifier: MIT
"""Checks that stdin is one JSON object of a tool, with the members that readers need."""
import json
import sys

tool = sys.argv[1]
data = json.load(sys.stdin)
assert data["tool"] == (tool if tool == "gdr_bench" else "gdrcopy_" + tool), data["tool"]
assert data["versions"]["libgdrapi"] == "2.6"

if tool == "info":
    used = [b["name"] for b in data["back_ends"] if b["used"]]
    assert used == ["emu"] and data["usable"] is True
    assert all(b["opens"] or b["reason"] for b in data["back_ends"])
    assert data["gpus"][0]["emulated"] and data["gpus"][0]["bar1_total"] > 0
    assert data["gpus"][0]["mapping_type"] == "Write Combining"
    assert data["store_routine"] in [r["name"] for r in data["routines"] if r["usable"]]
else:
    assert data["gpu"]["emulated"] is True
    assert tool == "gdr_bench" or data["back_end"] == "emu"

if tool == "copybw":
    assert {r["direction"] for r in data["results"]} == {"write", "read"}
    for r in data["results"]:
        assert abs(r["gb_per_s"] * 1e9 - r["mb_per_s"] * 2**20) < 2**20
elif tool == "copylat":
    names = {row["test"] for way in ("write", "read") for row in data[way]["rows"]}
    assert names == {"gdr_copy_to_mapping", "cuMemcpy_H2D", "cuMemcpy_H2D_pinned",
                     "gdr_copy_from_mapping", "cuMemcpy_D2H", "cuMemcpy_D2H_pinned"}
    assert len(data["write"]["crossover"]) == 2
    for row in data["write"]["rows"]:
        us = row["us"]
        assert us["min"] <= us["median"] <= us["p99"] <= us["max"]
elif tool == "apiperf":
    row = data["results"][0]
    assert row["size"] == 65536 and row["pin_us"]["mean"] > 0
    assert sum(b["count"] for b in row["pin_histogram"]) == data["iterations"]
elif tool == "pplat":
    assert 0 < data["round_trip_us"]["min"] <= data["round_trip_us"]["median"]
elif tool == "gdr_bench" and "results" in data:
    assert {r["direction"] for r in data["results"]} == {"h2d", "d2h", "d2d"}
    for r in data["results"]:
        us = r["us"]
        assert us["min"] <= us["median"] <= us["p99"] <= us["max"] and r["samples"] == 11
    judged = [c["verdict"] for c in data["check"]]
    assert len(judged) >= 5 * 7 and judged.count("ok") == data["check_ok"]
    assert judged.count("missed") == data["check_missed"]
elif tool == "gdr_bench":
    assert data["bytes"] == 4096 and data["samples"] == 20 and data["road"]
    assert abs(data["bytes_per_s"] * data["us"]["mean"] / 1e6 - 4096) < 1
