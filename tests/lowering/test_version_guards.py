"""Bodies with several guards get a second version without them; overlapping tails of vectors in stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.expr import Select
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.testing import check_schedule
from tilelang.testing.planner import tiny_profile


def stencil(rows: int, columns: int, outside: float = 0.0) -> tl.Tensor:
    """Two steps of a stencil of five points."""
    i, j = tl.axes(i=rows, j=columns)
    u = tl.input("U", tl.float32, i, j)
    for step in range(2):
        around = [tl.pad(u[i + a, j + b], outside) for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))]
        u = tl.define(f"V{step}", u[i, j] * 0.5 + (around[0] + around[1] + around[2] + around[3]) * 0.125, i, j)
    return u


def in_tiles(tensor: tl.Tensor, height: int, width: int, lanes: int = 8) -> tl.Schedule:
    """The first step is a stage of each tile of the second one."""
    made = tl.schedule(tensor).tile(i=height, j=width).to(tl.block)
    return made.compute("V0", tl.shared, steps=tl.move().vectorize(j=lanes)).vectorize(j=lanes)


def kernel_of(schedule: tl.Schedule) -> ir.Kernel:
    (kernel,) = lower(schedule.computation, schedule.steps, tiny_profile()).kernels
    return kernel


def innermost(kernel: ir.Kernel) -> Iterator[ir.For]:
    """The innermost loops."""
    for s in ir.statements(kernel.body):
        if isinstance(s, ir.For) and not any(isinstance(x, ir.For) for x in ir.statements(s.body)):
            yield s


def without_lets(stmt: ir.Stmt) -> ir.Stmt:
    return ir.seq(*(s for s in stmt.body if not isinstance(s, ir.Let))) if isinstance(stmt, ir.Seq) else stmt


def choices(stmt: ir.Stmt) -> int:
    """How many selects, conditions and partial vectors a statement has."""
    every = list(ir.statements(stmt))
    values = [x for s in every for e in ir.expressions(s) for x in e.walk()]
    partial = sum(isinstance(x, ir.Load) and x.count is not None for x in values)
    return sum(isinstance(x, Select) for x in values) + sum(isinstance(s, ir.If) for s in every) + partial


def faults(schedule: tl.Schedule) -> list[str]:
    rng = np.random.default_rng(1)
    arrays = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in schedule.computation.inputs}
    return check_schedule(schedule, arrays)


def test_one_version_has_no_guards_and_the_other_has_all() -> None:
    bodies = [without_lets(loop.body) for loop in innermost(kernel_of(in_tiles(stencil(40, 64), 10, 32)))]
    assert len(bodies) == 2
    for body in bodies:
        assert isinstance(body, ir.If) and body.otherwise is not None
        assert choices(body.then) == 0 and choices(body.otherwise) > 4


def test_a_body_with_one_guard_stays_as_it_is() -> None:
    i = tl.axes(i=64)
    x = tl.input("X", tl.float32, i)
    made = tl.schedule(tl.define("Y", tl.pad(x[i - 1], 0.0) + x[i], i)).tile(i=64).to(tl.block).split(i=8).vectorize(i=8)
    (loop,) = innermost(kernel_of(made))
    assert isinstance(loop.body, ir.Store)


def test_conditions_on_data_are_no_guards() -> None:
    i, j = tl.axes(i=8, j=64)
    x, n = tl.input("X", tl.float32, i, j), tl.input("n", tl.int64, i, range=(0, 64))
    value = tl.where(n[i] < 3, x[i, j], 0.0) + tl.where(n[i] < 9, x[i, j], 1.0)
    made = tl.schedule(tl.define("Y", value, i, j)).tile(i=8, j=64).to(tl.block).split(i=1, j=8).vectorize(j=8)
    assert not any(isinstance(loop.body, ir.If) for loop in innermost(kernel_of(made)))


def test_the_last_vector_of_a_stage_moves_back() -> None:
    (stage, *_) = innermost(kernel_of(in_tiles(stencil(40, 64), 10, 32)))
    lets = [s for s in ir.statements(stage) if isinstance(s, ir.Let)]
    assert [str(s.value) for s in lets] == [f"min({stage.var.name} * 8, 26)"]  # 34 elements
    narrow: list[Any] = [s for loop in innermost(kernel_of(in_tiles(stencil(40, 64), 10, 4))) for s in ir.statements(loop)]
    assert not any(isinstance(s, ir.Let) for s in narrow)  # 6 elements are no vector


@pytest.mark.parametrize("outside", [0.0, 2.5])
@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (1, 1), (3, 9), (9, 31), (13, 34)])
@pytest.mark.parametrize(("height", "width"), [(4, 11), (64, 64)])
def test_results_are_right(rows: int, columns: int, height: int, width: int, outside: float) -> None:
    tensor = stencil(rows, columns, outside)
    assert not faults(in_tiles(tensor, min(height, max(1, rows)), min(width, columns), 8 if columns >= 8 else 1))
