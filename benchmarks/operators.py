"""The 119 operators on a processor: constructed schedules, nothing tried, beside NumPy, PyTorch, Numba and hand-written schedules.

`python benchmarks/operators.py` measures what `--results` does not hold yet, operator by operator, then prints the table; `--what
trials` lets `tl.compile` time eight candidates, `ranking` times the sixteen that the model puts first, `sweep` all that construction
looked at for six operators, `squares` products that libraries are best at; `--selection` measures a few operators of each class (`make
bench`), `--table` and `--targets` nothing. Contestants take turns with a pause at every change of sides, and are warmed up after it;
results are checked before. Times are of calls by themselves and of calls in a row. Ours are launches over buffers that were made
before; `called` is the whole call that a user writes, with NumPy's arrays. A worker measures; where a kernel takes it down another one
goes on.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/operators.py` from anywhere

import tilelang as tl
from benchmarks import operators_cases, operators_peers, operators_plot, operators_results, operators_table, operators_targets
from benchmarks.gpu_cases import ROOT
from benchmarks.machine import for_best_products, machine, openblas, revision
from benchmarks.operators_cases import Operator
from benchmarks.operators_hand import by_hand
from benchmarks.operators_ours import Call, called, candidates, compare, estimated, launched, limits
from benchmarks.operators_peers import Array, Arrays
from benchmarks.operators_results import Row
from tilelang.autoschedule.common.construct import Candidate
from tilelang.autoschedule.cpu.constants import CPU

RESULTS = ROOT / "benchmarks" / "results" / "operators.jsonl"
SELECTED = ("M0", "M1", "M4", "C0", "C5", "C9", "C16", "C17", "C23", "C30", "C35", "D0", "D5", "D6", "P0", "P2", "P6", "R0", "R2",
            "R3", "E1", "E5")  # fmt: skip
SWEEP = ("M2", "C34", "D5", "P6", "R3", "E17")
BEST_OF, FIRST, SWEPT = 16, 8, CPU.visits
TRIALS = 8
MOST_BEGUN = 2
GRACE_S = 300  # that a worker may take longer than it was told, for an operator that it began
INTERRUPTED, NO_DEVICE, NOT_KEPT = 130, 3, 4  # exit codes
Contestants = dict[str, tuple[Call, Callable[[], Any]]]  # each with what gives its result


def times(
    operator: Operator, target: tl.Target, rounds: int, earlier: Row | None = None, only: Sequence[str] = (), trials: int = 0
) -> Row:
    """All contestants on one operator: microseconds of a call alone and in a row, what was wrong, and our schedule.

    earlier: a row of before, the best of whose peers are measured again and the others' times kept. only: the peers to measure, in
    their place. trials: how many candidates `compile` may time, and then takes the best of.
    """
    arrays, name = operators_peers.random_arrays(operator), list(operator.shapes)[-1]
    out, by_call = (np.full(operator.shapes[name], np.nan, np.float32) for _ in range(2))
    start = time.perf_counter()
    kernel = tl.compile(operator.computation(), target, trials=trials)
    ours = launched(kernel, arrays, name, out)
    ours.begin()
    ours.finish()
    kernel_s = time.perf_counter() - start
    found, pruning, schedule_s = candidates(operator, target.profile)
    contestants = {"ours": (ours, lambda: out), "called": (called(kernel, arrays, by_call), lambda: by_call)}
    contestants |= hand_written(operator, target, arrays)
    found_peers = operators_peers.peers(operator, arrays, threads(target))
    best = (
        {operators_table.best_peer(earlier, how)[0] for how in ("alone_us", "row_us")}
        if earlier is not None
        else set(found_peers)
    )
    for who, (side, call) in found_peers.items():
        if who in (only or best):
            contestants[who] = Call(who, side, call), call
    wrong, failed = check(operator, arrays, contestants)
    alone_and_in_a_row = compare([c for who, (c, _) in contestants.items() if who not in {*wrong, *failed}], rounds)
    alone = {who: round(a * 1e6, 2) for who, (a, _) in alone_and_in_a_row.items()}
    in_a_row = {who: round(b * 1e6, 2) for who, (_, b) in alone_and_in_a_row.items()}
    return {
        "alone_us": {**kept(earlier, "alone_us"), **alone},
        "row_us": {**kept(earlier, "row_us"), **in_a_row},
        "others_measured_at": since(earlier),
        "peer_versions": versions(earlier, alone),
        "wrong": wrong,
        "failed": failed,
        "absent": {who: why for who, why in operators_peers.absent(operator).items() if who not in kept(earlier, "row_us")},
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


def threads(target: tl.Target) -> int:
    """How many every contestant may use: as many as ours."""
    return target.device.compute_units if target.device is not None else 1


def kept(earlier: Row | None, how: str) -> dict[str, float]:
    """The times of before that are not ours."""
    return {who: us for who, us in earlier[how].items() if who not in operators_table.OURS} if earlier is not None else {}


def since(earlier: Row | None) -> str:
    """The commit at which the peers that are not measured again were measured."""
    return "" if earlier is None else earlier.get("others_measured_at") or earlier.get("revision", "unknown")


def versions(earlier: Row | None, measured: Collection[str]) -> dict[str, str]:
    """The version of each peer, of those that are not measured again that of before; who has none there is of an unknown one."""
    before = {} if earlier is None else earlier.get("peer_versions", {})
    return {who: version for who, version in before.items() if who not in measured} | {
        who: version for who, version in operators_peers.versions().items() if who in measured
    }


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


def ranking(operator: Operator, target: tl.Target, rounds: int, *_given: Any) -> Row:
    """The first sixteen schedules by the model, each with its estimated and measured microseconds of calls in a row."""
    found, _, _ = candidates(operator, target.profile)
    return {**in_order(operator, target, rounds, found[:BEST_OF]), "candidates": len(found)}


def sweep(operator: Operator, target: tl.Target, rounds: int, *_given: Any) -> Row:
    """The same of all that construction looked at: the first eight, and as many of the rest as are swept, at equal distances."""
    found = estimated(operator, target.profile)
    first, rest = found[:FIRST], found[FIRST:]
    many = min(SWEPT - FIRST, len(rest))
    spread = [rest[i * len(rest) // many] for i in range(many)]
    return {**in_order(operator, target, rounds, [*first, *spread]), "candidates": len(found)}


def in_order(operator: Operator, target: tl.Target, rounds: int, found: Sequence[Candidate]) -> Row:
    """Candidates in the order of the model, each with its estimated and measured microseconds of calls in a row.

    All write the same array: where it lies can take a tenth more or less time.
    """
    arrays, name = operators_peers.random_arrays(operator), list(operator.shapes)[-1]
    expected, bound = operators_peers.expected_and_bound(operator, arrays)
    out: Array = np.empty(operator.shapes[name], np.float32)
    calls, schedules, wrong, failed = [], [], {}, {}
    for number, candidate in enumerate(found):
        out.fill(np.nan)
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
    }


MEASURED: dict[str, Callable[[Operator, tl.Target, int, Row | None, Sequence[str]], Row]] = {
    "times": times,
    "trials": functools.partial(times, trials=TRIALS),
    "ranking": ranking,
    "sweep": sweep,
    "squares": times,
}


# ---------------------------------------------------------------- runs that go on


def asked(given: argparse.Namespace) -> list[Operator]:
    """The operators to measure, no duplicates. ValueError: a name that none has."""
    known = operators_cases.SQUARES if given.what == "squares" else operators_cases.read()
    if not given.only:
        whole = given.what == "squares" or not given.selection
        chosen = SWEEP if given.what == "sweep" else [o.id for o in known] if whole else SELECTED
        return [o for o in known if not o.duplicate_of and o.id in chosen]
    found = {o.id: o for o in known}
    for name in (names := given.only.split(",")):
        if name not in found:
            near = difflib.get_close_matches(name.upper(), found, 3, 0.5) or list(found)[:3]
            raise ValueError(f"--only: `{name}` is not an operator of the set; like it are {', '.join(near)}")
        if same := found[name].duplicate_of:
            raise ValueError(f"--only: {name} is {same} once more: measure that one")
    return [found[name] for name in dict.fromkeys(names)]


def left(given: argparse.Namespace, device: str) -> list[Operator]:
    """Those without a result on a device; that an operator was begun twice and never ended is one."""
    known, _ = operators_results.read(given.results, device)
    if given.this_commit:
        known = {name: row for name, row in known.items() if row.get("revision") == revision()}
    return [o for o in asked(given) if known.get((given.what, o.id), {"begun": 0}).get("begun", MOST_BEGUN) < MOST_BEGUN]


def work(given: argparse.Namespace) -> int:
    """A worker: measures until the time is over; an exit code."""
    end, longest = time.monotonic() + given.limit_s, 0.0
    try:
        target = tl.target("cpu")
    except tl.TileLangError as error:
        print(f"There is nothing to measure on: {str(error).splitlines()[0]}", flush=True)
        return NO_DEVICE
    todo = left(given, str(target.device))
    if not todo:
        return 0
    rows, _ = operators_results.read(given.beside) if given.beside is not None else ({}, [])
    earlier = {name: row for (what, name), row in rows.items() if what in ("times", "squares") and operators_table.complete(row)}
    warm_up(target)
    about = machine()
    print(f"{about}\nNumPy: {openblas()}", flush=True)
    here = {
        **limits(target),
        "revision": about.commit,
        "processor": about.model,
        "vectors": about.vectors,
        "openblas": openblas(),
    }
    for number, operator in enumerate(todo):
        start = time.monotonic()
        if start + longest > end:
            print(f"{given.limit_s:.0f} s are over: {len(todo) - number} operators are left", flush=True)
            break
        try:
            row = measured(given, operator, target, earlier.get(operator.id), here)
        except KeyboardInterrupt:
            return INTERRUPTED
        except OSError as error:
            print(f"{given.results}: the row above could not be written: {error.strerror}", flush=True)
            return NOT_KEPT
        longest = max(longest, time.monotonic() - start)
        print(f"[{number + 1}/{len(todo)}] {operators_table.line(row)}", flush=True)
    return 0


def measured(given: argparse.Namespace, operator: Operator, target: tl.Target, earlier: Row | None, here: Row) -> Row:
    """One operator's row, kept; while it is measured the file says that it was begun."""
    head: Row = {"what": given.what, "operator": operator.id, "class": operator.group, "extents": operator.extents}
    head |= {**here, "flops": operator.flops, "bytes": operator.bytes}
    begun, device = operators_results.begun(given.results, given.what, operator.id), str(target.device)
    operators_results.keep(given.results, {**head, "begun": begun + 1}, device)
    try:
        row = {**head, **MEASURED[given.what](operator, target, given.rounds, earlier, given.peers)}
    except KeyboardInterrupt:
        operators_results.keep(given.results, {**head, "begun": begun}, device)  # it was not the operator that ended the worker
        raise
    except Exception as error:  # whatever is the matter with one operator, the others are measured
        row = {**head, "failed": {"ours": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}}
    operators_results.keep(given.results, row, device)
    return row


