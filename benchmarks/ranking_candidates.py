"""How well the model ranks its own candidates: the first of them timed, operator by operator of `benchmarks/operators.py`.

    python benchmarks/ranking_candidates.py [OPERATOR ...] [--first 16] [--limit-s 35]   time what is not timed yet
    python benchmarks/ranking_candidates.py --again [--show]                             the model of today on all times

A schedule is timed once and for all: lines of the results say operator, schedule and microseconds of calls in a row. What is printed
by `--again` holds for all schedules of an operator that were timed, whoever constructed them; its means are of the operators that the
profile's rates were fitted to, and of those that they were not.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/ranking_candidates.py` from anywhere

import tilelang as tl
from benchmarks import operators_cases
from benchmarks.harness import record, table
from benchmarks.operators_cases import Operator
from benchmarks.operators_ours import Call, candidates, launched
from benchmarks.operators_peers import random_arrays
from benchmarks.ranking import Ranking, cells, mean, rank
from tilelang.autoschedule.models import estimate_schedule
from tilelang.errors import TileLangError

RESULTS = Path(__file__).parent / "results" / "ranking_candidates.jsonl"
SAMPLE_S, SAMPLES = 4e-3, 5
FITTED = (
    "M1", "M2", "M4", "M5", "M6", "C3", "C5", "C7", "C10", "C13", "C14", "C16", "C17", "C20", "C24", "C30", "C32", "C35", "C37", "C40",
    "D4", "D14", "E1", "P1", "P4", "P5", "P6", "P7", "P9", "P12", "R2", "R3",
)  # fmt: skip
HEADING = ("operator", "timed", "tau", "first", "first eight", "off by")
Times = dict[str, dict[str, float]]  # of an operator, by the text of a schedule, in microseconds


def text_of(schedule: tl.Schedule) -> str:
    """A schedule in a line."""
    return "; ".join(map(str, schedule.steps))


def schedule_of(operator: Operator, text: str) -> tl.Schedule:
    """The schedule that a line stands for."""
    computation = operator.computation()
    name = list(operator.shapes)[-1]
    found: tl.Schedule = tl.parse(f"{tl.schedule(computation).computation.text}\nschedule it for {name} {{ {text} }}\n").schedule(
        "it"
    )
    return found


def microseconds(call: Call) -> float:
    """The median time of a call among calls in a row."""
    for _ in range(2):
        start = time.perf_counter()
        call.begin()
        call.finish()
        once = time.perf_counter() - start
    count = max(1, math.ceil(SAMPLE_S / once))
    samples = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        for _ in range(count):
            call.begin()
        call.finish()
        samples.append((time.perf_counter() - start) / count)
    return statistics.median(samples) * 1e6


def timed(operator: Operator, texts: Iterable[str], end: float) -> list[dict[str, Any]]:
    """Rows of the schedules that are timed before the clock says `end`; what the device does not take has no time."""
    arrays, name, target = random_arrays(operator), list(operator.shapes)[-1], tl.target("cpu")
    out, rows = np.empty(operator.shapes[name], np.float32), []
    for text in texts:
        if time.monotonic() > end:
            break
        try:
            call = launched(tl.compile(schedule_of(operator, text), target), arrays, name, out)
            us = round(microseconds(call), 2)
        except TileLangError as error:
            us = None
            print(f"{operator.id} {text}: {str(error).splitlines()[0]}", file=sys.stderr)
        rows.append({"operator": operator.id, "schedule": text, "us": us})
    return rows


def read(path: Path) -> Times:
    """The times in a file of results; what has none stands there as infinite."""
    found: Times = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(line)
        found.setdefault(row["operator"], {})[row["schedule"]] = row["us"] if row["us"] is not None else math.inf
    return found


def report(operators: Iterable[Operator], times: Times, profile: tl.Profile, show: bool) -> str:
    """A line for each operator, then the means of those that rates were fitted to, and of the others."""
    rows: list[tuple[str, ...]] = [HEADING]
    found: dict[str, Ranking] = {}
    for operator in operators:
        known = {text: us for text, us in times.get(operator.id, {}).items() if math.isfinite(us)}
        if len(known) < 2:
            continue
        estimates = {text: estimate_schedule(schedule_of(operator, text), profile) for text in known}
        found[operator.id] = rank(list(known.values()), [e.seconds for e in estimates.values()])
        rows.append((operator.id, str(len(known)), *cells(found[operator.id])))
        for text, us in sorted(known.items(), key=lambda k: k[1]) if show else ():
            parts = ", ".join(f"{what} {s * 1e6:.0f}" for what, s in estimates[text].parts if s * 1e6 >= 1)
            print(f"{operator.id} {us:8.0f} us, estimated {estimates[text].seconds * 1e6:8.0f} ({parts})\n    {text}")
    for name, which in (("fitted", [i in FITTED for i in found]), ("others", [i not in FITTED for i in found])):
        chosen = [ranking for ranking, kept in zip(found.values(), which, strict=True) if kept]
        if chosen:
            rows.append((name, str(len(chosen)), *cells(mean(chosen))))
    return table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    parser.add_argument("--first", type=int, default=16)
    parser.add_argument("--limit-s", type=float, default=35)
    parser.add_argument("--again", action="store_true", help="time nothing")
    parser.add_argument("--show", action="store_true", help="every schedule with its estimate's parts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    target = tl.target("cpu")
    chosen = [o for o in operators_cases.read() if not o.duplicate_of and (not given.operators or o.id in given.operators)]
    end = time.monotonic() + given.limit_s
    for operator in () if given.again else chosen:
        known = read(given.results).get(operator.id, {})
        texts = [text_of(c.schedule) for c in candidates(operator, target.profile)[0][: given.first]]
        rows = timed(operator, [t for t in texts if t not in known], end)
        record(given.results, rows, str(target.device))
        print(operator.id, len(rows), "timed", flush=True)
        if time.monotonic() > end:
            break
    if given.again:
        print(report(chosen, read(given.results), target.profile, given.show))


if __name__ == "__main__":
    main()
