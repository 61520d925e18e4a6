"""Two profiles of the processor here: the operators whose constructed schedule differs by them, both schedules timed side by side.

    python benchmarks/profiles.py OLD NEW [--only M5,M6] [--rounds 7] [--limit-s 80] [--results FILE]

OLD and NEW are shipped profiles or files. Both schedules take turns; a result that is not within its bound is no time. Printed for each
such operator: the estimate and the time of both in microseconds, and how many times as fast the new one is; then the geometric mean and
the least of these. Pairs of schedules that stand in `--results` are not timed again, so that the same command goes on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/profiles.py` from anywhere

import tilelang as tl
from benchmarks import operators_cases, operators_peers
from benchmarks.harness import record, recorded, table
from benchmarks.operators import described
from benchmarks.operators_cases import Operator
from benchmarks.operators_ours import Call, candidates, compare, launched

SIDES = ("old", "new")
HEADING = ("operator", "old estimate", "new estimate", "old us", "new us", "x as fast")
Row = dict[str, Any]


def measured(operator: Operator, schedules: dict[str, tl.Schedule], target: tl.Target, rounds: int) -> Row:
    """Both schedules of an operator, timed in turns: microseconds of a call among others in a row. Both write the same array, as where
    it lies can take a tenth more or less time."""
    arrays, name = operators_peers.random_arrays(operator), list(operator.shapes)[-1]
    expected, bound = operators_peers.expected_and_bound(operator, arrays)
    calls: list[Call] = []
    row: Row = {"operator": operator.id, **{side: {"schedule": described(made)} for side, made in schedules.items()}}
    out = np.empty(operator.shapes[name], np.float32)
    for side, schedule in schedules.items():
        out.fill(np.nan)
        kernel = tl.compile(schedule, target)
        call = launched(kernel, arrays, name, out, side)
        call.begin()
        call.finish()
        if why := operators_peers.wrong(out, expected, bound):
            return {**row, "wrong": f"{side}: {why}"}
        calls.append(call)
    for side, (_, seconds) in compare(calls, rounds, pause_s=0).items():
        row[side]["us"] = round(seconds * 1e6, 2)
    return row


def read(path: Path | None) -> dict[tuple[str, ...], Row]:
    """The rows of a file by operator and schedules; none where there is no file."""
    rows = recorded(path) if path is not None and path.exists() else []
    return {(row["operator"], *(row[side]["schedule"] for side in SIDES)): row for row in rows}


def report(rows: list[Row]) -> str:
    """A line for each operator whose schedule differs, then the mean and the least."""
    lines, ratios = [HEADING], []
    for row in rows:
        if "wrong" in row:
            lines.append((row["operator"], row["wrong"], "", "", "", ""))
        else:
            ratios.append(row["old"]["us"] / row["new"]["us"])
            estimates = [f"{row[f'{side}_estimate_us']:.1f}" for side in SIDES]
            times = [f"{row[side]['us']:.1f}" for side in SIDES]
            lines.append((row["operator"], *estimates, *times, f"{ratios[-1]:.3f}"))
    if ratios:
        lines.append(("mean", "", "", "", "", f"{statistics.geometric_mean(ratios):.3f}"))
        lines.append(("least", "", "", "", "", f"{min(ratios):.3f}"))
    return table(lines)


def main() -> None:
    """Measures what differs and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--only", type=lambda text: text.split(","), default=(), help="names of operators, with commas between")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit-s", type=float, default=3600, help="when to stop; with --results, the next run goes on")
    parser.add_argument("--results", type=Path, help="rows are appended here")
    given = parser.parse_args()
    profiles = {side: tl.load_profile(getattr(given, side)) for side in SIDES}
    asked = [o for o in operators_cases.read() if not given.only or o.id in given.only]
    if unknown := set(given.only) - {o.id for o in asked}:
        parser.error(f"no operator {', '.join(sorted(unknown))}")
    target, end, known = tl.target("cpu"), time.monotonic() + given.limit_s, read(given.results)
    rows: list[Row] = []
    for operator in asked:
        if time.monotonic() > end:
            print(f"{given.limit_s:.0f} s are over", flush=True)
            break
        found = {side: candidates(operator, profile)[0][0] for side, profile in profiles.items()}
        texts = {side: described(made.schedule) for side, made in found.items()}
        if texts["old"] == texts["new"]:
            continue
        row = known.get((operator.id, *texts.values()))
        if row is None:
            row = measured(operator, {side: made.schedule for side, made in found.items()}, target, given.rounds)
            if given.results is not None:
                record(given.results, [row], str(target.device))
        estimates = {f"{side}_estimate_us": made.estimate.seconds * 1e6 for side, made in found.items()}
        rows.append({**row, **estimates})
    print(report(rows))


if __name__ == "__main__":
    main()
