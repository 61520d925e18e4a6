"""Planted faults: without one of its barriers, guards, fills or waits a kernel is found out, or did not need it.

The kernels are the examples', at odd sizes and with tiny tiles; `benchmarks/mutations.py` runs all of them and lists the survivors.
"""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.test_examples import SIZES, load
from tilelang.lowering import ir
from tilelang.testing.mutants import KINDS
from tilelang.testing.mutations import Tally, decided

QUICK = ["02_batched_gelu.simt", "06_row_sum.simt", "08_softmax.softmax_rows", "12_embedding_bag.simt", "13_causal_product.simt"]


def awaited(m: int = 9, k: int = 40) -> tl.Schedule:
    """Rows summed, brought by asynchronous copies two rounds ahead."""
    i, j = tl.axes(i=m, j=k)
    x = tl.input("X", tl.float16, i, j)
    y = tl.define("Y", tl.sum(x[i, j], over=j), i)
    steps = tl.move().tile(i=1, j=8).to(tl.thread).do("cp_async_16")
    return (
        tl.schedule(y).tile(i=4).to(tl.block).accumulate(tl.register).split(j=16)
        .load("X", tl.shared, ahead=2, steps=steps).tile(i=1).to(tl.thread)
    )  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_what_is_dropped_is_noticed_or_was_not_needed(name: str) -> None:
    example, chosen = name.split(".")
    schedule = load(example).schedules(*SIZES[example][1], small=True)[chosen]
    tally = Tally()
    tally.run(decided(schedule, tl.load_profile("pocl")), schedule.computation)
    assert not tally.missed, str(tally)
    assert tally.noticed["barrier"] == tally.total["barrier"] > 0, str(tally)
    assert tally.share >= 0.7, str(tally)


def test_every_wait_is_needed() -> None:
    schedule = awaited()
    program = decided(schedule, tl.load_profile("ampere"))
    assert any(isinstance(s, ir.Wait) for k in program.kernels for s in ir.statements(k.body))
    tally = Tally()
    tally.run(program, schedule.computation)
    assert tally.noticed["wait"] == tally.total["wait"] > 0, str(tally)
    assert not tally.missed, str(tally)


def test_a_kernel_without_protection_has_no_mutants() -> None:
    (i,) = (tl.axes(i=8),)
    y = tl.define("Y", tl.input("X", tl.float32, i)[i] + 1, i)
    tally = Tally()
    tally.run(decided(tl.schedule(y).tile(i=4).to(tl.block)), tl.schedule(y).computation)
    assert tally.total.total() == 0
    assert tally.share == 1.0


def test_text_counts_every_kind() -> None:
    tally = Tally()
    assert all(kind in str(tally) for kind in KINDS)
