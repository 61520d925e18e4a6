"""What a launch costs on the processor: `python benchmarks/host_launches.py`.

Empty kernels, whose blocks do nothing, on a pool of as many threads as the process may use cores: a launch by itself (`C`), the same
with the packing of its arguments (`function`), and with the addresses of three NumPy arrays found anew (`arrays`). Threads are awake:
launches follow each other. The least of batches of 100 launches, in microseconds. `asleep`: a launch 2 ms after the one before, median.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/host_launches.py` from anywhere

from benchmarks.harness import table
from tests.lowering.host_kernels import SOURCE, Connection, connection

BLOCKS = (1, 2, 4, 16, 64)


def least(call: Callable[[], object], batches: int = 400, launches: int = 100) -> float:
    """Microseconds of a call, by the quickest batch."""
    found = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(launches):
            call()
        found.append((time.perf_counter() - start) / launches)
    return min(found) * 1e6


def asleep(call: Callable[[], object], launches: int = 200) -> float:
    """Microseconds of a call for which threads have to be woken, in the median."""
    found = []
    for _ in range(launches):
        time.sleep(2e-3)
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found) * 1e6


def row(made: Connection, blocks: int) -> list[str]:
    """The times of one grid."""
    arrays = [np.zeros((4, 4), np.float32) for _ in range(3)]
    held = [made.host_array(a, "both", None) for a in arrays]
    buffers = [h.buffer for h in held]
    function = made.build(SOURCE).function("nothing", (blocks,), 1, 0)
    function(buffers)
    request = np.array([made.pool.address, function.at, *buffers], np.uint64).tobytes()
    launch = made.pool.launch

    def with_arrays() -> None:
        function([made.host_array(a, "both", None).buffer for a in arrays])

    calls: list[Callable[[], object]] = [lambda: launch(request), lambda: function(buffers), with_arrays]
    return [str(blocks), *(f"{least(call):.2f}" for call in calls), f"{asleep(lambda: function(buffers)):.1f}"]


def main() -> None:
    """Measures and prints the table."""
    made = connection()
    print(f"{made.device}, {made.device.compute_units} threads")
    print(table([["blocks", "C", "function", "arrays", "asleep"], *(row(made, blocks) for blocks in BLOCKS)]))


if __name__ == "__main__":
    main()
