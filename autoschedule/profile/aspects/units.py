"""Matrix instructions, each by a schedule that executes nothing else: by shape, by type, and by the memory of the operands.

A warp multiplies the same operands repeatedly, which it loaded once. So the rate is the instruction's, not that of a kernel that
waits for memory. Asynchronous copies are compared with loads by threads, in sums over rows that go through shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import tilelang.computations.functions as f
from tilelang.autoschedule.common.matrix_units import multiplies, rates_of
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.autoschedule.profile.sampling import Run
from tilelang.computations.computation import axes, input
from tilelang.computations.define import define
from tilelang.core.dtype import float32
from tilelang.core.layout import layout
from tilelang.errors import TileLangError
from tilelang.instructions.instruction import AT_ONCE, Instruction, known
from tilelang.profiles.profile import block, register, shared, thread
from tilelang.schedules.schedule import Schedule, move, schedule

PIECES = (2, 4)  # instructions of a warp along rows and columns, with independent sums
GRID = (2, 4)  # warps of a block
LAUNCH_SECONDS = 1e-3  # by the profile's rate; sets the repetitions per launch
WIDEST = 3  # how many instructions are measured that differ only in their columns
LARGEST_BYTE = 0x38  # floats with a smaller first byte are below 1
ROW_BYTES = 128  # of swizzled operands, along the reduction
COPIED_ROWS, AHEAD = 2, 3
COPIED_BYTES = 4 << 20  # per block


def matrix(bench: Bench, found: Findings) -> None:
    """Every matrix multiply-add instruction of the device; the fastest of each type gives the rate of the type."""
    every, best = instructions(bench), dict[str, tuple[float, str]]()
    if not every:
        raise NotApplicable("the device has no instructions of matrix units that the language knows")
    for made in every:
        try:
            run, operations = product(bench, made)
        except TileLangError as error:
            found.remarks.append(f"{made.name} is not measured: {error.message}")
            continue
        rate = operations * 1e-9 / found.time(made.name, 1, run).best
        source = "registers" if _operands_in(made) == "register" else "shared memory"
        found.rate(f"{made.name}_gflops", rate, f"the instruction repeatedly, with operands in {source}")
        name = rates_of(_factor(made), made.licences)[-1]
        best[name] = max(best.get(name, (0.0, "")), (rate, made.name))
    for name, (rate, which) in best.items():
        told = None if bench.profile.assumed(f"rates.{name}") else bench.profile.rate(name)
        if told is None or rate > told:  # documents state the peak
            found.rate(name, rate, f"the fastest repeat of {which}")


def instructions(bench: Bench) -> list[Instruction]:
    """Instructions of warps and wider units; of those that differ only in their columns, the widest, and those half and a
    quarter as wide."""
    every = [i for i in known() if i.kind == "update" and i.lanes > 1 and set(i.shape) == {"m", "n", "k"}]
    here = [i for i in every if i.unavailable(bench.profile, bench.device.driver) is None and multiplies(i, _factor(i))]
    widest: dict[Any, int] = {}
    for i in here:
        widest[_kind(i)] = max(widest.get(_kind(i), 0), i.shape["n"])
    return [i for i in here if i.shape["n"] in [widest[_kind(i)] >> k for k in range(WIDEST)]]


def _kind(made: Instruction) -> tuple[Any, ...]:
    """The properties that instructions share if they differ only in their columns."""
    return made.level, made.shape["m"], made.shape["k"], tuple(o.dtypes for o in made.operands), made.licences


def _operands_in(made: Instruction) -> str:
    return next(o for o in made.operands if o.name != made.writes).memory


def product(bench: Bench, made: Instruction) -> tuple[Run, float]:
    """A product by this instruction alone, with its operands loaded once, and its number of operations."""
    m, n, k, plan = _in_registers(bench, made) if _operands_in(made) == "register" else _in_shared(bench, made)
    operations = 2.0 * m * n * k * bench.cores
    told = bench.profile.rate(rates_of(_factor(made), made.licences)[-1]) or 8 * (bench.profile.rate("float32_gflops") or 1e3)
    rounds = max(16, math.ceil(LAUNCH_SECONDS * told * 1e9 / operations))
    return _on_bytes(bench, plan(rounds)), operations * rounds


def _factor(made: Instruction) -> Any:
    return next(o for o in made.operands if o.name != made.writes).dtypes[0]


def _start(bench: Bench, made: Instruction, m: int, n: int, k: int, rounds: int) -> Schedule:
    """The product of a block's operands, repeated, with one block per core."""
    type, sums = _factor(made), made.operand(made.writes).dtypes[0]
    b, i, j, r, l = axes(b=bench.cores, m=m, n=n, r=rounds, k=k)
    turned = _operands_in(made) == "shared"  # both operands have rows along the reduction then
    A, B = input("A", type, b, i, l), input("B", type, b, *((j, l) if turned else (l, j)))
    left, right = A[b, i, l], B[b, j, l] if turned else B[b, l, j]
    factors = left * right if sums is type else f.cast(left, sums) * f.cast(right, sums)
    return schedule(define("C", f.sum(factors, over=(r, l)), b, i, j, allow=made.licences)).tile(b=1).to(block)


