"""How long the front end takes: `import tilelang`, and schedule to source for two matrix products.

Every figure is a median over fresh processes, because caches keyed by expression would make a second run of the same schedule look
better than it is. `first` is the first compile of a process after the import, `again` the next one, of another size. Time is the
clock's; the processor's time stands beside it, which a busy machine disturbs less.

    python benchmarks/compile_time.py [--runs N]
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tilelang as tl

SIZES = ((1024, 1024, 1024), (1000, 1111, 777))
LIMITS_MS = {"import": 150.0, "gemm_cpu": 50.0, "gemm_simt": 50.0}


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - processor)


def measure_import() -> list[tuple[float, float]]:
    """The first import of the language in this process."""
    return [timed(functools.partial(importlib.import_module, "tilelang"))]


def measure(name: str) -> list[tuple[float, float]]:
    """From the Python schedule to C, the first size of this process and then the other."""
    import tilelang as tl
    from tilelang.lowering.pipeline import lower
    from tilelang.lowering.targets import cpu
    from tilelang.lowering.targets.c.emitter import emit

    make = {"gemm_cpu": gemm_cpu, "gemm_simt": gemm_simt}[name]
    profile = tl.load_profile("sapphire_rapids")

    def run(size: tuple[int, int, int]) -> None:
        schedule = make(*size)
        emit(lower(schedule.computation, schedule.steps, profile, needs=cpu.DIALECT.passes), cpu.DIALECT)

    return [timed(functools.partial(run, size)) for size in SIZES]


def _matmul(m: int, n: int, k: int) -> tl.Schedule:
    import tilelang as tl

    i, j, r = tl.axes(m=m, n=n, k=k)
    a, b = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    return tl.schedule(tl.define("C", tl.sum(a[i, r] * b[r, j], over=r), i, j))


def gemm_cpu(m: int, n: int, k: int) -> tl.Schedule:
    """The schedule of that name in language.md."""
    import tilelang as tl

    return (
        _matmul(m, n, k)
        .tile(m=336, n=384).to(tl.block)
        .split(k=256)
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (n // 48, k, n % 48)), steps=tl.move().vectorize(n=16))
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // 8, k, m % 8)))
        .split(n=48, m=8)
        .accumulate(tl.register)
        .split(k=4)
        .split(k=1, unroll=True)
        .load("B", tl.register, steps=tl.move().vectorize(n=16))
        .split(m=1, unroll=True)
        .vectorize(n=16)
    )  # fmt: skip


def gemm_simt(m: int, n: int, k: int) -> tl.Schedule:
    """The schedule of that name in language.md."""
    import tilelang as tl

    to_threads = tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4)
    return (
        _matmul(m, n, k)
        .tile(m=128, n=128).to(tl.block)
        .accumulate(tl.register)
        .split(k=8)
        .load("A", tl.shared, layout=tl.layout("k", "m").pad(4), ahead=1, steps=to_threads)
        .load("B", tl.shared, ahead=1, steps=tl.move().tile(k=1, n=4).to(tl.thread).vectorize(n=4))
        .tile(m=64, n=32).to(tl.warp)
        .split(k=1)
        .load("A", tl.register, steps=tl.move().vectorize(m=4))
        .load("B", tl.register, steps=tl.move().vectorize(n=4))
        .split(m=32, n=16)
        .tile(m=4, n=4).to(tl.thread)
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Import and compile times, medians over fresh processes.")
    parser.add_argument("--runs", type=int, default=9, help="processes for each row")
    parser.add_argument("--child", choices=sorted(LIMITS_MS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure_import() if options.child == "import" else measure(options.child)))
        return
    print(f"{'':10}  {'which':5}  {'median ms':>9}  {'least ms':>8}  {'processor ms':>12}  {'limit ms':>8}")
    for name, limit in LIMITS_MS.items():
        command = [sys.executable, __file__, "--child", name]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(options.runs)
        ]
        for number, which in enumerate(("first", "again")[: len(runs[0])]):
            clock, processor = zip(*(run[number] for run in runs), strict=True)
            figures = f"{statistics.median(clock):9.1f}  {min(clock):8.1f}  {statistics.median(processor):12.1f}"
            print(f"{name:10}  {which:5}  {figures}  {limit:8.0f}")


if __name__ == "__main__":
    main()
