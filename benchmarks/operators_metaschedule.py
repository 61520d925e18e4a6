"""Ten of the operators of `benchmarks/operators.py` tuned by TVM's MetaSchedule, beside the constructed schedules that nothing tuned.

    python benchmarks/operators_metaschedule.py tune FOLDER      tries schedules; its records stay there, and a later run goes on
    python benchmarks/operators_metaschedule.py measure FOLDER   times the best of the records beside ours, in turns

Tuning takes minutes, its times need not be right: the best few by them are measured again. It needs xgboost, cloudpickle, psutil and
tornado besides; apache-tvm 0.27.0.post1 with apache-tvm-ffi 0.1.15.post2 crashes where a task is made, with 0.1.14.post0 it does not.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/operators_metaschedule.py` from anywhere

import tilelang as tl
from benchmarks import harness, operators_cases, operators_peers, operators_tvm
from benchmarks.machine import revision
from benchmarks.operators import warm_up
from benchmarks.operators_cases import Operator
from benchmarks.operators_ours import Call, compare, launched
from benchmarks.operators_results import Row

RESULTS = Path(__file__).parent / "results" / "operators_metaschedule.jsonl"
TUNED = ("M2", "C5", "D5", "P2", "R0", "C0", "C23", "D0", "P6", "M1")
TRIALS = 16
AGAIN = 4  # of the records, that are measured once more
PER_BATCH = 16  # schedules that are built before any is timed


def tune(operator: Operator, folder: Path, trials: int, threads: int) -> None:
    """Tries schedules of an operator until so many records of it are kept in the folder."""
    from tvm.s_tir import meta_schedule

    folder.mkdir(parents=True, exist_ok=True)
    missing = trials - len(records(folder))
    if missing > 0:
        function = operators_tvm.function(operator).with_attr("global_symbol", "main")
        meta_schedule.tune_tir(
            function, operators_tvm.target(threads), str(folder), missing, num_trials_per_iter=PER_BATCH,
            builder=meta_schedule.builder.LocalBuilder(max_workers=1), num_tuning_cores=threads, seed=0,
        )  # fmt: skip


def records(folder: Path) -> list[Any]:
    """What was tried and ran, the fastest first."""
    from tvm.s_tir import meta_schedule

    files = [folder / f"database_{part}.json" for part in ("workload", "tuning_record")]
    if not all(file.exists() for file in files):
        return []
    found = meta_schedule.database.JSONDatabase(*map(str, files)).get_all_tuning_records()
    return sorted((r for r in found if r.run_secs), key=fastest)


def fastest(record: Any) -> float:
    """The shortest of a record's times in seconds."""
    return min(float(s) for s in record.run_secs)


def library(record: Any, threads: int) -> Any:
    """A record's schedule, compiled."""
    import tvm
    from tvm import s_tir

    schedule = s_tir.Schedule(record.workload.mod)
    record.trace.apply_to_schedule(schedule, remove_postproc=False)
    return tvm.compile(schedule.mod, operators_tvm.target(threads))


def measure(operator: Operator, folder: Path, target: tl.Target, rounds: int, threads: int) -> Row:
    """Microseconds of the best records and of ours, alone and in a row; results are checked before."""
    arrays, name = operators_peers.random_arrays(operator), list(operator.shapes)[-1]
    expected, bound = operators_peers.expected_and_bound(operator, arrays)
    out = np.full(operator.shapes[name], np.nan, np.float32)
    kernel = tl.compile(operator.computation(), target)
    calls, results = [launched(kernel, arrays, name, out)], {"ours": lambda: out}
    found = records(folder)
    for number, record in enumerate(found[:AGAIN]):
        call = operators_tvm.called(operator, arrays, library(record, threads))
        calls.append(Call(f"MetaSchedule {number}", "TVM", call))
        results[f"MetaSchedule {number}"] = call
    wrong = {}
    for one in calls:
        one.begin()
        one.finish()
        if why := operators_peers.wrong(np.asarray(results[one.name]()), expected, bound):
            wrong[one.name] = why
    times = compare([c for c in calls if c.name not in wrong], rounds)
    return {
        "what": "MetaSchedule", "operator": operator.id, "class": operator.group, "extents": operator.extents, "wrong": wrong,
        "trials": len(found), "alone_us": {who: round(a * 1e6, 2) for who, (a, _) in times.items()},
        "row_us": {who: round(b * 1e6, 2) for who, (_, b) in times.items()}, "revision": revision(),
        "schedule": "; ".join(map(str, kernel.schedule.steps)),
    }  # fmt: skip


def show(rows: Sequence[Row]) -> str:
    """A line an operator: ours and the best of what was tuned."""
    lines = [("operator", "trials", "ours us", "tuned us", "x tuned", "alone")]
    for row in rows:
        best = {how: min(us for who, us in row[how].items() if who != "ours") for how in ("row_us", "alone_us")}
        ratios = [f"{best[how] / row[how]['ours']:.2f}" for how in ("row_us", "alone_us")]
        lines.append((row["operator"], str(row["trials"]), f"{row['row_us']['ours']:.0f}", f"{best['row_us']:.0f}", *ratios))
    return harness.table(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tunes, or measures and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("do", choices=("tune", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(TUNED), help="names of operators, with commas between")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    threads = os.cpu_count() or 1
    os.environ.setdefault("TVM_NUM_THREADS", str(threads))
    by_id = {o.id: o for o in operators_cases.read()}
    if unknown := [name for name in given.only.split(",") if name not in by_id]:
        parser.error(f"--only: no operators of the set: {', '.join(unknown)}")
    if why := operators_peers.absent().get("TVM"):
        parser.error(why)
    chosen, rows = [by_id[name] for name in given.only.split(",")], []
    for operator in chosen:
        start = time.perf_counter()
        if given.do == "tune":
            tune(operator, given.folder / operator.id, given.trials, threads)
            print(
                f"{operator.id}: {len(records(given.folder / operator.id))} records, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
        elif records(given.folder / operator.id):
            target = tl.target("cpu")
            warm_up(target)
            rows.append(measure(operator, given.folder / operator.id, target, given.rounds, threads))
            harness.record(given.results, rows[-1:], str(target.device))
    print(show(rows) if rows else "")
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
