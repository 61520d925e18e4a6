"""What a launch costs on PoCL as a function of the process, and by a queue of OpenCL's: `python benchmarks/launches.py`.

The same kernels over NumPy arrays on two connections, one of which knows queues alone, in turns: calls by themselves, and calls in a
row. Medians of the host's clock in microseconds.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/launches.py` from anywhere

import tilelang as tl
from benchmarks.harness import aligned_array, table
from benchmarks.operators_ours import Call, compare
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c_family import kernel_names

ELEMENTS = (64, 10_000, 100_000, 400_000, 1_600_000)
LANES = 16


def doubled(elements: int, cores: int) -> tl.Schedule:
    """Twice an array, by one block a core."""
    i = tl.axes(i=elements)
    y = tl.define("Y", 2 * tl.input("X", tl.float32, i)[i], i)
    share = -(-elements // (cores * LANES)) * LANES
    return tl.schedule(y).tile(i=share).to(tl.block).split(i=LANES).vectorize(i=LANES)


def calls(elements: int, connections: dict[str, driver.Connection], target: tl.Target) -> list[Call]:
    """The kernel on each connection."""
    kernel = tl.compile(doubled(elements, target.profile.compute_units or 1), target)
    (lowered,) = kernel.program.kernels
    name, found = kernel_names(kernel.program, opencl.DIALECT)[lowered.name], []
    for who, connection in connections.items():
        function = connection.build(kernel.source).function(name, lowered.grid, lowered.threads, lowered.shared_bytes)
        x, y = aligned_array((elements,)), np.zeros(elements, np.float32)
        held = {"X": driver.HostArray(connection, x, False), "Y": driver.HostArray(connection, y, True)}
        buffers = [held[b.name].buffer for b in lowered.arguments]
        found.append(Call(who, "ours", functools.partial(_launch, function, buffers, held), connection.finish))
    return found


def _launch(function: driver.Function, buffers: list[Any], _held: Mapping[str, driver.HostArray]) -> None:
    function(buffers)


def main() -> None:
    """Measures and prints the table."""
    target = tl.target("opencl")
    assert target.device is not None
    here, queue = driver.connect(target.device), driver.Connection(target.device)
    queue.hosting = None
    if here.hosting is None:
        print("kernels are no functions of the process here: PoCL on Linux and x86-64 alone")
    rows: list[tuple[str, ...]] = [("bytes", "here, alone", "by a queue, alone", "here, in a row", "by a queue, in a row")]
    for elements in ELEMENTS:
        found = compare(calls(elements, {"here": here, "queue": queue}, target), 11)
        times = [found[who][how] for how in (0, 1) for who in ("here", "queue")]
        rows.append((f"{8 * elements}", *(f"{s * 1e6:.1f}" for s in times)))
    print(table(rows))


if __name__ == "__main__":
    main()
