"""Kernels on a GPU beside cuBLAS, cuDNN, Triton and torch.compile: `python benchmarks/gpu.py GROUP`, or `make gpu-bench GROUP=...`.

GROUP is products, convolutions or memory. A run ends after --limit-s seconds with what it has; the next one goes on where it stopped,
until a source file changes. Every case is a line of JSON in --results, with device, driver, versions and date; the table comes last.
A kernel whose result is wrong is told, not timed. One that fails or never ends is told too, and left out; another process goes on.
Without a GPU it says what is missing and ends with 3; `--plan PROFILE` says there which schedules each case has on such a device.
Compile times are told apart, peers' autotuning is not timed.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/gpu.py` from anywhere

import tilelang as tl
from benchmarks import gpu_cases, gpu_peers, harness
from benchmarks.gpu_cases import GROUPS, Case
from benchmarks.gpu_session import Lost, Session
from benchmarks.gpu_watch import LOST, Watch, supervise
from tilelang.errors import TileLangError
from tilelang.runtime.targets import DIALECTS, devices_of, local_target

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "gpu.jsonl"
NO_DEVICE = 3
LIMIT_S = 450.0
STAGE_S = 120.0  # for a kernel, or a peer, to be compiled and run
Row = dict[str, Any]


def gpu(done: str = "measured") -> tl.Target | None:
    """The best GPU of a driver with streams and events; None where there is none, and the reasons are printed; done: what was not."""
    for name in ("cuda", "hip"):
        found, error = devices_of(name)
        if found and name in DIALECTS:
            return local_target(dialect=name)
        print(
            f"{name}: {error.message if error is not None else 'no device'}"
            + (f"; get {error.help}" if error is not None else "")
        )
    print(f"There is no GPU here: nothing was {done}.")
    return None


def sources() -> str:
    """A name for what is measured: a hash of the package, the examples and the cases."""
    digest = hashlib.sha256()
    for folder in ("tilelang", "lowering", "examples", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml", ".h", ".csv") and "__pycache__" not in path.parts:
                digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def known(paths: Sequence[Path], device: str, version: str) -> dict[str, Row]:
    """The lines of earlier runs of the same sources on the same device, by case; what a killed run left half written is not a line."""
    found = {}
    for path in paths:
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if row.get("device") == device and row.get("sources") == version:
                    found[row["case"]] = row
    return found


class Run:
    """One worker's part of a group: what is known so far, and what is still to be measured."""

    def __init__(self, target: tl.Target, cases: Sequence[Case], results: Path, limit_s: float, only: str) -> None:
        assert target.device is not None
        self.began, self.limit_s, self.results = time.monotonic(), limit_s, results
        self.device, self.version = target.device, sources()
        self.rows = known(sorted({RESULTS, results}), str(self.device), self.version)
        self.asked = [case for case in cases if only in case.id]
        self.todo = [case for case in self.asked if self.rows.get(case.id, {"again": True}).get("again")]
        self.watch = Watch(STAGE_S, self.late)
        self.now: Case | None = None
        self.facts: Row = {
            "sources": self.version, "driver_version": self.device.driver_version, "architecture": self.device.architecture,
            "compute_units": self.device.compute_units, "platform_version": self.device.platform_version,
        }  # fmt: skip

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self.began

    def measure(self, open_session: Callable[[Callable[[str], None]], Session]) -> int:
        """Measures until the time is up; 0, or LOST where the device's context is."""
        count = len(self.todo)
        print(f"{self.device}, driver {self.device.driver_version}: {count} of {len(self.asked)} cases to measure", flush=True)
        for what, why in gpu_peers.absent().items():
            print(f"{what}: left out: {why}", flush=True)
        if not self.todo:
            return 0
        print(f"This run: at most {self.limit_s:.0f} s; the next one goes on with what is left.", flush=True)
        try:
            session = open_session(self.watch.begin)
            if session.torch is None:
                print("PyTorch sees no GPU: no peers, results are compared in some rows", flush=True)
            copy, by = session.copy_gb_per_s()
            print(f"copy: {copy:.0f} GB/s read and written, by {by}", flush=True)
            self.facts |= {"copy_gb_per_s": round(copy, 1), "copied_by": by} | session.facts()
            return self._cases(session)
        finally:
            self.watch.end()

    def _cases(self, session: Session) -> int:
        longest, count = 0.0, len(self.todo)
        for number, case in enumerate(self.todo):
            start = self.passed_s
            if start + longest > self.limit_s:
                mean = start / max(1, number)
                left = count - number
                print(f"{self.limit_s:.0f} s are over: {left} cases are left, about {left * mean:.0f} s more", flush=True)
                break
            self.now = case
            failed = self.rows.get(case.id, {}).get("failed", {})
            try:
                self.keep(case, session.measure(case, failed), failed)
            except (Lost, TileLangError) as error:
                self.lost(case, self.watch.stage, str(error), failed)
                return LOST
            longest = max(longest, self.passed_s - start)
            row = self.rows[case.id]
            head = f"[{number + 1}/{count}, {self.passed_s:.0f} s]"
            print(f"{head} {'  '.join(cell for cell in cells(row) if cell)}", flush=True)
        return 0

    def keep(self, case: Case, row: Row, failed: dict[str, str]) -> None:
        """Writes a case's line down."""
        row = {
            "case": case.id,
            "group": case.group,
            "flops": case.flops,
            **self.facts,
            **({"failed": failed} if failed else {}),
            **row,
        }
        harness.record(self.results, [row], str(self.device))
        self.rows[case.id] = row

    def lost(self, case: Case, stage: str, why: str, failed: dict[str, str]) -> None:
        """Notes who took the device's context: the case is measured again without it, unless that was tried."""
        again = stage not in failed
        self.keep(case, {"again": again, "right": False}, {**failed, stage: why})
        print(
            f"{case.id}: {stage}: {why}\nThe device's context is lost{'; the case is tried without it' if again else ''}",
            flush=True,
        )

    def late(self, stage: str) -> None:
        """What the watch does before it ends the process."""
        if self.now is not None:
            failed = self.rows.get(self.now.id, {}).get("failed", {})
            self.lost(self.now, stage, f"it did not end in {STAGE_S:g} s", failed)
        else:
            print(f"{stage} did not end in {STAGE_S:g} s", flush=True)


