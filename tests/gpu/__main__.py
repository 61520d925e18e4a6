"""`make gpu-check`: the numeric suite on the GPU here, then every example under the memory and race checkers that start.

A run ends after --limit-s seconds; the next one goes on where it stopped, until a source file changes. A test that takes the device's
context with it, or never ends, has failed, and another process goes on. Ends with 3 where there is no GPU, with 1 where anything fails
or is left. What was not run is said. PARTS alone: `python -m tests.gpu memcheck racecheck`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import tilelang as tl
from benchmarks.gpu import NO_DEVICE, gpu, sources
from benchmarks.gpu_watch import supervise
from tests.gpu.examples import FAILED
from tests.gpu.progress import OVERTIME_S, outcomes, unfinished

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = ROOT / "build" / "gpu-check.jsonl"
NUMERIC = (
    "tests/gpu",
    "tests/lowering/test_c_expressions.py",
    "tests/lowering/test_function_errors.py::test_all_numbers_of_16_bits",
    "tests/test_properties.py::test_device_and_reference_agree",
)
ON_THE_DEVICE = "not (test_c_expressions and (cuda or hip))"  # those run their text on the processor
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
PARTS = ("numeric", *TOOLS)
# What tensor copies store counts as never written where the host copies it back: the numeric suite checks outputs.
OPTIONS = {"initcheck": ("--check-api-memory-access", "no")}
FOUND = 9  # the exit code of compute-sanitizer where it finds a fault
LIMIT_S = 500.0
TOOL_S = 150.0  # for one checker, at most
LEAST_S = 20.0
TINY = "from tests.gpu.examples import tiny; tiny()"
EVERY = "from tests.gpu.examples import every; every({limit_s:.0f})"


def environment(dialect: str) -> dict[str, str]:
    """What a process on that dialect's device is started with."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "TILELANG_TARGET": dialect, "PYTHONPATH": path}


def run(command: Sequence[str], dialect: str, limit_s: float) -> tuple[int, str]:
    """The exit code of a command on that dialect's device, and what it says of kernels that fail, and last; -1: it did not end."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment(dialect), timeout=limit_s, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"it did not end in {limit_s:.0f} s"
    said = (done.stdout or "").strip().splitlines() or [f"exit code {done.returncode}"]
    return done.returncode, " / ".join([*(line for line in said[:-2] if line.startswith(FAILED)), *said[-2:]])


def check_with(tool: str, dialect: str, limit_s: float = TOOL_S) -> bool | None:
    """Runs every example under one checker; whether it found nothing. None: it could not be run."""
    program = shutil.which("compute-sanitizer")
    if dialect != "cuda" or program is None:
        why = "compute-sanitizer is not here" if dialect == "cuda" else f"there is no such checker for {dialect}"
        print(f"{tool}: not run: {why}", flush=True)
        return None
    if limit_s < LEAST_S:
        print(f"{tool}: not run: the time is over; `make gpu-check ARGUMENTS={tool}` runs it alone", flush=True)
        return None
    start = time.monotonic()
    command = [program, "--tool", tool, *OPTIONS.get(tool, ()), "--error-exitcode", str(FOUND), sys.executable, "-c"]
    code, said = run([*command, TINY], dialect, limit_s)
    if code not in (0, FOUND):
        print(f"{tool}: not run: it does not start here: {said}", flush=True)
        return None
    left = limit_s - (time.monotonic() - start)
    code, said = run([*command, EVERY.format(limit_s=left / 2)], dialect, left)
    print(f"{tool}: {said}" if code != -1 else f"{tool}: not run to the end: {said}", flush=True)
    return code == 0


def numeric(target: tl.Target, limit_s: float, progress: Path) -> bool:
    """Runs what is left of the numeric suite; whether all of it has run and nothing failed."""
    head = json.dumps({"sources": sources(), "device": str(target.device)})
    progress.parent.mkdir(parents=True, exist_ok=True)
    if not progress.exists() or progress.read_text(encoding="utf-8").partition("\n")[0] != head:
        progress.write_text(head + "\n", encoding="utf-8")
    print(f"the numeric suite: {len(outcomes(progress))} tests have ended before; at most {limit_s:.0f} s now", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.gpu.progress", "--progress", str(progress), "-k", ON_THE_DEVICE]
    command += NUMERIC
    code = supervise(command, limit_s, environment(target.dialect), ROOT)
    ended = outcomes(progress)
    for test, line in ended.items():
        if line["outcome"] == "failed":
            print(f"FAILED {test}\n{line['said']}")
    counts = Counter(line["outcome"] for line in ended.values())
    print("the numeric suite: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())), flush=True)
    if (name := unfinished(progress)) is not None:
        print(f"the time was over: {name} did not end in {OVERTIME_S:g} s more, and is run again", flush=True)
    if code not in (0, 1, 5):  # all were run: passed, failed, or none was left
        print(f"the numeric suite is not at its end (exit code {code}): run it again to go on", flush=True)
    return code in (0, 1, 5) and not counts["failed"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks the GPU here; an exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="when to stop")
    given = parser.parse_args(arguments)
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    parts = given.parts or PARTS
    target = gpu("checked")
    if target is None:
        return NO_DEVICE
    end = time.monotonic() + given.limit_s
    print(f"{target.device}, driver {target.device.driver_version if target.device else ''}, {target.profile.name}", flush=True)
    right = dict[str, bool | None]()
    for number, part in enumerate(parts):
        left = end - time.monotonic()
        if part == "numeric":
            right[part] = numeric(target, left * 0.6 if len(parts) > 1 else left, PROGRESS)
        else:
            right[part] = check_with(part, target.dialect, min(TOOL_S, left / (len(parts) - number) + LEAST_S))
    for said, value in (("right", True), ("NOT right, or not at the end", False), ("not run", None)):
        found = [part for part, is_right in right.items() if is_right is value]
        print(f"{said}: {', '.join(found) or 'none'}", flush=True)
    return 1 if False in right.values() else 0


if __name__ == "__main__":
    sys.exit(main())
