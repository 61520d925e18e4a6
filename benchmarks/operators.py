"""The 119 operators on a processor: constructed schedules, nothing tried, beside NumPy, PyTorch, Numba and hand-written schedules.

`python benchmarks/operators.py` measures what `--results` does not hold yet, operator by operator, then prints the table; `--what
trials` lets `tl.compile` time eight candidates, `--what ranking` times the sixteen that the model puts first; `--selection` measures a
few operators of each class (`make bench`), `--table` nothing. Contestants take turns with a pause at every change of sides; results are
checked before. Times are of calls by themselves and of calls in a row: a launch that wakes PoCL's threads costs 50 us, which the first
show and the second do not. A worker measures; where a kernel takes it down another one goes on.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/operators.py` from anywhere

import tilelang as tl
from benchmarks import harness, operators_cases, operators_peers, operators_table
from benchmarks.gpu_cases import ROOT
from benchmarks.operators_cases import Operator
from benchmarks.operators_hand import by_hand
from benchmarks.operators_ours import Call, candidates, compare, launched, limits
from benchmarks.operators_peers import Array, Arrays

RESULTS = ROOT / "benchmarks" / "results" / "operators.jsonl"
WHAT = ("times", "trials", "ranking")
SELECTED = ("M0", "M1", "M4", "C0", "C5", "C9", "C16", "C17", "C23", "C30", "C35", "D0", "D5", "D6", "P0", "P2", "P6", "R0", "R2",
            "R3", "E1", "E5")  # fmt: skip
BEST_OF = 16
TRIALS = 8
MOST_BEGUN = 2
Row = dict[str, Any]
Contestants = dict[str, tuple[Call, Callable[[], Any]]]  # each with what gives its result


def times(operator: Operator, target: tl.Target, rounds: int, earlier: Row | None = None, trials: int = 0) -> Row:
    """All contestants on one operator: microseconds of a call alone and in a row, what was wrong, and our schedule.

    earlier: a row of before, the best of whose peers are measured again and the others' times kept. trials: how many candidates
    `compile` may time, and then takes the best of.
    """
    arrays, name = operators_peers.random_arrays(operator), list(operator.shapes)[-1]
    out = np.full(operator.shapes[name], np.nan, np.float32)
    start = time.perf_counter()
    kernel = tl.compile(operator.computation(), target, trials=trials)
    ours = launched(kernel, arrays, name, out)
    ours.begin()
    ours.finish()
    kernel_s = time.perf_counter() - start
    found, pruning, schedule_s = candidates(operator, target.profile)
    contestants = {"ours": (ours, lambda: out), **hand_written(operator, target, arrays)}
    for who, (side, call) in operators_peers.peers(operator, arrays, os.cpu_count() or 1).items():
        if earlier is None or who in {operators_table.best_peer(earlier, how)[0] for how in ("alone_us", "row_us")}:
            contestants[who] = Call(who, side, call), call
    wrong, failed = check(operator, arrays, contestants)
    alone_and_in_a_row = compare([c for who, (c, _) in contestants.items() if who not in {*wrong, *failed}], rounds)
    alone = {who: round(a * 1e6, 2) for who, (a, _) in alone_and_in_a_row.items()}
    in_a_row = {who: round(b * 1e6, 2) for who, (_, b) in alone_and_in_a_row.items()}
    return {
        "alone_us": {**kept(earlier, "alone_us"), **alone},
        "row_us": {**kept(earlier, "row_us"), **in_a_row},
        "others_measured_at": since(earlier),
        "wrong": wrong,
        "failed": failed,
        "absent": operators_peers.absent(),
        "schedule": described(kernel.schedule),
        "estimate_us": round(kernel.estimate.seconds * 1e6, 2),
        "bound_us": round(kernel.estimate.bound * 1e6, 2),
        "parts_us": {what: round(s * 1e6, 2) for what, s in kernel.estimate.parts},
        "candidates": len(found),
        "generated": pruning.generated,
        "pruned": dict(pruning.dropped),
        "schedule_ms": round(schedule_s * 1e3, 2),
        "kernel_ms": round(kernel_s * 1e3, 2),
    }


def kept(earlier: Row | None, how: str) -> dict[str, float]:
    """The times of before that are not ours."""
    return {who: us for who, us in earlier[how].items() if who not in operators_table.OURS} if earlier is not None else {}


def since(earlier: Row | None) -> str:
    """The commit at which the peers that are not measured again were measured."""
    return "" if earlier is None else earlier.get("others_measured_at") or earlier.get("revision", "unknown")


def described(schedule: tl.Schedule) -> str:
    return "; ".join(map(str, schedule.steps))


def hand_written(operator: Operator, target: tl.Target, arrays: Arrays) -> Contestants:
    """The schedule written by hand, where there is one that the device takes."""
    schedule, name = by_hand(operator), list(operator.shapes)[-1]
    if schedule is None:
        return {}
    out = np.full(operator.shapes[name], np.nan, np.float32)
    try:
        return {"hand": (launched(tl.compile(schedule, target), arrays, name, out, "hand"), lambda: out)}
    except tl.Refusal:
        return {}


def check(operator: Operator, arrays: Arrays, contestants: Contestants) -> tuple[dict[str, str], dict[str, str]]:
    """Runs each contestant: whose result is wrong, and who cannot."""
    expected, bound = operators_peers.expected_and_bound(operator, arrays)
    wrong, failed = {}, {}
    for who, (call, result) in contestants.items():
        try:
            call.begin()
            call.finish()
            found = operators_peers.wrong(np.asarray(result()), expected, bound)
        except Exception as error:  # a peer may raise anything; the others are measured
            failed[who] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        if found:
            wrong[who] = found
    return wrong, failed


def ranking(operator: Operator, target: tl.Target, rounds: int, earlier: Row | None = None) -> Row:
    """The first sixteen schedules by the model, each with its estimated and measured microseconds of calls in a row."""
    arrays, name = operators_peers.random_arrays(operator), list(operator.shapes)[-1]
    expected, bound = operators_peers.expected_and_bound(operator, arrays)
    found, _, _ = candidates(operator, target.profile)
    calls, schedules, wrong, failed = [], [], {}, {}
    for number, candidate in enumerate(found[:BEST_OF]):
        out: Array = np.full(operator.shapes[name], np.nan, np.float32)
        schedules.append([round(candidate.estimate.seconds * 1e6, 2), described(candidate.schedule)])
        try:
            call = launched(tl.compile(candidate.schedule, target), arrays, name, out, str(number))
        except tl.TileLangError as error:
            failed[str(number)] = str(error).splitlines()[0]
            continue
        call.begin()
        call.finish()
        if (why := operators_peers.wrong(out, expected, bound)) != "":
            wrong[str(number)] = why
            continue
        calls.append(call)
    measured = compare(calls, rounds)
    return {
        "ranked_us": {who: round(b * 1e6, 2) for who, (_, b) in measured.items()},
        "ranked": schedules,
        "wrong": wrong,
        "failed": failed,
        "candidates": len(found),
    }


MEASURED: dict[str, Callable[[Operator, tl.Target, int, Row | None], Row]] = {
    "times": times,
    "trials": functools.partial(times, trials=TRIALS),
    "ranking": ranking,
}


# ---------------------------------------------------------------- runs that go on


def read(path: Path) -> dict[tuple[str, str], Row]:
    """The last line of each operator and measurement."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {(row["what"], row["operator"]): row for row in rows}


