"""Instructions in the simulator: run by whole groups of threads, through their own meaning."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.lowering.gemm_kernels import at
from tests.lowering.small_kernels import ORDERS, THREAD, array, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import Axis, Cast, Expr, Var, const, index
from tilelang.instructions.fragment import fragment, row_major
from tilelang.instructions.instruction import IN_ORDER_GROUP, instruction, moves, use
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.passes.commit_groups import commit_groups
from tilelang.lowering.simulator.simulate import orders, run


@dataclasses.dataclass(frozen=True)
class Held:
    lanes: int
    slots: int


@dataclasses.dataclass(frozen=True)
class PairSum:
    """Both threads of a pair get, slot by slot, the sum of what the two hold."""

    name: str = "pair_sum"
    reads: tuple[str, ...] = ("x",)
    writes: str = "y"
    kind: str = "update"
    completes: str = "at once"
    proxy: str = ""
    family: str = ""

    def fragment(self, name: str) -> Held:
        return Held(2, 3)

    def simulate(self, operands: dict[str, Any]) -> dict[str, Any]:
        x = operands["x"]
        return {"y": np.broadcast_to(x.sum(axis=-2, keepdims=True), x.shape)}


def pair_sum(guard: Expr | None) -> ir.Program:
    x, out = array("x", 4, 2, 3), array("out", 4, 2, 3, role="output")
    held, total = ir.Buffer("held", dt.float32, (6,), "register"), ir.Buffer("total", dt.float32, (3,), "register")
    place = (ir.BLOCK[0], THREAD, index(0))
    instruction: ir.Stmt = ir.Instruction(PairSum(), (("x", held, (index(2),)), ("y", total, (index(0),))), 2, span=at(1))
    body = ir.seq(
        ir.Store(held, (index(2),), ir.Load(x, place, 3)),
        instruction if guard is None else ir.If(guard, instruction),
        ir.Store(out, place, ir.Load(total, (index(0),), 3)),
    )
    return program(body, x, out, held, total, threads=2, grid=(4, 1, 1))


def test_instruction_runs_by_groups() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    report = run(pair_sum(None), {"x": values})
    assert not report.findings
    np.testing.assert_array_equal(report.outputs["out"], np.broadcast_to(values.sum(1, keepdims=True), values.shape))


def test_what_completes_at_once_is_the_same_in_every_order() -> None:
    made = pair_sum(None)
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    early, late = (run(made, {"x": values}, order=order) for order in ("early", "late"))
    assert orders(made) == ("early",) and str(early) == str(late)
    np.testing.assert_array_equal(early.outputs["out"], late.outputs["out"])


def test_instruction_needs_its_whole_group() -> None:
    report = run(pair_sum(THREAD < 1), {"x": np.ones((4, 2, 3))})
    assert report.counts["divergent-instruction"] == 4 and report.findings[0].span == at(1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (None, {}),
        ("no wait", {"read-before-wait": 24, "copy-never-awaited": 8}),
        ("too late", {"read-before-wait": 24}),
        ("one too few", {"read-before-wait": 24, "copy-never-awaited": 8}),
        ("overwritten", {"source-overwritten": 8}),
        ("written", {"write-before-wait": 8}),
    ],
)
def test_registers_of_an_asynchronous_instruction(fault: str | None, found: dict[str, int], order: str | int) -> None:
    """Before the wait, its result in registers must not be read or written, nor its operands in registers be written."""
    x, out = array("x", 4, 2, 3), array("out", 4, 2, 3, role="output")
    held, total = ir.Buffer("held", dt.float32, (3,), "register"), ir.Buffer("total", dt.float32, (3,), "register")
    place, pairs = (ir.BLOCK[0], THREAD, index(0)), PairSum(completes=IN_ORDER_GROUP, family="pairs")
    wait = ir.Wait(int(fault == "one too few"), None, "pairs")
    one = const(1.0, dt.float32)
    body = ir.seq(
        ir.Store(held, (index(0),), ir.Load(x, place, 3)),
        ir.Instruction(pairs, (("x", held, (index(0),)), ("y", total, (index(0),))), 2),
        ir.Commit(None, "pairs"),
        ir.Store(held, (index(1),), one) if fault == "overwritten" else None,
        ir.Store(total, (index(1),), one) if fault == "written" else None,
        wait if fault not in ("no wait", "too late") else None,
        *(ir.Store(out, (*place[:2], index(k)), ir.Load(total, (index(k),))) for k in range(3)),
        wait if fault == "too late" else None,
    )
    report = run(
        program(body, x, out, held, total, threads=2, grid=(4, 1, 1)), {"x": np.ones((4, 2, 3), np.float32)}, order=order
    )
    assert report.counts == found


def warp_product() -> ir.Program:
    """Two 16 x 8 products by one warp each, with the fragments of a shipped matrix instruction."""
    mma = use("simulated_mma_m16n8k8")
    buffers = [array("A", 2, 16, 8), array("B", 2, 8, 8), array("C", 2, 16, 8, role="output")]
    maps = {b.name: mma.fragment(b.name) or row_major(b.shape) for b in buffers}
    held = [ir.Buffer(f"{b.name}_held", dt.float32, (maps[b.name].slots,), "register") for b in buffers]
    a, b, c = buffers
    lane, warp = THREAD % 32, THREAD // 32

    def moves(tensor: ir.Buffer, back: bool) -> ir.Stmt:
        fragment, registers = maps[tensor.name], held[buffers.index(tensor)]
        steps = []
        for slot in range(fragment.slots):
            place = (warp, *fragment.at(lane, index(slot)))
            inside = (index(slot),)
            steps.append(
                ir.Store(tensor, place, ir.Load(registers, inside))
                if back
                else ir.Store(registers, inside, ir.Load(tensor, place))
            )
        return ir.seq(*steps)

    zero = ir.seq(*(ir.Store(held[2], (index(slot),), const(0.0, dt.float32)) for slot in range(4)))
    operands = tuple((b.name, h, (index(0),)) for b, h in zip(buffers, held, strict=True))
    body = ir.seq(moves(a, False), moves(b, False), zero, ir.Instruction(mma, operands, 32), moves(c, True))
    return program(body, *buffers, *held, threads=64)


def test_shipped_matrix_instruction() -> None:
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 16, 8), (2, 8, 8)))
    report = run(warp_product(), {"A": a, "B": b})
    assert str(report) == "no faults found"
    np.testing.assert_array_equal(report.outputs["C"], a @ b)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("hasty", [False, True])
def test_asynchronous_move_instruction(order: str | int, hasty: bool) -> None:
    copy = use("cp_async_16_of_4_bytes")
    x, out, tile = array("x", 8, 4), array("out", 8, 4, role="output"), shared("tile", 8, 4)
    place = (THREAD, index(0))
    body = ir.seq(
        ir.Instruction(copy, (("D", tile, place), ("S", x, place)), span=at(1)),
        ir.Commit(),
        None if hasty else ir.Wait(0),
        ir.Store(out, place, ir.Load(tile, place, 4)),
        ir.Wait(0),
    )
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    report = run(program(body, x, out, tile, threads=8), {"x": values}, order=order)
    assert report.counts == ({"read-before-wait": 32} if hasty else {})
    assert hasty or (report.outputs["out"] == values).all()


def test_operand_whose_copies_disagree() -> None:
    m, slots = Axis("m", 4), fragment(2, 4, lambda lane, slot: slot)
    held = operand("X", dt.float32, "register", m, fragment=slots)
    given = operand("Y", dt.float32, "register", m, fragment=fragment(2, 2, lambda lane, slot: lane * 2 + slot))
    both = instruction("both_hold", means=moves(given[m], held[m]), operands=(held, given), level="warp", lanes=2)
    a, b = ir.Buffer("a", dt.float32, (4,), "register"), ir.Buffer("b", dt.float32, (2,), "register")
    n = Var("n", dt.int64, 0, 3)
    for value, found in ((Cast(n, dt.float32), {}), (Cast(n + THREAD // 2 * THREAD, dt.float32), {"instruction-operand": 1})):
        body = ir.seq(
            ir.For(n, index(4), ir.Store(a, (n,), value)),
            ir.Instruction(both, (("X", a, (index(0),)), ("Y", b, (index(0),))), 2),
        )
        assert run(program(body, a, b, threads=4), {}).counts == found


@pytest.mark.parametrize(
    ("name", "closed"), [("wgmma_m64n128k16_float16", True), ("mma_m16n8k16_float16_sum", False), ("tma_store_2d", False)]
)
def test_only_updates_that_complete_in_groups_are_closed_in_one(name: str, closed: bool) -> None:
    """A stage's store awaits itself, and what is done at once needs no wait."""
    kernel = ir.Kernel("k", (1, 1, 1), 128, (), ir.Instruction(use(name), ()))
    waits = [s for s in ir.statements(commit_groups(kernel).body) if isinstance(s, ir.Wait)]
    assert len(waits) == closed
