"""What a call costs over the bare launch, beside what was promised: `python benchmarks/call_overhead.py`.

A small kernel is launched bare (over arrays that were placed before, to its end) and called with NumPy's arrays, also as a function
under `@tl.kernel`, whose schedule is constructed (its own bare launch is beside it), in turns of a hundred calls each: call by call,
each would pay for the caches and sleeping threads that the other left behind. Medians, after the first calls; the outputs are given, as
in the other benchmarks. Besides, the launch of an empty kernel, from C's side of the call. Threads are awake: launches follow each
other. Each run adds its lines to results/call_overhead.jsonl.
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
from benchmarks.harness import ENTRY, HostBench, record, table
from benchmarks.machine import revision

RESULTS = Path(__file__).parent / "results" / "call_overhead.jsonl"
LIMITS_US = {"NumPy arrays": 5.0}  # that a call may take over the bare launch
EMPTY_LIMIT_US = 1.0  # of an empty kernel
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
    """The bare launch of a kernel, and its calls: median microseconds, and those over the bare launch."""
    connection = kernel._connection
    x, y = np.ones((8, 64), np.float32), np.empty(8, np.float32)
    held = {inputs: connection.host_array(x, "input", None), outputs: connection.host_array(y, "output", None)}
    ((function, names, _),) = kernel._launches
    buffers = [held[n].buffer for n in names]
    found = medians_us({BARE: lambda: function(buffers), "NumPy arrays": lambda: call(x, out=y)})
    over = {name: round(us - found[BARE], 2) for name, us in found.items() if name != BARE}
    median = {name: round(us, 2) for name, us in found.items()}
    return {"kernel": of, "median_us": median, "over_us": over, "limits_us": LIMITS_US, "revision": revision()}


def empty_launch_us(batches: int = 200, launches: int = 100) -> float:
    """Microseconds of a launch of a kernel that does nothing, arguments packed before, by the median of batches."""
    bench, array = HostBench(), np.zeros(4, np.float32)
    connection = bench.connection
    text = "static inline void kernel_block(float* X, float* local, const long long* block) {}"
    bench.launch(text, (bench.device.compute_units,), [array])()  # starts the threads
    function = connection.build(text + ENTRY.format(x=1, y=1, xy=1, arguments="arguments[0], ")).function(
        "kernel_main", (1,), 1, 0
    )
    request = np.array(
        [connection.pool.address, function.at, connection.host_array(array, "both", None).buffer], np.uint64
    ).tobytes()
    launch, found = connection.pool.launch, []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(launches):
            launch(request)
        found.append((time.perf_counter() - start) / launches)
    return float(np.median(found)) * 1e6


def rows() -> list[Row]:
    """A schedule by hand under `tl.compile`, and a constructed one under `@tl.kernel`."""
    target = tl.target("cpu")
    by_hand = tl.compile(schedules.row_sum(8, 64), target)
    i, j = tl.axes(i=8, j=64)
    constructed = tl.compile(tl.define("y", tl.sum(tl.input("x", tl.float32, i, j)[i, j], over=j), i), target)
    return [measured("tl.compile", by_hand, by_hand, "X", "Y"), measured("@tl.kernel", constructed, row_sums, "x", "y")]


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
    found, empty = rows(), empty_launch_us()
    print(show(found))
    print(f"launch of an empty kernel: {empty:.2f} us (promised <= {EMPTY_LIMIT_US:g})")
    record(given.results, [{**row, "empty_launch_us": round(empty, 3)} for row in found], str(tl.target("cpu").device))
    return 1 if any(map(broken, found)) or empty > EMPTY_LIMIT_US else 0


if __name__ == "__main__":
    sys.exit(main())