def cells(row: Row) -> tuple[str, ...]:
    """A line of the table."""
    case = row["case"].split("/", 1)[1]
    said = [f"{name} WRONG" for name in row.get("wrong", {})] + [f"{name} FAILED" for name in row.get("failed", {})]
    if "left_out" in row:
        return (case, row["left_out"], "", "", "", "", "")
    peers_us = row.get("peers_us", {})
    if "us" not in row:
        peers = " ".join(f"{name} {time_us:.0f} us" for name, time_us in peers_us.items())
        refused = "refused: " + ", ".join(sorted(set(row.get("refused", {}).values()) - set(row.get("failed", {}).values())))
        return (case, refused if not said else "", "", "", "", peers, ", ".join(said))
    peers = " ".join(f"{name} {time_us / row['us']:.2f}x" for name, time_us in peers_us.items())
    seconds = row["us"] * 1e-6
    share = row["bytes"] * 1e-9 / seconds / row["copy_gb_per_s"] if row["copy_gb_per_s"] else math.nan
    right = ", ".join(["right", *said])
    return (case, row["schedule"], f"{row['us']:.1f}", f"{row['flops'] * 1e-12 / seconds:.1f}", f"{share:.2f}", peers, right)


def show(rows: dict[str, Row]) -> str:
    """The table, then the geometric mean over the cases of each operator and type of how many times slower each peer is."""
    header = ("case", "schedule", "us", "TFLOP/s", "of copy", "peer's time by ours", "")
    lines = [harness.table([header, *map(cells, rows.values())])] if rows else ["nothing was measured"]
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in rows.values():
        if "us" in row:
            _, _, operator, type, _ = row["case"].split("/", 4)
            for peer, time_us in row["peers_us"].items():
                ratios.setdefault((f"{operator} {type}", peer), []).append(time_us / row["us"])
    if ratios:
        means = [
            (what, peer, f"{math.exp(sum(map(math.log, r)) / len(r)):.2f}", str(len(r))) for (what, peer), r in ratios.items()
        ]
        lines += ["", harness.table([("operator", "peer", "peer's time by ours", "cases"), *means])]
    for word in ("wrong", "failed"):
        lines += [
            f"{word.upper()}: {row['case']}: {who}: {why}" for row in rows.values() for who, why in row.get(word, {}).items()
        ]
    return "\n".join(lines)


def plan(cases: Sequence[Case], profile: str) -> str:
    """Which schedules each case has on a device of a profile, and why not the others; nothing is run."""
    dialect = next(d for d in tl.load_profile(profile).dialects if d != "opencl")
    target, lines = tl.target(dialect, profile=profile), []
    for case in cases:
        y, accepted, refused = case.make(None), [], []
        for name, build in case.contestants(y, target.profile).items():
            try:
                tl.compile(build(), target)
                accepted.append(name)
            except TileLangError as error:
                refused.append(f"{name} ({error.code})")
        sets = Session.sets(gpu_cases.moved_bytes(y))
        arrays = f"{sets} sets of {gpu_cases.moved_bytes(y) / 1e6:.0f} MB"
        lines.append((case.id, arrays, ", ".join(accepted) or "NONE", ", ".join(refused)))
    return harness.table([("case", "arrays", "schedules", "refused"), *lines])


def work(given: argparse.Namespace, cases: Sequence[Case]) -> int:
    """A worker: measures, and prints the table where nobody goes on after it; an exit code."""
    target = gpu()
    if target is None:
        return NO_DEVICE
    run = Run(target, cases, given.results, given.limit_s, given.only)
    if run.measure(functools.partial(Session, target, None)) == LOST:
        return LOST
    rows = {case.id: run.rows[case.id] for case in run.asked if case.id in run.rows}
    print(show(rows))
    return 1 if any(row.get("wrong") or row.get("failed") for row in rows.values()) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a group and prints the table; 3 without a GPU, 1 where a result is wrong or a kernel failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="when to stop")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="a part of the names of the cases to measure")
    parser.add_argument("--plan", metavar="PROFILE", help="say what would be measured on such a device, and stop")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    cases = gpu_cases.cases(given.group)
    if given.plan:
        print(plan([case for case in cases if given.only in case.id], given.plan))
        return 0
    if given.worker:
        return work(given, cases)
    command = [sys.executable, __file__, given.group, "--worker", "--results", str(given.results), "--only", given.only]
    return supervise(command, given.limit_s)


if __name__ == "__main__":
    sys.exit(main())
