"""What a call costs over the bare launch, beside what was promised: `python benchmarks/call_overhead.py`.

A small kernel is launched bare (over arrays that were placed before, to its end) and called with pyopencl arrays and with NumPy
arrays, also as a function under `@tl.kernel`, whose schedule is constructed (its own bare launch is beside it), in turns of a hundred
calls each: call by call, each would pay for the caches and sleeping threads that the other left behind. Medians, after the first calls;
the outputs are given, as in the other benchmarks. Each run adds its lines to results/call_overhead.jsonl.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/call_overhead.py` from anywhere

import tilelang as tl
from benchmarks import cpu_schedules as schedules
from benchmarks.harness import record, table
from benchmarks.operators import revision
from tilelang.lowering.drivers import opencl as driver

RESULTS = Path(__file__).parent / "results" / "call_overhead.jsonl"
LIMITS_US = {"pyopencl arrays": 30.0, "NumPy arrays": 100.0}  # that a call may take over the bare launch
BARE = "bare launch"
Row = dict[str, Any]


@tl.kernel
def row_sums(x: Any) -> Any:
    """The sums of the rows: a schedule for each shape is constructed when it is first called."""
    i, j = tl.axes(i=x.shape[0], j=x.shape[1])
    return tl.define("y", tl.sum(x[i, j], over=j), i)


def medians_us(calls: dict[str, Callable[[], object]], turns: int = 40, each: int = 100) -> dict[str, float]:
    """Median microseconds of each call, in turns; the first tenth of a turn warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            for n in range(each + each // 10):
                start = time.perf_counter()
                call()
                if n >= each // 10:
                    times[name].append(time.perf_counter() - start)
    return {name: float(np.median(t)) * 1e6 for name, t in times.items()}


def measured(of: str, kernel: tl.Kernel, call: Callable[..., object], inputs: str, outputs: str) -> Row:
    """The bare launch of a kernel, and its calls with arrays of either kind: median microseconds, and those over the bare launch."""
    import pyopencl.array as device_array

    connection = driver.connect(kernel.target.device)
    x, y = np.ones((8, 64), np.float32), np.empty(8, np.float32)
    dx, dy = device_array.to_device(connection.queue, x), device_array.empty(connection.queue, 8, np.float32)
    buffers = {inputs: connection.host_array(x, "input", None).buffer, outputs: connection.host_array(y, "output", None).buffer}
    ((function, names, _),) = kernel._launches

    def bare() -> None:
        function([buffers[n] for n in names])
        connection.finish()

    def on_device() -> None:
        call(dx, out=dy)
        connection.finish()

    found = medians_us({BARE: bare, "pyopencl arrays": on_device, "NumPy arrays": lambda: call(x, out=y)})
    over = {name: round(us - found[BARE], 2) for name, us in found.items() if name != BARE}
    median = {name: round(us, 2) for name, us in found.items()}
    return {"kernel": of, "median_us": median, "over_us": over, "limits_us": LIMITS_US, "revision": revision()}


def broken(row: Row) -> list[str]:
    """The calls that take no less over the bare launch than was promised."""
    return [name for name, limit in row["limits_us"].items() if row["over_us"][name] >= limit]


def show(rows: Sequence[Row]) -> str:
    """A line a call, and whether what was promised of it is kept."""
    lines = [("kernel", "call", "median us", "over the bare launch", "promised", "kept")]
    for row in rows:
        lines.append((row["kernel"], BARE, f"{row['median_us'][BARE]:.1f}", "", "", ""))
        for name, over in row["over_us"].items():
            kept = "no" if name in broken(row) else "yes"
            lines.append(
                (row["kernel"], name, f"{row['median_us'][name]:.1f}", f"{over:.1f}", f"< {row['limits_us'][name]:g}", kept)
            )
    return table(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the table and keeps the results. 1: a promise is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    target = tl.target("opencl")
    by_hand = tl.compile(schedules.row_sum(8, 64), target)
    i, j = tl.axes(i=8, j=64)
    constructed = tl.compile(tl.define("y", tl.sum(tl.input("x", tl.float32, i, j)[i, j], over=j), i), target)
    rows = [
        measured("tl.compile", by_hand, by_hand, "X", "Y"),
        measured("@tl.kernel", constructed, row_sums, "x", "y"),
    ]
    print(show(rows))
    record(given.results, rows, str(target.device))
    return 1 if any(map(broken, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
