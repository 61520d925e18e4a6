"""Waits for stored boxes: as late as the memory that they are read from allows, and no later."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lowering.small_kernels import THREAD, array, kinds, program, shared
from tests.lowering.test_roles import by_boxes, linear, lowered
from tilelang import testing
from tilelang.core import dtype as dt
from tilelang.core.expr import Var, const, index
from tilelang.instructions.shipped.tensor_copy import tma_load_2d, tma_store_2d
from tilelang.lowering import ir
from tilelang.lowering.passes.sink_waits import sink_waits
from tilelang.lowering.printer import to_text
from tilelang.lowering.simulator import simulate

QUEUE = "tensor_store"
K, J = Var("k", dt.int64, 0, 3), Var("j", dt.int64, 0, 1)
SOURCE, OTHER = shared("S", 64, 64), shared("T", 64)


def stored() -> ir.Stmt:
    """One thread stores a box of S and waits for it."""
    return ir.If(
        THREAD < 1, ir.seq(ir.Instruction(tma_store_2d, (("S", SOURCE, ()),)), ir.Commit(None, QUEUE), ir.Wait(0, None, QUEUE))
    )


def after_the_pass(body: ir.Stmt) -> list[str]:
    """The statements of a kernel, by their first words, with their depth."""
    (kernel,) = program(body, array("out", 8, role="output"), SOURCE, OTHER, threads=32).kernels
    lines = to_text(sink_waits(kernel).body).splitlines()
    return [line if "do tma" not in line else line.split("(")[0] for line in lines]


BARRIER = ir.Barrier(("shared",))
BEGUN = ["if thread < 1:", "  do tma_store_2d", "  commit tensor_store"]


def test_a_wait_goes_round_its_loop_to_the_next_barrier() -> None:
    lines = after_the_pass(ir.For(K, index(4), ir.seq(BARRIER, stored())))
    inside = ["wait 0 tensor_store", "barrier shared", *BEGUN]
    assert lines == ["for k in 0..4:", *("  " + line for line in inside), "wait 0 tensor_store"]


def test_a_wait_stays_in_front_of_a_loop_that_would_repeat_it() -> None:
    inner = ir.For(J, index(2), BARRIER)
    lines = after_the_pass(ir.For(K, index(4), ir.seq(inner, stored())))
    assert lines[:4] == ["for k in 0..4:", "  wait 0 tensor_store", "  for j in 0..2:", "    barrier shared"]


def test_a_store_to_shared_memory_waits_and_one_elsewhere_does_not() -> None:
    def store(buffer: ir.Buffer) -> ir.Stmt:
        return ir.Store(buffer, (index(0),), const(1.0, dt.float32))

    elsewhere = after_the_pass(ir.seq(stored(), store(array("out", 8, role="output"))))
    assert elsewhere == [*BEGUN, "out[0] = 1.0: float32", "wait 0 tensor_store"]
    assert after_the_pass(ir.seq(stored(), store(OTHER))) == [*BEGUN, "wait 0 tensor_store", "T[0] = 1.0: float32"]


@pytest.mark.parametrize("queue", ["a_queue", "z_queue"])
def test_a_wait_for_something_else_stays(queue: str) -> None:
    begun = ir.seq(ir.Instruction(tma_store_2d, (("S", SOURCE, ()),)), ir.Commit(None, QUEUE), ir.Wait(0, None, queue))
    lines = after_the_pass(ir.For(K, index(4), ir.seq(BARRIER, ir.If(THREAD < 1, begun))))
    assert lines == ["for k in 0..4:", "  barrier shared", *("  " + line for line in BEGUN), f"    wait 0 {queue}"]


def test_a_wait_for_what_is_no_store_of_a_box_stays() -> None:
    begun = ir.seq(ir.Instruction(tma_load_2d, (("S", SOURCE, ()),)), ir.Commit(None, QUEUE), ir.Wait(0, None, QUEUE))
    body = ir.For(K, index(4), ir.seq(BARRIER, ir.If(THREAD < 1, begun)))
    (kernel,) = program(body, array("out", 8, role="output"), SOURCE, threads=32).kernels
    assert to_text(sink_waits(kernel).body) == to_text(body)


def test_what_another_role_fills_is_waited_for_at_once() -> None:
    """An arrival may give it back, and nothing here says which arrival does."""
    write = ir.Store(SOURCE, (index(0), index(0)), const(1.0, dt.float32))
    roles = ir.Roles((ir.Role("stores", 0, 32, stored()), ir.Role("fills", 32, 32, write)))
    (kernel,) = program(roles, array("out", 8, role="output"), SOURCE, threads=64).kernels
    assert sink_waits(kernel) == kernel


@pytest.mark.parametrize(("blocks", "pieces"), [(None, 1), (1, 2)], ids=["one tile", "several"])
def test_the_next_tile_begins_while_the_last_one_is_stored(blocks: int | None, pieces: int) -> None:
    """A wait before each piece but the very first, and one at the end."""
    (kernel,) = lowered(by_boxes(linear(136, 136, 72), 128, blocks), "hopper").kernels
    consumer = next(role for role in kernel.roles if role.name == "consumer")
    lines = [line.strip() for line in to_text(consumer.body).splitlines()]
    waits = [k for k, line in enumerate(lines) if line == "wait 0 tensor_store"]
    assert [lines[k + 1] if k + 1 < len(lines) else "" for k in waits] == ["barrier shared"] * pieces + [""]


@pytest.mark.parametrize("order", ["late", 1])
def test_every_wait_is_needed(order: str | int) -> None:
    plan = by_boxes(linear(136, 136, 72), 128, 1)
    made = lowered(plan, "hopper")
    (kernel,) = made.kernels
    waits = [s for r in kernel.roles for s in ir.statements(r.body) if isinstance(s, ir.Wait) and s.queue == QUEUE]
    assert len(waits) == 3

    def go(s: Any) -> Any:
        if isinstance(s, ir.Wait) and s.queue == QUEUE:
            return ir.Seq(())
        return s.map_children(go) if isinstance(s, ir.Stmt) else s

    broken = made.replace(kernels=(kernel.with_roles([go(r.body) for r in kernel.roles]),))
    found = kinds(simulate.run(broken, testing.arrays(plan.computation, "integers", 3), order=order))
    assert {"source-overwritten", "copy-never-awaited"} <= found
