"""Arithmetic rates: the length of a cycle, multiply-adds for each register tile, and the cost of functions.

Cycles are those of one core, for a vector of all its lanes, or for a warp if threads run in lockstep.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import tilelang.computations.functions as f
from tilelang.autoschedule.profile.aspects.shapes import QUAD, across, cycle_ns, in_blocks, lanes_of
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.autoschedule.profile.sampling import LEAST_SECONDS, Run, enough
from tilelang.computations.computation import Tensor, axes, input
from tilelang.computations.define import define
from tilelang.core.dtype import DType, float16, float32, int32
from tilelang.core.expr import Expr
from tilelang.profiles.profile import register, thread
from tilelang.schedules.schedule import move, schedule

CHAIN = 128
CLOCK = f"""
KERNEL(probe, 1)(GLOBAL const int *rounds, GLOBAL WIDE *out) {{
  int x = rounds[0], y = rounds[0] | 1;
  WIDE a = WIDE_OF(0.999f), w[4] = {{a, a + a, a * a, WIDE_OF((float)y)}};
  for (int r = 0; r < rounds[0]; ++r) {{
#pragma unroll
    for (int k = 0; k < {CHAIN // 2}; ++k) {{
      x = (x + y) ^ k;
      w[k % 4] = w[k % 4] * a + a;
    }}
  }}
  out[BLOCK] = w[0] + w[1] + w[2] + w[3] + WIDE_OF((float)x);
}}"""
ACCUMULATORS = 12
UNROLLED = 16
PEAK = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL WIDE *out) {
  WIDE a = WIDE_OF(0.999f), x[%(chains)d];
#pragma unroll
  for (int k = 0; k < %(chains)d; ++k) x[k] = WIDE_OF((float)(k + THREAD));
  for (int r = 0; r < rounds[0]; ++r) {
#pragma unroll
    for (int u = 0; u < %(unrolled)d; ++u) {
#pragma unroll
      for (int k = 0; k < %(chains)d; ++k) x[k] = x[k] * a + a;
    }
  }
  WIDE all = x[0];
  for (int k = 1; k < %(chains)d; ++k) all += x[k];
  out[BLOCK * %(threads)d + THREAD] = all;
}"""
ROWS, VECTORS = (1, 2, 4, 6, 8, 10, 12, 14), (1, 2, 3, 4)
SUSTAINED_SECONDS = 4.0
CROWDED = 1.6  # a ratio to one core's cycle that a slower clock cannot explain
STEPS = 256  # reduction length of a product whose operands stay in the nearest cache


def clock(bench: Bench, found: Findings) -> None:
    """The cycle time, from a chain of dependent integer additions: one per cycle on a CPU.

    All cores run the chain and multiply vectors beside it, because both may lower the clock. If that takes so much longer than on
    a single core that other programs must be using the cores, the single core's time is taken.
    """
    alone, seconds = (
        found.time(name, CHAIN, bench.of_text(CLOCK, blocks, 1, [4 * bench.text_lanes * blocks]), CHAIN).seconds
        for name, blocks in (("chain on one core", 1), ("chain", bench.cores))
    )
    if bench.lockstep:
        found.rate("dependent_add_ns", seconds * 1e9, "chain of dependent integer additions in one thread")
        if bench.clock_ghz and (bench.profile.assumed("rates.clock_ghz") or "clock_ghz" not in found.known):
            found.rate("clock_ghz", bench.clock_ghz, "CL_DEVICE_MAX_CLOCK_FREQUENCY", by="queried")
        return
    if seconds > CROWDED * alone:
        found.rate(
            "cycle_ns", alone * 1e9, "chain of dependent integer additions on one core, because other programs used the cores"
        )
        return
    found.rate(
        "cycle_ns",
        seconds * 1e9,
        "chain of dependent integer additions, one per cycle, on all cores, with vector operations beside it",
    )


def multiply_adds(bench: Bench, found: Findings) -> None:
    """Chains in registers for the peak; then products with operands in the nearest cache, for each register tile of rows x vectors."""
    threads, lanes = bench.threads, bench.text_lanes
    blocks = bench.cores * (8 if bench.lockstep else 1)
    made = {"threads": threads, "chains": ACCUMULATORS, "unrolled": UNROLLED}
    run = bench.of_text(PEAK % made, blocks, threads, [blocks * threads * lanes * 4])
    sample = found.time("peak", ACCUMULATORS, run, 2.0 * UNROLLED * ACCUMULATORS * threads * lanes * blocks)
    highest = 1e-9 / sample.best
    run = bench.of_text(PEAK % (made | {"threads": 1, "chains": 1}), 1, 1, [lanes * 4])
    seconds = found.time("chain of multiply-adds", 1, run, UNROLLED).seconds
    if (cycle := cycle_ns(bench, found)) is not None:
        found.rate("latency_cycles", seconds * 1e9 / cycle, "chain of dependent multiply-adds")
    by_sums: dict[float, float] = {}
    for vectors in VECTORS:
        points = []
        for rows in ROWS:
            if rows * vectors * (QUAD if bench.lockstep else 1) > 64 or (not bench.lockstep and rows * vectors > 28):
                continue
            run, operations = product(bench, rows, vectors)
            best = found.time(f"tile of {vectors} vectors", rows, run, operations)
            points.append((float(rows), 1e-9 / best.seconds))
            sums = float(rows * vectors * QUAD)
            by_sums[sums] = max(by_sums.get(sums, 0.0), 1e-9 / best.seconds)
            highest = max(highest, 1e-9 / best.best)
        how = f"products with register tiles of that many rows x {vectors} vectors, operands in the nearest cache"
        found.curve(f"multiply_add_of_{vectors}_vectors", "rows", "gflop_per_s", points, how)
    if bench.lockstep:
        how = "the best product with that many accumulators per thread"
        found.curve("register_tile", "sums_per_thread", "gflop_per_s", list(by_sums.items()), how)
    found.rate("float32_gflops", highest, "the fastest repeat of all multiply-add probes")


