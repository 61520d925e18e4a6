"""Instructions whose device reaches shared memory by a way of its own find what threads wrote there only behind a fence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tests.lowering.small_kernels import ORDERS, kinds
from tests.lowering.test_roles import by_boxes, linear, lowered
from tilelang import testing
from tilelang.lowering import ir
from tilelang.lowering.simulator import simulate
from tilelang.schedules.schedule import Schedule


def stored_by_hand() -> Schedule:
    """A product of warpgroups whose producers store what they load."""
    roles = tl.warps(1).as_role("producer") + tl.warpgroups(1).as_role("consumer")
    swizzled = tl.layout().swizzle(128)
    start = tl.schedule(linear(64, 64, 192)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=64)
    for name in "AB":
        start = start.load(name, tl.shared, layout=swizzled, ahead=1, on="producer", steps=tl.move().vectorize(k=8))
    return start.tile(m=64).to("consumer").do("wgmma_m64n64k16", m="m", n="n", k="k")


PLANS: dict[str, Callable[[], Schedule]] = {
    "stored by producers": stored_by_hand,
    "results in pieces": lambda: by_boxes(linear(128, 128, 128), 128, None),
    "results in pieces, persistent": lambda: by_boxes(linear(128, 256, 64), 128, 1),
    "results whole": lambda: by_boxes(linear(72, 64, 64), 64, None, back="whole"),
}


def run(program: ir.Program, plan: Schedule, order: str | int) -> set[str]:
    return kinds(simulate.run(program, testing.arrays(plan.computation, "integers", 3), order=order))


def without(program: ir.Program, chosen: Callable[[ir.Stmt], bool]) -> list[ir.Program]:
    """The program without one of the statements that are chosen, for each of them."""
    (kernel,) = program.kernels

    def drop(stmt: Any, which: ir.Stmt) -> Any:
        return ir.Seq(()) if stmt is which else stmt.map_children(lambda c: drop(c, which) if isinstance(c, ir.Stmt) else c)

    found = [s for s in ir.statements(kernel.body) if chosen(s)]
    return [program.replace(kernels=(kernel.replace(body=drop(kernel.body, s)),)) for s in found]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("what", PLANS)
def test_every_fence_is_needed(what: str, order: str | int) -> None:
    plan = PLANS[what]()
    program = lowered(plan, "hopper")
    assert not run(program, plan, order)
    broken = without(program, lambda s: isinstance(s, ir.Fence) and s.memory == "shared")
    assert broken
    for one in broken:
        assert "missing-fence" in run(one, plan, order)


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_proxy_still_reads_is_not_written_before_its_wait(order: str | int) -> None:
    """The other way round no fence is needed, but the wait for what was begun."""
    plan = PLANS["results in pieces"]()
    broken = without(lowered(plan, "hopper"), lambda s: isinstance(s, ir.Wait) and s.queue == "tensor_store")
    found = [run(one, plan, order) for one in broken]
    assert len(found) == 2 and "source-overwritten" in found[0] and "copy-never-awaited" in found[1]


def test_no_fence_stands_where_nothing_was_stored() -> None:
    """Of the barriers around a buffer that is used again, one stands before its stores and one behind them."""
    (kernel,) = lowered(PLANS["results in pieces, persistent"](), "hopper").kernels
    body = next(r.body for r in kernel.roles if r.name == "consumer")
    count = Counter(
        type(s).__name__
        for s in ir.statements(body)
        if isinstance(s, (ir.Fence, ir.Barrier)) and getattr(s, "memory", "") != "register"
    )
    assert count == {"Barrier": 4, "Fence": 2}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("moved", [False, True], ids=["without", "at the end"])
def test_products_in_registers_are_awaited_before_they_are_read(moved: bool, order: str | int) -> None:
    """In a block without roles, all threads read the same slots of their results."""
    plan = tl.schedule(linear(64, 64, 64)).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=64)
    for name in "AB":
        plan = plan.load(name, tl.shared, layout=tl.layout().swizzle(128), steps=tl.move().vectorize(k=8))
    plan = plan.tile(m=64).to(tl.warpgroup).do("wgmma_m64n64k16", m="m", n="n", k="k")
    program = lowered(plan, "hopper")
    assert not run(program, plan, order)
    (broken,) = without(program, lambda s: isinstance(s, ir.Wait))
    (kernel,) = broken.kernels
    if moved:
        broken = broken.replace(kernels=(kernel.replace(body=ir.seq(kernel.body, ir.Wait(0, None, "wgmma"))),))
    assert run(broken, plan, order) == {"read-before-wait"} | (set() if moved else {"copy-never-awaited"})