def asked(operators: Sequence[Operator], given: argparse.Namespace) -> list[Operator]:
    """The operators to measure: no duplicates."""
    names = given.only.split(",") if given.only else SELECTED if given.selection else None
    return [o for o in operators if not o.duplicate_of and (names is None or o.id in names)]


def left(operators: Sequence[Operator], given: argparse.Namespace) -> list[Operator]:
    """Those without a result; that an operator was begun twice and never ended is one."""
    known = read(given.results)
    return [
        o for o in asked(operators, given) if known.get((given.what, o.id), {"begun": 0}).get("begun", MOST_BEGUN) < MOST_BEGUN
    ]


def work(given: argparse.Namespace, operators: Sequence[Operator]) -> int:
    """A worker: measures until the time is over; an exit code."""
    end = time.monotonic() + given.limit_s
    target = tl.target("opencl")
    rows = read(given.beside) if given.beside is not None else {}
    earlier = {name: row for (what, name), row in rows.items() if what == "times" and operators_table.complete(row)}
    todo, longest = left(operators, given), 0.0
    if not todo:
        return 0
    warm_up(target)
    machine, made_by = limits(target), {"revision": revision()}
    for number, operator in enumerate(todo):
        start = time.monotonic()
        if start + longest > end:
            print(f"{given.limit_s:.0f} s are over: {len(todo) - number} operators are left", flush=True)
            break
        begun = read(given.results).get((given.what, operator.id), {}).get("begun", 0)
        head: Row = {"what": given.what, "operator": operator.id, "class": operator.group, "extents": operator.extents, **made_by}
        keep(given.results, {**head, "begun": begun + 1}, target)
        row = MEASURED[given.what](operator, target, given.rounds, earlier.get(operator.id))
        keep(given.results, {**head, "flops": operator.flops, "bytes": operator.bytes, **machine, **row}, target)
        longest = max(longest, time.monotonic() - start)
        print(f"[{number + 1}/{len(todo)}] {operators_table.line({**head, **machine, **row})}", flush=True)
    return 0