def sustained(bench: Bench, found: Findings) -> None:
    """The same chains for several seconds: the clock under sustained load."""
    threads, blocks = bench.threads, bench.cores * (8 if bench.lockstep else 1)
    made = {"threads": threads, "chains": ACCUMULATORS, "unrolled": UNROLLED}
    run = bench.of_text(PEAK % made, blocks, threads, [blocks * threads * bench.text_lanes * 4])
    operations = 2.0 * UNROLLED * ACCUMULATORS * threads * bench.text_lanes * blocks
    rounds = max(1, int(0.2 * enough(run) / LEAST_SECONDS))  # a fifth of a second
    times, passed = list[tuple[float, float]](), 0.0
    while passed < SUSTAINED_SECONDS:
        seconds = run(rounds)
        passed += seconds
        times.append((passed, seconds / rounds))
    found.note("sustained", times, rounds)
    points = [(x, operations / seconds * 1e-9) for x, seconds in times]
    found.curve("multiply_add_over_time", "seconds", "gflop_per_s", points, "chains of multiply-adds on all cores, repeated")
    late = statistics.median(y for _, y in points[len(points) // 2 :])
    found.rate("sustained_gflops", late, "chains of multiply-adds after several seconds")


def _rounds(rows: int, columns: int) -> int:
    """The repetitions of a product of STEPS steps that take a few milliseconds on a core."""
    return max(1, int(2e-3 * 100e9 / (2 * STEPS * rows * columns)))


def product(bench: Bench, rows: int, vectors: int) -> tuple[Run, float]:
    """A product with one register tile, repeated, and its number of operations."""
    width = lanes_of(bench, vectors)
    rounds = _rounds(rows, width)
    b, r, m, n, k = axes(b=bench.cores, r=rounds, m=rows, n=width, k=STEPS)
    A, B = input("A", float32, b, k, m), input("B", float32, b, k, n)
    start = in_blocks(schedule(define("C", f.sum(A[b, k, m] * B[b, k, n], over=k), b, r, m, n)), b=1).split(r=1)
    lanes = QUAD if bench.lockstep else bench.lanes
    if bench.lockstep:
        start = start.tile(n=QUAD * vectors).to(thread)
    plan = start.accumulate(register).split(k=4).split(k=1, unroll=True).load("B", register, steps=move().vectorize(n=lanes))
    return bench.of_schedule(plan.split(m=1, unroll=True).vectorize(n=lanes)), 2.0 * bench.cores * rounds * rows * width * STEPS


FUNCTIONS: dict[str, tuple[Callable[[Expr], Expr], DType]] = {  # the function, and the type of its argument
    "exp": (f.exp, float32),
    "log": (f.log, float32),
    "tanh": (f.tanh, float32),
    "erf": (f.erf, float32),
    "sqrt": (f.sqrt, float32),
    "divide": (lambda x: 1.0 / x, float32),
    "from_float16": (lambda x: f.cast(x, float32), float16),
    "from_int32": (lambda x: f.cast(x, float32), int32),
    "integer_multiply": (lambda x: x * x, int32),
    "integer_divide": (lambda x: 12345678 // x, int32),
}


def functions(bench: Bench, found: Findings) -> None:
    """Sums of a function of elements in the nearest cache, minus the time of the same sums without the function."""
    cycle = cycle_ns(bench, found)
    if cycle is None:
        raise NotApplicable("nobody says what a cycle is: the clock of the profile is assumed")
    plain = _summed(bench, found, "sum", lambda x: x, float32)
    for name, (made, type) in FUNCTIONS.items():
        longer = _summed(bench, found, name, made, type) - plain
        found.rate(f"{name}_cycles", max(longer, 0.0) * 1e9 / cycle, "per vector, in addition to the sum that contains it")


def _summed(bench: Bench, found: Findings, name: str, made: Callable[[Expr], Expr], type: DType) -> float:
    """A core's seconds per vector, or per warp, for a sum of a function of each element."""
    import numpy as np  # late: NumPy takes long to import

    width = lanes_of(bench, 1 if bench.lockstep else 4)
    b, r, i, j = axes(b=bench.cores, r=100, i=32, j=width)
    X: Tensor = input("X", type, b, i, j)
    start = in_blocks(schedule(define("S", f.sum(made(X[b, i, j]), over=i), b, r, j)), b=1).split(r=1).accumulate(register)
    plan = across(bench, start.split(i=1), "j", 1 if bench.lockstep else 4)
    ones = np.ones((bench.cores, 32, width), type.name)
    lanes = bench.profile.warp_size if bench.lockstep else bench.lanes
    return found.time(name, 1, bench.of_schedule(plan, {"X": ones}), 100 * 32 * width / lanes).seconds
