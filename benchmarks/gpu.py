"""Kernels on a GPU beside cuBLAS, cuDNN, Triton and torch.compile: `python benchmarks/gpu.py GROUP`, or `make gpu-bench GROUP=...`.

GROUP is products, convolutions or memory. A run ends after --limit-s seconds with what it has; the next one goes on where it stopped,
until a source file changes. Every case is a line of JSON in --results, with device, driver, versions and date; the table comes last.
Without a GPU it says what is missing and ends with 3. Compile times are told apart, peers' autotuning is not timed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/gpu.py` from anywhere

import tilelang as tl
from benchmarks import gpu_cases, harness
from benchmarks.gpu_cases import GROUPS, Case
from benchmarks.gpu_session import Session
from tilelang.errors import TileLangError
from tilelang.targets import DIALECTS, devices_of

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "gpu.jsonl"
NO_DEVICE = 3
LIMIT_S = 450.0


def gpu(done: str = "measured") -> tl.Target | None:
    """The best GPU of a driver with streams and events; None where there is none, and the reasons are printed; done: what was not."""
    for name in ("cuda", "hip"):
        found, error = devices_of(name)
        if found and name in DIALECTS:
            return tl.target(name, device=found[0])
        print(
            f"{name}: {error.message if error is not None else 'no device'}"
            + (f"; get {error.mend}" if error is not None else "")
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


def known(paths: Sequence[Path], device: str, version: str) -> dict[str, dict[str, Any]]:
    """The lines of earlier runs of the same sources on the same device, by case."""
    found = {}
    for path in paths:
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if row.get("device") == device and row.get("sources") == version:
                    found[row["case"]] = row
    return found


def run(session: Session, cases: Sequence[Case], results: Path, limit_s: float, only: str) -> dict[str, dict[str, Any]]:
    """Measures what no earlier run has, until the time is up; every line so far, by case."""
    began, version = time.monotonic(), sources()
    name = str(session.device)
    done = known(sorted({RESULTS, results}), name, version)
    asked = [case for case in cases if only in case.id]
    todo = [case for case in asked if case.id not in done]
    print(f"{session.device}, driver {session.device.driver_version}: {len(todo)} of {len(asked)} cases to measure", flush=True)
    copy = session.copy_gb_per_s() if todo else 0.0
    facts = {"driver_version": session.device.driver_version, "architecture": session.device.architecture}
    longest = 0.0
    for number, case in enumerate(todo):
        start = time.monotonic()
        if start - began + longest > limit_s:
            print(f"{limit_s:g} s are over: {len(todo) - number} cases are left for the next run", flush=True)
            break
        row = {
            "case": case.id,
            "group": case.group,
            "sources": version,
            "copy_gb_per_s": round(copy, 1),
            "flops": case.flops,
            **facts,
        }
        try:
            row |= session.measure(case)
        except TileLangError as error:  # a kernel that failed takes the context with it; the next run leaves it out
            row |= {"failed": str(error), "refused": {"a kernel": error.code}, "peers_us": {}, "right": False}
        harness.record(results, [row], name)
        done[case.id] = row
        longest = max(longest, time.monotonic() - start)
        print("  ".join(cell for cell in cells(row) if cell), flush=True)
        if "failed" in row:
            print(
                f"{row['failed']}\nThe device's context is lost: {len(todo) - number - 1} cases are left for the next run",
                flush=True,
            )
            break
    return {case.id: done[case.id] for case in asked if case.id in done}


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    case = row["case"].split("/", 1)[1]
    peers = " ".join(f"{name} {time_us / row['us']:.2f}x" for name, time_us in row["peers_us"].items()) if "us" in row else " ".join(
        f"{name} {time_us:.0f} us" for name, time_us in row["peers_us"].items())  # fmt: skip
    if "us" not in row:
        return (case, "refused: " + ", ".join(sorted(set(row["refused"].values()))), "", "", "", peers, "")
    seconds = row["us"] * 1e-6
    share = row["bytes"] * 1e-9 / seconds / row["copy_gb_per_s"] if row["copy_gb_per_s"] else math.nan
    right = {True: "right", False: "WRONG", None: "unchecked"}[row["right"]]
    return (case, row["schedule"], f"{row['us']:.1f}", f"{row['flops'] * 1e-12 / seconds:.1f}", f"{share:.2f}", peers, right)


def show(rows: dict[str, dict[str, Any]]) -> str:
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
    wrong = [row["case"] for row in rows.values() if row.get("right") is False]
    return "\n".join([*lines, *(f"WRONG: {case}" for case in wrong)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a group and prints the table; 3 without a GPU, 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="when to stop")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="a part of the names of the cases to measure")
    given = parser.parse_args(arguments)
    target = gpu()
    if target is None:
        return NO_DEVICE
    rows = run(Session(target), gpu_cases.cases(given.group), given.results, given.limit_s, given.only)
    print(show(rows))
    return 1 if any(row.get("right") is False for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
