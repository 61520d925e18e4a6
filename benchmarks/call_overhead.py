"""What a call costs over the bare launch: `python benchmarks/call_overhead.py`.

A small kernel is launched bare (arguments set, enqueued, waited for) and called with pyopencl arrays and with NumPy arrays, in turns
of a hundred calls each: call by call, each would pay for the caches and sleeping threads that the other left behind. Medians; the
outputs are given, as in the other benchmarks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/call_overhead.py` from anywhere

import tilelang as tl
from benchmarks import cpu_schedules as schedules
from benchmarks.harness import table
from tilelang.lowering.drivers import opencl as driver

LIMITS_US = {"pyopencl arrays": 30.0, "NumPy arrays": 100.0}


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


def main() -> None:
    """Measures and prints the table."""
    import pyopencl.array as device_array

    kernel = tl.compile(schedules.row_sum(8, 64))
    connection = driver.connect(kernel.target.device)
    x, y = np.ones((8, 64), np.float32), np.empty(8, np.float32)
    dx, dy = device_array.to_device(connection.queue, x), device_array.empty(connection.queue, 8, np.float32)
    buffers = {"X": dx.base_data, "Y": dy.base_data}
    ((function, names, _),) = kernel._launches

    def bare() -> None:
        function([buffers[n] for n in names])
        connection.finish()

    def on_device() -> None:
        kernel(dx, out=dy)
        connection.finish()

    found = medians_us({"bare launch": bare, "pyopencl arrays": on_device, "NumPy arrays": lambda: kernel(x, out=y)})
    rows = [("call", "median us", "over the bare launch", "limit")]
    for name, us in found.items():
        limit = LIMITS_US.get(name)
        rows.append((name, f"{us:.1f}", f"{us - found['bare launch']:.1f}", f"{limit:.0f}" if limit else ""))
    print(table(rows))


if __name__ == "__main__":
    main()