def _in_registers(bench: Bench, made: Instruction) -> tuple[int, int, int, Any]:
    """Rows, columns and depth of a block, and a function from repetitions to its schedule: fragments are loaded once."""
    rows, columns = made.shape["m"] * PIECES[0], made.shape["n"] * PIECES[1]
    m, n, k = rows * GRID[0], columns * GRID[1], made.shape["k"] * 2

    def plan(rounds: int) -> Schedule:
        start = _start(bench, made, m, n, k, rounds).tile(m=rows, n=columns).to(made.level).accumulate(register)
        return start.load("A", register).load("B", register).split(r=1).do(made.name, m="m", n="n", k="k")

    return m, n, k, plan


def _in_shared(bench: Bench, made: Instruction) -> tuple[int, int, int, Any]:
    """The same for an instruction that reads its operands from shared memory."""
    m, n, k = made.shape["m"] * 2, made.shape["n"], ROW_BYTES // _factor(made).bytes

    def plan(rounds: int) -> Schedule:
        start = _start(bench, made, m, n, k, rounds)
        for name in "AB":
            start = start.load(name, shared, layout=layout().swizzle(ROW_BYTES))
        start = start.tile(m=made.shape["m"]).to(made.level).accumulate(register)
        return start.split(r=1).do(made.name, m="m", n="n", k="k")

    return m, n, k, plan


def _on_bytes(bench: Bench, plan: Schedule) -> Run:
    """A run of a schedule on bytes that are small numbers in every type, since a device may be faster on zeros."""
    import numpy as np  # late: NumPy takes long to import

    draw = np.random.default_rng(0)
    small = {
        t.name: draw.integers(0, LARGEST_BYTE, (*t.shape, t.dtype.bytes), np.uint8).view(f"u{t.dtype.bytes}")[..., 0]
        for t in plan.computation.inputs
    }
    return bench.of_schedule(plan, small)


def copies(bench: Bench, found: Findings) -> None:
    """Sums over rows that go through shared memory: loaded by threads when needed, and copied asynchronously some iterations ahead."""
    if not bench.lockstep or not bench.profile.async_copy:
        raise NotApplicable("the device copies nothing to shared memory by itself")
    points = []
    for how, ahead in (("threads", 0), ("asynchronous", AHEAD)):
        made = next(asynchronous(bench), None) if ahead else None
        if ahead and made is None:
            raise NotApplicable("the language knows no copies of 16 bytes that the device makes by itself")
        run, moved = staged(bench, ahead, made)
        points.append((how, moved * 1e-9 / found.time(how, ahead, run).seconds))
    rates = dict(points)
    found.rate("staged_gb_per_s", rates["threads"], "sums over rows through shared memory, loaded by threads when needed")
    found.rate("async_copy_gb_per_s", rates["asynchronous"], f"the same by asynchronous copies {AHEAD} iterations ahead")


def asynchronous(bench: Bench) -> Iterator[Instruction]:
    """The instructions by which a thread asynchronously copies 16 bytes of floats to shared memory."""
    for i in known():
        if (
            i.kind == "move"
            and i.level == "thread"
            and i.completes != AT_ONCE
            and not i.unavailable(bench.profile, bench.device.driver)
        ):
            if math.prod(i.operands[0].shape) == 4 and float32 in i.operands[0].dtypes and i.operands[0].memory == "shared":
                yield i


def staged(bench: Bench, ahead: int, made: Instruction | None) -> tuple[Run, float]:
    """Such sums, and the bytes that they read."""
    threads, blocks = bench.threads, bench.cores * 2
    width = 4 * threads
    rows = COPIED_BYTES // 4 // width
    b, i, j = axes(b=blocks, i=rows, j=width)
    X = input("X", float32, b, i, j)
    steps = move().tile(i=1, j=4).to(thread)
    steps = steps.do(made.name) if made is not None else steps.vectorize(j=4)
    start = schedule(define("S", f.sum(X[b, i, j], over=i), b, j)).tile(b=1).to(block)
    plan = start.accumulate(register).split(i=COPIED_ROWS).load("X", shared, ahead=ahead, steps=steps)
    return bench.of_schedule(plan.tile(j=4).to(thread).split(i=1, unroll=True).vectorize(j=4)), 4.0 * blocks * rows * width
