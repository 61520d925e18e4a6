"""Conditions around loops that seem to differ between threads: kernels with many tails between barriers build in moments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang.core.expr import INDEX, Expr, Select, Var, index
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator.simulate import run
from tilelang.lowering.verify import verify
from tilelang.lowering.workarounds.diverge_tail_conditions import diverge_tail_conditions
from tilelang.semantics.reference import compare, random_arrays

BLOCK, L, K = Var("block_x", INDEX, 0, 2), Var("l", INDEX, 0, 2), Var("k", INDEX, 0, 2)
HELD, IN = shared("held", 32), array("given", 32)
MEET = ir.Barrier(("shared",))
STORE = ir.Store(HELD, (THREAD,), ir.Load(IN, (THREAD,)))
TAIL = BLOCK * 4 < 6


def conditions(body: ir.Stmt, threads: int = 32) -> list[str]:
    """The conditions, extents and stored values after the pass, in order."""
    kernel = diverge_tail_conditions(program(body, HELD, IN, threads=threads, grid=(3, 1, 1)).kernels[0])
    found: list[str] = []
    for s in ir.statements(kernel.body):
        found += [str(e) for e in ([s.condition] if isinstance(s, ir.If) else [s.extent] if isinstance(s, ir.For) else [])]
        found += [str(s.value.condition)] if isinstance(s, ir.Store) and isinstance(s.value, Select) else []
    return found


def loop(extent: Expr, body: ir.Stmt) -> ir.For:
    return ir.For(L, extent, body)


def test_a_condition_around_a_loop_reads_the_block_by_another_name() -> None:
    assert conditions(ir.Seq((ir.If(TAIL, loop(index(3), STORE)), MEET))) == ["block_x_apart * 4 < 6", "3"]


def test_a_condition_that_a_loop_keeps_does_too() -> None:
    assert conditions(ir.Seq((loop(index(3), ir.If(TAIL, STORE)), MEET))) == ["3", "block_x_apart * 4 < 6"]
    chosen = STORE.replace(value=Select(TAIL, STORE.value, index(0)))
    assert conditions(ir.Seq((loop(index(3), chosen), MEET))) == ["3", "block_x_apart * 4 < 6"]


def test_a_number_of_rounds_does_too() -> None:
    assert conditions(ir.Seq((loop(3 - BLOCK, STORE), MEET))) == ["3 - block_x_apart"]


def test_a_name_for_the_block_is_seen_through() -> None:
    row = Var("row", INDEX, 0, 1)
    named = ir.Seq((ir.Let(row, BLOCK // 2), loop(index(3), ir.If(row < 1, STORE)), MEET))
    assert conditions(named) == ["3", "block_x_apart // 2 < 1"]


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (ir.Seq((ir.If(TAIL, STORE), MEET)), ["block_x * 4 < 6"]),
        (ir.Seq((loop(index(3), ir.If(BLOCK * 4 + L < 6, STORE)), MEET)), ["3", "block_x * 4 + l < 6"]),
        (ir.Seq((loop(index(3), ir.If(BLOCK * 4 + THREAD < 6, STORE)), MEET)), ["3", "block_x * 4 + thread < 6"]),
        (ir.For(K, 3 - BLOCK, ir.Seq((STORE, MEET)), "do"), ["3 - block_x"]),
        (loop(index(3), ir.If(TAIL, STORE)), ["3", "block_x * 4 < 6"]),
    ],
    ids=["no loop", "differs by round", "differs by thread", "a loop with barriers", "no barriers"],
)
def test_what_no_copies_are_made_for_stays(body: ir.Stmt, kept: list[str]) -> None:
    assert conditions(body) == kept


def test_a_lone_thread_has_no_barriers_written() -> None:
    assert conditions(ir.Seq((loop(index(3), ir.If(TAIL, STORE)), MEET)), threads=1) == ["3", "block_x * 4 < 6"]


def two_products(block_x_apart: int = 0) -> tl.Schedule:
    """Two products in one kernel, the first one kept in registers that every thread fills with tails. 1: an axis takes the name."""
    m, n, k = tl.axes(m=7, n=9, k=12)
    reduced = tl.axes(block_x_apart=3) if block_x_apart else tl.axes(l=3)
    A, B = tl.input("A", tl.float32, m, reduced), tl.input("B", tl.float32, reduced, k)
    D = tl.input("D", tl.float32, k, n)
    S = tl.define("S", tl.sum(A[m, reduced] * B[reduced, k], over=reduced), m, k)
    C = tl.define("C", tl.sum(S[m, k] * D[k, n], over=k), m, n)
    return (
        tl.schedule(C).tile(n=4, m=3).to(tl.block).split(k=5)
        .load("D", tl.shared).compute("S", tl.register).tile(m=2, n=4).to(tl.thread)
    )  # fmt: skip


@pytest.mark.parametrize("taken", [0, 1])
def test_values_are_the_same(taken: int) -> None:
    schedule = two_products(taken)
    needed = ("diverge_tail_conditions",)
    lowered = lower(schedule.computation, schedule.steps, tl.load_profile("sapphire_rapids"), needs=needed)
    verify(lowered, "scalar_replacement")
    assert any(s.var.name.startswith("block_x_apart") for s in ir.statements(lowered.kernels[0].body) if isinstance(s, ir.Let))
    arrays = random_arrays(schedule.computation, seed=2)
    report = run(lowered, {t.name: arrays[t.name] for t in schedule.computation.inputs})
    assert report.findings == () and compare(schedule.computation, arrays, report.outputs)


@pytest.mark.needs_opencl
def test_many_tails_build_in_moments() -> None:
    """In a process of its own: a compiler that copies without end does not come back."""
    code = """
import tilelang as tl
from tests.lowering.test_diverge_tail_conditions import two_products
assert tl.compile(two_products(), "opencl").check()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout=100, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