def keep(path: Path, row: Row, target: tl.Target) -> None:
    harness.record(path, [row], str(target.device))


def revision() -> str:
    """The commit that is measured, where this is a checkout: schedules change with it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def warm_up(target: tl.Target) -> None:
    """What the first kernel of a process pays: imports, the device's connection, threads."""
    i = tl.axes(i=64)
    y = tl.define("Y", tl.input("X", tl.float32, i)[i] + 1, i)
    tl.compile(y, target)(np.zeros(64, np.float32))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the table; 1 where a result is wrong or a kernel failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--what", choices=WHAT, default="times")
    parser.add_argument("--only", default="", help="names of operators, with commas between")
    parser.add_argument("--selection", action="store_true", help="a few operators of each class")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit-s", type=float, default=3600, help="when to stop; the next run goes on")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--beside", type=Path, help="results of before: only the best peer there is measured again")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the table of what is there")
    parser.add_argument("--plot", type=Path, help="a picture of the ratios, by matplotlib")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    operators = operators_cases.read()
    if given.worker:
        return work(given, operators)
    if not given.table:
        code = supervise(list(arguments if arguments is not None else sys.argv[1:]), given)
        if code:
            return code
    known = read(given.results)
    rows = [row for (_, name), row in known.items() if name in {o.id for o in asked(operators, given)}]
    print(operators_table.show(rows))
    if given.plot is not None:
        operators_table.plot(rows, given.plot)
    return 1 if any(row.get("wrong", {}).get("ours") or row.get("begun", 0) >= MOST_BEGUN for row in rows) else 0


def supervise(arguments: list[str], given: argparse.Namespace) -> int:
    """Starts workers until one ends by itself.

    Each has compiled kernels of its own and no remembered schedules, so that compiling is measured, too.
    """
    end = time.monotonic() + given.limit_s
    while True:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "POCL_CACHE_DIR": folder, "TILELANG_CACHE_DIR": folder, "TILELANG_DATABASE": ""}
            rest = max(0.0, end - time.monotonic())
            command = [sys.executable, __file__, *arguments, "--worker", "--limit-s", f"{rest:.0f}"]
            code = subprocess.call(command, env=environment)
        if code >= 0:
            return code
        print(f"The worker was ended by signal {-code}; another one goes on.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
