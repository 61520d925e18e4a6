"""The whole mutation run: every barrier, guard, fill and wait of every example's kernels left out, one at a time.

    python benchmarks/mutations.py [NAME ...] [--json FILE]

Every schedule of every example that has NAME in "example.schedule.sizes.stage" (default: all), with tiny tiles, at whole sizes (which
the tiles divide) and odd ones, as it is decided and as it is emitted. Prints how many mutants the simulator's reports or wrong
results give away, and the survivors with why.
Exit status 1 where a survivor is missed, or where fewer than 95 % were found: as decided, of all; as emitted, where lanes and loop
ends are protected twice on purpose, of those that are not shown to be unseen. The table that is committed:
`python benchmarks/mutations.py --json benchmarks/results/mutations.json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tilelang as tl
from tests.lowering.test_instruct import ampere
from tests.lowering.test_mutations import awaited
from tests.test_examples import NAMES, SIZES, load
from tilelang.testing.mutants import KINDS
from tilelang.testing.mutations import MISSED, STAGES, UNSEEN, WHY, Judge

ENOUGH = 0.95  # the share that must be found
AWAITED = "asynchronous copies"
ODD = {
    "14_own_instruction": (5, 37, 11),  # smaller, for the simulator is slow: an instruction by one thread at a time
    "13_causal_product": (15, 19),  # the last rows in a tile have different ends
}
WHOLE = {"01_matmul": (32, 64, 16), "14_own_instruction": (16, 64, 16)}
Job = tuple[str, str, str, str]  # example, schedule, sizes, stage
Row = dict[str, Any]


def jobs(chosen: list[str]) -> list[Job]:
    """What to run, the costly ones first."""
    kernels = [
        (AWAITED, "rows", "odd"),
        (AWAITED, "gemm_ampere", "odd"),
        *((n, s, which) for n in NAMES for which in ("odd", "whole") for s in load(n).schedules(*sizes(n, which), small=True)),
    ]
    every = [(*k, stage) for stage in STAGES for k in kernels]
    return [job for job in every if not chosen or any(part in ".".join(job) for part in chosen)]


def sizes(example: str, which: str) -> tuple[int, ...]:
    """Odd or whole sizes of an example."""
    return ODD.get(example, SIZES[example][1]) if which == "odd" else WHOLE.get(example, SIZES[example][0])


def schedule(example: str, which: str, size: str) -> tuple[tl.Schedule, str]:
    """A schedule, and the profile that it is for."""
    if example != AWAITED:
        return load(example).schedules(*sizes(example, size), small=True)[which], "sapphire_rapids"
    if which == "rows":
        return awaited(), "ampere"
    return ampere(load("01_matmul").matmul(40, 24, 104, tl.float16)), "simulated"  # with smaller tiles


def run(job: Job) -> Row:
    """Every mutant of one kernel, and what became of it."""
    example, which, size, stage = job
    made, profile = schedule(example, which, size)
    start = time.perf_counter()
    verdicts = list(Judge(STAGES[stage](made, tl.load_profile(profile)), made.computation).verdicts())
    return {
        "example": example,
        "schedule": which,
        "sizes": size,
        "stage": stage,
        "seconds": round(time.perf_counter() - start, 1),
        "mutants": dict(Counter(v.mutant.kind for v in verdicts)),
        "found": dict(Counter(v.how for v in verdicts if v.found)),
        "survivors": [{"kind": v.mutant.kind, "why": v.how, "what": v.mutant.text} for v in verdicts if not v.found],
    }


def summary(rows: list[Row]) -> list[Row]:
    """A line for each stage: the mutants of each kind, how many were found, and why others were not."""
    lines = []
    for stage in STAGES:
        mine = [r for r in rows if r["stage"] == stage]
        left = [s for r in mine for s in r["survivors"]]
        total, survived = Counter[str](), Counter(s["kind"] for s in left)
        for r in mine:
            total.update(r["mutants"])
        why = Counter(s["why"] for s in left)
        lines.append(
            {
                "stage": stage,
                "mutants": total.total(),
                "found": total.total() - len(left),
                "share": round(1 - len(left) / max(1, total.total()), 4),
                "share without the unseen": round(1 - (len(left) - why[UNSEEN]) / max(1, total.total() - why[UNSEEN]), 4),
                **{kind: f"{total[kind] - survived[kind]} of {total[kind]}" for kind in KINDS},
                **{how: why[how] for how in WHY},
            }
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--json", metavar="FILE", type=Path)
    options = parser.parse_args(arguments)
    todo, rows = jobs(options.names), []
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for row in pool.imap_unordered(run, todo):
            rows.append(row)
            total = sum(row["mutants"].values())
            name = f"{row['example']} {row['schedule']} {row['sizes']} {row['stage']}"
            print(f"[{len(rows)}/{len(todo)}] {name}: {total - len(row['survivors'])} of {total}, {row['seconds']} s", flush=True)
            for s in row["survivors"]:
                print(f"    {s['why']}: {s['kind']}: {s['what']}", flush=True)
    rows.sort(key=lambda r: (r["stage"], r["example"], r["schedule"], r["sizes"]))
    seconds, table = round(time.perf_counter() - start), summary(rows)
    for line in table:
        print(line)
    if options.json:
        head = {
            "schema": 1,
            "command": "python benchmarks/mutations.py --json benchmarks/results/mutations.json",
            "seconds": seconds,
        }
        text = json.dumps({**head, "why": WHY, "summary": table, "kernels": rows}, indent=1)
        options.json.write_text(text + "\n")
    shares = {"decided": "share", "emitted": "share without the unseen"}
    return int(any(line[MISSED] or line["mutants"] and line[shares[line["stage"]]] < ENOUGH for line in table))


if __name__ == "__main__":
    sys.exit(main())
