"""A cold start: how long a second process takes to import the language, compile from the disk cache and run.

    python benchmarks/cold_start.py [--runs 5]

A process compiles and runs a kernel and leaves it in an empty cache; then as many processes as asked for do the same, one by one, each
timed from its start to its end, the interpreter's own start and NumPy's import included. Medians. Two kernels: a schedule written by
hand, and a product whose schedule was constructed by the first process and is remembered. `processor` is the processor's time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/cold_start.py` from anywhere

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 0.5

CHILD = """
import time
begun = time.perf_counter()
import json
import numpy as np
with_numpy = time.perf_counter()
import tilelang as tl
imported = time.perf_counter()
m, n, k = tl.axes(m=64, n=96, k=80)
A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
C = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
{schedule}
kernel = tl.compile(what, "cpu")
compiled = time.perf_counter()
a, b = np.ones((64, 80), np.float32), np.ones((80, 96), np.float32)
result = kernel(a, b)
ran = time.perf_counter()
assert (result == 80).all()
parts = dict(numpy=with_numpy - begun, tilelang=imported - with_numpy, compile=compiled - imported, run=ran - compiled)
print(json.dumps(parts | dict(processor=time.process_time())))
"""
SCHEDULES = {
    "a schedule by hand": "what = tl.schedule(C).tile(m=8, n=48).to(tl.block).accumulate(tl.register).split(k=1)"
    ".split(m=1, unroll=True).vectorize(n=16)",
    "a constructed schedule": "what = C",
}


@dataclasses.dataclass(frozen=True)
class Found:
    """Medians: seconds of a whole process, and of its parts."""

    seconds: float
    parts: dict[str, float]


def measured(runs: int = 5) -> dict[str, Found]:
    """The medians of each kernel. Raises subprocess.CalledProcessError where a process fails."""
    found = {}
    for name, schedule in SCHEDULES.items():
        with tempfile.TemporaryDirectory() as folder:
            once(schedule, folder)
            times = [once(schedule, folder) for _ in range(runs)]
        parts = {part: statistics.median(p[part] for _, p in times) for part in times[0][1]}
        found[name] = Found(statistics.median(seconds for seconds, _ in times), parts)
    return found


def once(schedule: str, cache: str) -> tuple[float, dict[str, float]]:
    """Seconds of one process, and of its parts."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "TILELANG_CACHE_DIR": cache, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": cache}
    for name in ("TILELANG_DATABASE", "PYTHONDONTWRITEBYTECODE"):  # modules are compiled by the first process, as anywhere
        environment.pop(name, None)
    start = time.perf_counter()
    command = [sys.executable, "-c", CHILD.format(schedule=schedule)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    parts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds, parts


def main() -> int:
    """Measures and prints. 1: the limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    found = measured(parser.parse_args().runs)
    for name, medians in found.items():
        parts = ", ".join(f"{part} {1e3 * seconds:.0f}" for part, seconds in medians.parts.items())
        print(f"{name}: {medians.seconds:.3f} s (limit {LIMIT_S} s); of these ms: {parts}")
    return 1 if any(medians.seconds > LIMIT_S for medians in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
