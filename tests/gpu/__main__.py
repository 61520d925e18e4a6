"""`make gpu-check`: the numeric suite on the GPU here, then every example under the memory and race checkers that start.

Ends with 3 where there is no GPU, with 1 where anything fails. What was not run is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu import NO_DEVICE, gpu

ROOT = Path(__file__).resolve().parents[2]
NUMERIC = (
    "tests/gpu",
    "tests/lowering/test_c_expressions.py",
    "tests/lowering/test_function_errors.py::test_all_numbers_of_16_bits",
    "tests/test_properties.py::test_device_and_reference_agree",
)
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
FOUND = 9  # the exit code of compute-sanitizer where it finds a fault
LIMIT_S = 240
TINY = "from tests.gpu.examples import tiny; tiny()"
EVERY = "from tests.gpu.examples import every; every()"


def run(command: Sequence[str], dialect: str, limit_s: float | None = None, quiet: bool = False) -> tuple[int, str]:
    """The exit code of a command that works on that dialect's device, and the last line of what it says."""
    environment = {**os.environ, "TILELANG_TARGET": dialect, "PYTHONPATH": str(ROOT)}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if quiet else {}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, timeout=limit_s, text=True, check=False, **how)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        return -1, f"it did not end in {limit_s:g} s"
    said = (done.stdout or "").strip().splitlines() or [f"exit code {done.returncode}"]
    return done.returncode, said[-1] if done.returncode in (0, FOUND) else " / ".join(said[-2:])


def check_with(tool: str, dialect: str) -> bool:
    """Runs every example under one checker; whether it found nothing, or could not be run."""
    program = shutil.which("compute-sanitizer")
    if dialect != "cuda" or program is None:
        why = "compute-sanitizer is not here" if dialect == "cuda" else f"there is no such checker for {dialect}"
        print(f"{tool}: not run: {why}", flush=True)
        return True
    command = [program, "--tool", tool, "--error-exitcode", str(FOUND), sys.executable, "-c"]
    code, said = run([*command, TINY], dialect, LIMIT_S, quiet=True)
    if code not in (0, FOUND):
        print(f"{tool}: not run: it does not start here: {said}", flush=True)
        return True
    code, said = run([*command, EVERY], dialect, LIMIT_S, quiet=True)
    print(f"{tool}: {said}" if code != -1 else f"{tool}: not run to the end: {said}", flush=True)
    return code in (0, -1)


def main() -> int:
    """Checks the GPU here; an exit code."""
    target = gpu("checked")
    if target is None:
        return NO_DEVICE
    print(f"{target.device}, driver {target.device.driver_version if target.device else ''}, {target.profile.name}", flush=True)
    code, _ = run([sys.executable, "-m", "pytest", "-q", *NUMERIC], target.dialect)
    right = [check_with(tool, target.dialect) for tool in TOOLS]
    return 0 if code == 0 and all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
