"""How well the model ranks schedules: those of `ranking_schedules.py` timed on the processor here, beside their estimates.

    python benchmarks/ranking.py [OPERATOR ...] [--rounds 9]   time, and append to results/ranking.jsonl
    python benchmarks/ranking.py --again [--show]              the model of today on the times that stand there

The schedules of an operator take turns, so that a slow spell of the machine meets all of them; a sample is as many launches as take
a millisecond. Printed for each operator: Kendall's tau of estimates and times over the pairs whose times differ by more than 3 %; the
time of the schedule that the model puts first, and of the best of the model's first eight, over the best of all; how far estimates are
off, as a factor.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/ranking.py` from anywhere

import tilelang as tl
from benchmarks.harness import launcher as launched
from benchmarks.harness import record, table
from benchmarks.ranking_schedules import OPERATORS
from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.models import estimate_schedule
from tilelang.errors import TileLangError
from tilelang.profiles.profile import Profile
from tilelang.semantics.reference import random_arrays

RESULTS = Path(__file__).parent / "results" / "ranking.jsonl"
ALIKE = 0.03  # times that differ by less say nothing
HEADING = ("operator", "schedules", "tau", "first", "first eight", "off by")


@dataclasses.dataclass(frozen=True)
class Ranking:
    """What the estimates of an operator's schedules are worth against their times."""

    tau: float
    first: float
    first_eight: float
    off_by: float


def rank(times: Sequence[float], estimates: Sequence[float]) -> Ranking:
    """Kendall's tau, quotients to the best time, and the spread of estimate over time as a factor.

    >>> rank([1.0, 2.0, 4.0], [3.0, 2.0, 8.0]).tau
    0.3333333333333333
    """
    score, pairs = 0, 0
    for i in range(len(times)):
        for j in range(i):
            if abs(math.log(times[i] / times[j])) > ALIKE:
                pairs += 1
                score += 1 if (times[i] - times[j]) * (estimates[i] - estimates[j]) > 0 else -1
    order = sorted(range(len(times)), key=lambda i: estimates[i])
    logs = [math.log(e / t) for e, t in zip(estimates, times, strict=True)]
    middle = statistics.median(logs)
    off_by = math.exp(statistics.fmean(abs(x - middle) for x in logs))
    return Ranking(score / max(1, pairs), times[order[0]] / min(times), min(times[i] for i in order[:8]) / min(times), off_by)


def schedule_of(operator: str, number: int) -> tl.Schedule:
    """A schedule of the table."""
    computation, texts = OPERATORS[operator]
    name = computation.split()[1].split("(")[0]
    schedule: tl.Schedule = tl.parse(f"{computation}\nschedule it for {name} {{ {texts[number]} }}\n").schedule("it")
    return schedule


def launcher(schedule: tl.Schedule) -> Callable[[], None]:
    """The compiled schedule over random inputs."""
    kernel = tl.compile(schedule, "cpu")
    arrays = random_arrays(kernel.computation, 0)
    results = {t.name: np.empty(t.shape, t.dtype.numpy) for t in kernel.computation.outputs}
    begin, finish = launched(kernel, {**arrays, **results}, results)

    def run() -> None:
        begin()
        finish()

    return run


def interleaved(calls: Sequence[Callable[[], None]], rounds: int) -> list[float]:
    """The median seconds of a call of each, all of them taking turns."""
    counts = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        counts.append(max(1, math.ceil(1e-3 / (time.perf_counter() - start))))
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, found in zip(calls, counts, samples, strict=True):
            call()
            start = time.perf_counter()
            for _ in range(count):
                call()
            found.append((time.perf_counter() - start) / count)
    return [statistics.median(found) for found in samples]


def measure(operator: str, rounds: int, profile: Profile) -> list[dict[str, object]]:
    """A row for each schedule of an operator that the device takes."""
    calls, rows = [], []
    for number, text in enumerate(OPERATORS[operator][1]):
        try:
            schedule = schedule_of(operator, number)
            calls.append(launcher(schedule))
        except TileLangError as error:
            print(f"{operator} {number}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        rows.append({"operator": operator, "number": number, "schedule": text})
    for row, seconds in zip(rows, interleaved(calls, rounds), strict=True):
        row["ms"] = round(seconds * 1e3, 5)
    return rows


def measured_times(path: Path) -> dict[str, dict[int, float]]:
    """The median seconds of every schedule over the sessions in a file of results, by operator and number."""
    found: dict[str, dict[int, list[float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts = OPERATORS.get(row["operator"], ("", []))[1]
        if row["number"] < len(texts) and texts[row["number"]].split() == row["schedule"].split():
            found.setdefault(row["operator"], {}).setdefault(row["number"], []).append(row["ms"] * 1e-3)
    return {operator: {n: statistics.median(t) for n, t in times.items()} for operator, times in found.items()}


def report(times: dict[str, dict[int, float]], profile: Profile, show: bool) -> str:
    """The table of operators, and with `show` a line for each schedule."""
    rows, rankings = [], []
    for operator, measured in times.items():
        estimates = {n: estimate_schedule(schedule_of(operator, n), profile) for n in measured}
        if show:
            print("\n".join(lines(operator, measured, estimates)))
        found = rank(list(measured.values()), [estimates[n].seconds for n in measured])
        rankings.append(found)
        rows.append((operator, str(len(measured)), *cells(found)))
    return table([HEADING, *rows, ("mean", "", *cells(mean(rankings)))])


def mean(rankings: Sequence[Ranking]) -> Ranking:
    """Tau's mean, the other numbers' geometric means."""
    factors = (statistics.geometric_mean(getattr(r, f) for r in rankings) for f in ("first", "first_eight", "off_by"))
    return Ranking(statistics.fmean(r.tau for r in rankings), *factors)


def cells(found: Ranking) -> tuple[str, ...]:
    return tuple(f"{v:.2f}" for v in dataclasses.astuple(found))


def lines(operator: str, measured: dict[int, float], estimates: dict[int, Estimate]) -> list[str]:
    """Every schedule of an operator, the fastest first: its time, its estimate and the estimate's parts, in microseconds."""
    found = []
    for number, seconds in sorted(measured.items(), key=lambda m: m[1]):
        made = estimates[number]
        parts = " ".join(f"{what} {s * 1e6:.0f}" for what, s in made.parts)
        found.append(f"{operator} {number:2}: {seconds * 1e6:8.0f} us, estimated {made.seconds * 1e6:8.0f} ({parts})")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help=f"of {', '.join(OPERATORS)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--again", action="store_true", help="estimate anew, time nothing")
    parser.add_argument("--show", action="store_true", help="every schedule with its estimate's parts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--profile", help="a shipped profile or a file (default: that of the device here)")
    arguments = parser.parse_args()
    chosen = arguments.operators or list(OPERATORS)
    if unknown := set(chosen) - set(OPERATORS):
        parser.error(f"no operator {', '.join(sorted(unknown))}")
    target = tl.target("cpu")
    profile = tl.load_profile(arguments.profile) if arguments.profile else target.profile
    if not arguments.again:
        for operator in chosen:
            record(arguments.results, measure(operator, arguments.rounds, profile), str(target.device))
    times = {o: t for o, t in measured_times(arguments.results).items() if o in chosen}
    print(report(times, profile, arguments.show))


if __name__ == "__main__":
    main()
