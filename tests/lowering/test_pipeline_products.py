"""Groups of products that are left unfinished at the end of a round, and where none may be."""

from __future__ import annotations

import pytest

from tests.lowering.role_kernels import Pipeline
from tests.lowering.test_roles import by_boxes, linear, lowered
from tilelang.core import dtype as dt
from tilelang.core.expr import Var, const, index
from tilelang.instructions.shipped.warpgroup_matrix import PRODUCTS
from tilelang.lowering import ir
from tilelang.lowering.passes.pipeline_products import pipeline_products
from tilelang.schedules.schedule import Schedule


def waits(plan: Schedule) -> list[int]:
    """How many groups of products may be unfinished after each wait of the role that computes."""
    (kernel,) = lowered(plan, "hopper").kernels
    consumer = next(role for role in kernel.roles if role.name == "consumer")
    return [s.pending for s in ir.statements(consumer.body) if isinstance(s, ir.Wait) and s.queue == "wgmma"]


@pytest.mark.parametrize(
    ("k", "ahead", "pending"),
    [(320, 3, [1, 0]), (320, 1, [1, 0]), (320, 0, [0]), (64, 3, [0])],
    ids=["a ring", "two slots", "one slot", "one round"],
)
def test_one_group_is_in_flight_where_a_slot_can_be_spared(k: int, ahead: int, pending: list[int]) -> None:
    assert waits(by_boxes(linear(128, 64, k), 64, None, ahead=ahead, back="registers")) == pending


def walk(*also: ir.Stmt, bytes: int = 0) -> ir.For:
    """Three rounds of one product each over a ring of two slots, and what else a round does before it gives its slot back."""
    k = Var("k", dt.int64, 0, 2)
    full, empty = (ir.Buffer(name, dt.uint64, (2,), "shared", "phases") for name in ("full", "empty"))
    product = ir.Instruction(PRODUCTS[dt.bfloat16, 64], ())
    round = (ir.Await(full, k % 2, index(0)), product, ir.Commit(None, "wgmma"), ir.Wait(0, None, "wgmma"))
    return ir.For(k, index(3), ir.seq(*round, *also, ir.Arrive(empty, k % 2, bytes=bytes)))


def kept(stmt: ir.For) -> bool:
    """Whether a walk keeps its wait where it is."""
    (kernel,) = Pipeline().program.kernels
    bodies = [stmt, *(role.body for role in kernel.roles[1:])]
    return pipeline_products(kernel.with_roles(bodies)).roles[0].body == stmt


def test_a_round_that_does_something_else_keeps_its_wait() -> None:
    result = ir.Store(ir.Buffer("sum", dt.float32, (1,), "register"), (index(0),), const(0.0, dt.float32))
    assert not kept(walk())
    assert kept(walk(result)), "it may need what the products gave"
    assert kept(walk(ir.Barrier(("shared",)))), "others may overwrite what the products read"
    assert kept(walk(bytes=16)), "an arrival that announces bytes fills a slot"


def test_roles_without_products_stay_as_they_are() -> None:
    (kernel,) = Pipeline().program.kernels
    assert pipeline_products(kernel) == kernel