def warm_up(target: tl.Target) -> None:
    """What the first kernel of a process pays: imports, the device's connection, threads."""
    i = tl.axes(i=64)
    y = tl.define("Y", tl.input("X", tl.float32, i)[i] + 1, i)
    tl.compile(y, target)(np.zeros(64, np.float32))


def arguments_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line, read. SystemExit: it makes no sense."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--what", choices=MEASURED, default="times")
    parser.add_argument("--only", default="", help="names of operators, with commas between")
    parser.add_argument("--selection", action="store_true", help="a few operators of each class (the squares are few: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit-s", type=float, default=3600, help="when to stop; the next run goes on")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--this-commit", action="store_true", help="results at other commits are kept and do not count")
    parser.add_argument("--beside", type=Path, help="results of before: only the best peer there is measured again")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=(), help="measure these of the peers alone")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the table of what is there")
    parser.add_argument(
        "--targets", action="store_true", help="measure nothing, print what was promised beside what was measured"
    )
    parser.add_argument("--plot", type=Path, help="a picture of the ratios, by matplotlib")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.rounds < 1:
        parser.error("--rounds: at least 1")
    if given.beside is not None and not given.beside.exists():
        parser.error(f"--beside: {given.beside} does not exist")
    if given.results.is_dir():
        parser.error(f"--results: {given.results} is a folder")
    for who in given.peers:
        if who not in operators_peers.NAMES:
            parser.error(f"--peers: `{who}` is none of {', '.join(operators_peers.NAMES)}")
        if why := operators_peers.absent().get(who):
            parser.error(f"--peers: {who}: {why}")
    try:
        asked(given)
    except ValueError as error:
        parser.error(str(error))
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the table. 1: a result is wrong or a kernel failed; 3: no device; 4: a full disk; 130: interrupted."""
    arguments = list(arguments if arguments is not None else sys.argv[1:])
    given = arguments_of(arguments)
    if given.worker:
        return work(given)
    if not (given.table or given.targets):
        code = supervise(arguments, given)
        if code:
            return code
    known, damaged = operators_results.read(given.results)
    order = {o.id: number for number, o in enumerate((*asked(given), *operators_cases.SQUARES))}
    rows = sorted((row for (_, name), row in known.items() if name in order), key=lambda row: order[row["operator"]])
    print(operators_targets.show(rows) if given.targets else operators_table.show(rows))
    if damaged:
        print(f"{given.results}: passed over, as no results: lines {', '.join(map(str, damaged))}")
    if given.plot is not None:
        operators_plot.plot(rows, given.plot)
    faults = [{**row.get("wrong", {}), **row.get("failed", {})}.keys() & {"ours", "called"} for row in rows]
    bad = any(faults) or any(row.get("begun", 0) >= MOST_BEGUN for row in rows)
    return 1 if bad else 0


def supervise(arguments: list[str], given: argparse.Namespace) -> int:
    """Starts workers until one ends by itself.

    Each has compiled kernels of its own and no remembered schedules, so that compiling is measured, too.
    """
    end = time.monotonic() + given.limit_s
    while True:
        before = given.results.stat().st_size if given.results.exists() else 0
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TILELANG_CACHE_DIR": folder, "TILELANG_DATABASE": ""}
            rest = max(0.0, end - time.monotonic())
            command = [sys.executable, __file__, *arguments, "--worker", "--limit-s", f"{rest:.0f}"]
            code = ended(subprocess.Popen(command, env=environment), rest + GRACE_S)
        if code == INTERRUPTED:
            print(f"\nInterrupted. What was measured stands in {given.results}; the same command goes on.", flush=True)
        if code >= 0:
            return code
        if not given.results.exists() or given.results.stat().st_size == before:
            print(f"The worker was ended by signal {-code} before it began to measure.", flush=True)
            return 1
        print(f"The worker was ended by signal {-code}; another one goes on.", flush=True)


def ended(worker: subprocess.Popen[bytes], limit_s: float) -> int:
    """The exit code of a worker. One that hangs is killed; one that is interrupted may still write what it has."""
    try:
        return worker.wait(limit_s)
    except subprocess.TimeoutExpired:
        worker.kill()
        return worker.wait()
    except KeyboardInterrupt:
        try:
            worker.wait(GRACE_S / 10)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            worker.kill()
        return INTERRUPTED


if __name__ == "__main__":
    for_best_products(sys.argv)
    sys.exit(main())
