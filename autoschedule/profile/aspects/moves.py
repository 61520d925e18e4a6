"""The cost of loading a tile into shared memory in another order: cycles of one core per element, or per vector of all lanes.

Each is measured as a sum over a staged tile, minus the same sum without staging.
"""

from __future__ import annotations

from typing import Any

from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.computations.computation import Tensor, axes, input
from tilelang.computations.define import define
from tilelang.computations.functions import pad, sum
from tilelang.core.dtype import float32
from tilelang.core.layout import layout
from tilelang.profiles.profile import block, register, shared
from tilelang.schedules.schedule import Schedule, move, schedule

ROUNDS = 20
ROWS, COLUMNS = 128, 256


def moves(bench: Bench, found: Findings) -> None:
    """Whole rows by vectors; columns that become rows (a transposition); windows of an image with its border."""
    if bench.lockstep:
        raise NotApplicable("where threads run together, moves are bound by the memory that they read")
    lanes = bench.lanes
    b, i, j, r = axes(b=bench.cores, i=ROWS, j=COLUMNS, r=ROUNDS)
    X = input("X", float32, b, i, j)
    rows = _start(define("S", sum(X[b, i, j], over=i), b, r, j))
    panels = layout(lambda b, i, j: (j // lanes, i, j % lanes))
    plain = _cycles(bench, found, "rows", _finish(rows, "j", "i", lanes))
    by_vectors = rows.load("X", shared, layout=panels, steps=move().vectorize(j=lanes))
    moved = _cycles(bench, found, "rows by vectors", _finish(by_vectors, "j", "i", lanes))
    found.rate("vector_move_cycles", (moved - plain) * lanes, "copying a vector to a panel in shared memory")
    columns = _start(define("S", sum(X[b, i, j], over=j), b, r, i))
    turned = layout(lambda b, i, j: (i // lanes, j, i % lanes))
    moved = _cycles(bench, found, "columns by squares", _finish(columns.load("X", shared, layout=turned), "i", "j", lanes))
    gathered = _cycles(bench, found, "columns in place", _finish(columns, "i", "j", lanes))
    found.rate("gathered_element_cycles", gathered, "an element of a vector whose elements are in different rows, read in place")
    found.rate("turned_vector_cycles", (moved - plain) * lanes, "copying a vector to a panel, transposed")
    by_elements, vectors = _windows(bench, found, 1), _windows(bench, found, lanes)
    found.rate("padded_move_cycles", by_elements, "copying an element of a padded image window to a panel")
    found.rate("padded_vector_move_cycles", vectors * lanes, "copying a vector of such elements, if the copy is vectorized")


def _windows(bench: Bench, found: Findings, vector: int) -> float:
    """Cycles per element of 3 x 3 windows of an image whose width is not a multiple of the lanes."""
    lanes = bench.lanes
    b, r, c, p, q, u, v = axes(b=bench.cores, r=ROUNDS, c=8, p=28, q=28, u=3, v=3)
    X = input("X", float32, b, c, p, q)
    windows = sum(pad(X[b, c, p + u - 1, q + v - 1], 0.0), over=(c, u, v))
    start = schedule(define("Z", windows, b, r, p, q)).fuse(pq=("p", "q")).fuse(k=("c", "u", "v")).tile(b=1).to(block).split(r=1)
    panels = layout(lambda b, k, pq: (pq // lanes, k, pq % lanes))
    steps = move().vectorize(pq=vector) if vector > 1 else move()
    run = bench.of_schedule(_finish(start.load("X", shared, layout=panels, steps=steps), "pq", "k", lanes))
    elements = ROUNDS * 8 * 9 * 28 * 28
    return found.time("windows", vector, run, elements).seconds * 1e9 / found.known["cycle_ns"]


def _start(defined: Tensor) -> Schedule:
    """A tile per core, one iteration after another."""
    return schedule(defined).tile(b=1).to(block).split(r=1)


def _finish(start: Schedule, lanes_axis: str, reduced: str, lanes: int) -> Schedule:
    """The sum over a tile, vectorized along one axis."""
    vectors: dict[str, Any] = {lanes_axis: lanes}
    steps: dict[str, Any] = {reduced: 1}
    return start.split(**vectors).accumulate(register).split(**steps).vectorize(**vectors)


def _cycles(bench: Bench, found: Findings, series: str, plan: Schedule) -> float:
    """A core's cycles per element of the tile."""
    elements = ROUNDS * ROWS * COLUMNS
    return found.time(series, 1, bench.of_schedule(plan), elements).seconds * 1e9 / found.known["cycle_ns"]
