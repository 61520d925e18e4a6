"""What a call costs over the bare launch: `python benchmarks/call_overhead.py`.

A small kernel is launched bare (arguments set, enqueued, waited for) and called with pyopencl arrays and with NumPy arrays, also as a
function under `@tl.kernel`, whose schedule is constructed (its own bare launch is beside it), in turns of a hundred calls each: call
by call, each would pay for the caches and sleeping threads that the other left behind. Medians; the outputs are given, as in the
other benchmarks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/call_overhead.py` from anywhere

import tilelang as tl
from benchmarks import cpu_schedules as schedules
from benchmarks.harness import table
from tilelang.lowering.drivers import opencl as driver

LIMITS_US = {"pyopencl arrays": 30.0, "NumPy arrays": 100.0}


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


def measured(kernel: tl.Kernel, call: Callable[..., object], inputs: str, outputs: str) -> list[tuple[str, float, float]]:
    """The bare launch of a kernel, and its calls with arrays of either kind: median microseconds, and those over the bare launch."""
    import pyopencl.array as device_array

    connection = driver.connect(kernel.target.device)
    x, y = np.ones((8, 64), np.float32), np.empty(8, np.float32)
    dx, dy = device_array.to_device(connection.queue, x), device_array.empty(connection.queue, 8, np.float32)
    buffers = {inputs: dx.base_data, outputs: dy.base_data}
    ((function, names, _),) = kernel._launches

    def bare() -> None:
        function([buffers[n] for n in names])
        connection.finish()

    def on_device() -> None:
        call(dx, out=dy)
        connection.finish()

    found = medians_us({"bare launch": bare, "pyopencl arrays": on_device, "NumPy arrays": lambda: call(x, out=y)})
    return [(name, us, us - found["bare launch"]) for name, us in found.items()]


def main() -> None:
    """Measures and prints the table."""
    by_hand = tl.compile(schedules.row_sum(8, 64))
    i, j = tl.axes(i=8, j=64)
    constructed = tl.compile(tl.define("y", tl.sum(tl.input("x", tl.float32, i, j)[i, j], over=j), i))
    rows = [("kernel", "call", "median us", "over the bare launch", "limit")]
    for of, found in (
        ("tl.compile", measured(by_hand, by_hand, "X", "Y")),
        ("@tl.kernel", measured(constructed, row_sums, "x", "y")),
    ):
        for name, us, over in found:
            limit = LIMITS_US.get(name)
            rows.append((of, name, f"{us:.1f}", f"{over:.1f}", f"{limit:.0f}" if limit else ""))
    print(table(rows))


if __name__ == "__main__":
    main()
