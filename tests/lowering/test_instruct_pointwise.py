"""`do` of a pointwise instruction: by a thread and by a warp, stored everywhere, from everywhere; right, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.test_instruct import POCL, SIMULATED, check, issued, refused
from tilelang.instructions.fragment import fragment
from tilelang.instructions.instruction import Instruction, computes, instruction, moves, updates
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c.emitter import emit
from tilelang.profiles.files import load_profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule


def scaled_relu(lanes: int, read_from: Any, write_to: Any) -> Instruction:
    """D = max(X * S, 0) over `lanes` neighbours, by one thread."""
    n = tl.axes(n=lanes)

    def vector(name: str, memory: Any) -> Any:
        run = None if memory is tl.register else fragment(1, lanes, lambda lane, slot: slot)
        return operand(name, tl.float32, memory, n, fragment=run)

    X, D, S = vector("X", read_from), vector("D", write_to), operand("S", tl.float32, tl.register)
    return instruction(
        "scaled_relu", means=computes(D[n], tl.maximum(S[()] * X[n], 0)), operands=(X, S, D), level=tl.thread, replace=True,
        template={"opencl": "{D} = max({X} * {S}, 0.0f);", "cpu": f"{{D}} = max({{X}} * {{S}}, (float{lanes})(0.0f));"},
    )  # fmt: skip


def scaled(rows: int, columns: int) -> Any:
    i, j = tl.axes(i=rows, j=columns)
    A, B = tl.input("A", tl.float32, i, j), tl.input("B", tl.float32, i)
    return tl.define("Y", tl.maximum(A[i, j] * B[i], 0), i, j)


def from_register(c: Any) -> Schedule:
    scaled_relu(8, tl.register, tl.global_)
    return (
        tl.schedule(c).tile(i=2, j=32).to(tl.block).load("B", tl.register)
        .load("A", tl.register, steps=tl.move().vectorize(j=8)).do("scaled_relu", n="j")
    )  # fmt: skip


def from_global(c: Any) -> Schedule:
    scaled_relu(8, tl.global_, tl.global_)
    return tl.schedule(c).tile(i=2, j=32).to(tl.block).load("B", tl.register).do("scaled_relu")


def through_shared(c: Any) -> Schedule:
    scaled_relu(8, tl.shared, tl.shared)
    return (
        tl.schedule(c).tile(i=2, j=32).to(tl.block).load("A", tl.shared).via(tl.shared).tile(i=1, j=8).to(tl.thread)
        .load("B", tl.register).do("scaled_relu")
    )  # fmt: skip


def in_a_walk(c: Any) -> Schedule:
    scaled_relu(8, tl.register, tl.global_)
    return (
        tl.schedule(c).tile(i=4).to(tl.block).split(j=16).load("A", tl.register, ahead=1).load("B", tl.register).do("scaled_relu")
    )


FORMS: dict[str, Callable[[Any], Schedule]] = {
    "from register": from_register, "from global": from_global, "through shared": through_shared, "in a walk": in_a_walk,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_vector_instruction_on_the_device(form: str) -> None:
    """Rows and blocks of columns in part, pieces of the instruction whole."""
    plan = FORMS[form](scaled(5, 40))
    check(plan, POCL, opencl=True)
    assert {s.semantics.name for s in issued(plan, POCL)} == {"scaled_relu"}


def test_by_many_threads() -> None:
    check(through_shared(scaled(5, 40)), SIMULATED)


def test_the_text_is_the_template_s() -> None:
    plan = from_register(scaled(2, 32))
    source = emit(lower(plan.computation, plan.steps, POCL), opencl.DIALECT)
    texts = [line.split("= ", 1)[1] for line in source.splitlines() if "= max(" in line]
    assert len(texts) == 8 and texts[5] == "max(A_register_1_1 * B_register_1, 0.0f);"


@pytest.mark.parametrize("form", FORMS)
def test_a_piece_that_exists_in_part_is_refused(form: str) -> None:
    error = refused(lambda: FORMS[form](scaled(5, 36)), POCL)
    assert error.code == "unguardable-do" and "it would store Y there" in error.message
    assert error.counterexample == "j = 36 is past the end, but the tile of 8 that begins at j = 32 includes it"


def test_a_piece_that_does_not_exist_is_left_out() -> None:
    plan = from_global(scaled(5, 40))
    kernel = lower(plan.computation, plan.steps, POCL).kernels[0]
    guards = [s for s in ir.statements(kernel.body) if isinstance(s, ir.If)]
    assert guards and all(isinstance(s.then, ir.Instruction) for s in guards)


# ---------------------------------------------------------------- stages


def chained(to: Any, use: Any = None) -> Schedule:
    """A stage by the instruction, and a second pointwise definition that reads it."""
    i, j = tl.axes(i=6, j=32)
    A, B = tl.input("A", tl.float32, i, j), tl.input("B", tl.float32, i)
    T = tl.define("T", tl.maximum(A[i, j] * B[i], 0), i, j)
    c = tl.computation("chained", outputs=(tl.define("Y", T[i, j] + 1, i, j),))
    scaled_relu(8, tl.global_, to)
    return tl.schedule(c).tile(i=2, j=16).to(tl.block).load("B", tl.register).compute("T", to, steps=tl.move().do("scaled_relu"))


@pytest.mark.parametrize("memory", [tl.shared, tl.register], ids=str)
def test_stage_of_one_thread(memory: Any) -> None:
    plan = chained(memory)
    check(plan, POCL, opencl=True)
    assert {s.operands[0][1].memory for s in issued(plan, POCL)} == {str(memory)}


def test_an_operand_that_a_stage_left_in_registers() -> None:
    i, j = tl.axes(i=6, j=32)
    A, B = tl.input("A", tl.float32, i, j), tl.input("B", tl.float32, i)
    T = tl.define("T", A[i, j] + 1, i, j)
    c = tl.computation("chained", outputs=(tl.define("Y", tl.maximum(T[i, j] * B[i], 0), i, j),))
    scaled_relu(8, tl.register, tl.global_)
    start = tl.schedule(c).tile(i=2, j=16).to(tl.block).load("B", tl.register)
    check(start.compute("T", tl.register).do("scaled_relu"), POCL, opencl=True)


def stored_by_fours(columns: int) -> Schedule:
    """Results go through shared memory, and from there by an instruction that moves."""
    n = tl.axes(n=4)
    s, d = (operand(name, tl.float32, memory, n, fragment=fragment(1, 4, lambda lane, slot: slot))
            for name, memory in (("s", tl.shared), ("d", tl.global_)))  # fmt: skip
    instruction("store4", means=moves(d[n], s[n]), operands=(s, d), level=tl.thread, replace=True,
                template=dict.fromkeys(("cpu", "opencl"), "{d} = {s};"))  # fmt: skip
    i, j = tl.axes(i=5, j=columns)
    c = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] + 1, i, j)
    return tl.schedule(c).tile(i=2, j=8).to(tl.block).via(tl.shared, steps=tl.move().tile(i=1, j=4).to(tl.thread).do("store4"))


def test_a_store_by_an_instruction() -> None:
    check(stored_by_fours(20), POCL, opencl=True)
    check(stored_by_fours(20), SIMULATED)
    assert len(issued(stored_by_fours(20), POCL)) == 1
    assert refused(lambda: stored_by_fours(18), POCL).code == "unguardable-do"


def test_a_load_in_pieces_that_do_not_fill_its_region() -> None:
    n = tl.axes(n=8)
    s, d = (operand(name, tl.float32, memory, n, fragment=fragment(1, 8, lambda lane, slot: slot))
            for name, memory in (("s", tl.global_), ("d", tl.shared)))  # fmt: skip
    instruction("load8", means=moves(d[n], s[n]), operands=(s, d), level=tl.thread, replace=True)

    def plan(columns: int) -> Schedule:
        i, j = tl.axes(i=2, j=columns)
        c = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] + 1, i, j)
        move = tl.move().tile(i=1, j=8).to(tl.thread).do("load8")
        return tl.schedule(c).tile(i=1, j=columns).to(tl.block).load("X", tl.shared, steps=move)

    check(plan(16), POCL)
    assert refused(lambda: plan(12), POCL).code == "unguardable-do"


def brought(rows: int, columns: int, read: Any = tl.global_) -> str:
    """An instruction that brings some rows of neighbours to registers."""
    m, n = tl.axes(m=rows, n=columns)
    held = fragment(1, rows * columns, lambda lane, slot: (slot // columns, slot % columns))
    s, d = (operand(name, tl.float32, memory, m, n, fragment=held) for name, memory in (("s", read), ("d", tl.register)))
    instruction("bring", means=moves(d[m, n], s[m, n]), operands=(s, d), level=tl.thread, replace=True)
    return "bring"


def test_what_an_instruction_brings_to_registers_belongs_to_its_thread() -> None:
    i, j = tl.axes(i=4, j=32)
    start = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).tile(i=2, j=16).to(tl.block)
    fours, own = tl.move().tile(i=1, j=4).to(tl.thread).do("bring"), tl.move().tile(i=1, j=8).to(tl.thread).split(j=4).do("bring")
    brought(1, 4)
    check(start.load("X", tl.register, steps=fours).tile(i=1, j=4).to(tl.thread), SIMULATED)
    check(start.load("X", tl.register, steps=own).tile(i=1, j=8).to(tl.thread).vectorize(j=4), SIMULATED)
    turned = start.load("X", tl.register, steps=fours).load("X", tl.register)
    check(turned.tile(i=1, j=4).to(tl.thread, order=tl.layout("j", "i")), SIMULATED)
    check(start.load("X", tl.register, steps=tl.move().split(i=1, j=4).do("bring")).vectorize(j=4), POCL)


@pytest.mark.parametrize("steps", [tl.move(), tl.move().split(i=1, j=4), tl.move().split(j=4)])
def test_an_instruction_that_brings_what_no_tile_gives_to_threads_is_refused(steps: Any) -> None:
    """It was left out, and plain loops brought to each thread what it reads."""
    i, j = tl.axes(i=4, j=32)
    start = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).tile(i=2, j=16).to(tl.block)
    plan = start.load("X", tl.register, steps=steps.do(brought(1, 4))).tile(i=1, j=4).to(tl.thread)
    error = refused(lambda: plan, SIMULATED)
    assert error.code == "not-lowered-yet" and "`do bring`" in error.message


def test_rows_in_registers_follow_one_another_or_are_refused() -> None:
    i, j = tl.axes(i=4, j=32)
    c = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    quarters = tl.layout(lambda i, j: (j // 4, i, j % 4))

    def plan(columns: int) -> Schedule:
        start = tl.schedule(c).tile(i=4, j=columns).to(tl.block).load("X", tl.shared, layout=quarters)
        return start.load("X", tl.register, steps=tl.move().split(i=2, j=4).do(brought(2, 4, tl.shared))).vectorize(j=4)

    check(plan(4), POCL)
    error = refused(lambda: plan(8), POCL)
    assert error.code == "instruction-mismatch" and str(error.counterexample).startswith(
        "element 4 of the operand is in X_register"
    )


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("stored", [False, True])
def test_rows_in_registers_that_a_vector_reads_beyond_are_refused(lanes: int, stored: bool) -> None:
    """A vector wider than its tile needs room behind each row of registers, so that the next row does not follow."""
    i, j = tl.axes(i=4, j=4)
    x = tl.input("X", tl.float32, i, j)
    p = tl.define("P", x[i, j] + 0, i, j)
    start = tl.schedule(tl.define("Y", (p if stored else x)[i, j] * 2, i, j)).tile(i=2, j=2).to(tl.block).load("X", tl.shared)
    if stored:  # by a stage that computes
        a, b = tl.axes(i=2, j=2)
        D, S = operand("D", tl.float32, tl.register, a, b), operand("S", tl.float32, tl.shared, a, b, fragment=(
            fragment(1, 4, lambda lane, slot: (slot // 2, slot % 2))))  # fmt: skip
        instruction("plus_0", means=computes(D[a, b], S[a, b] + 0), operands=(D, S), level=tl.thread, replace=True,
                    template={"opencl": "{D} = *(__local float4*){S.address};"})  # fmt: skip
        start = start.compute("P", tl.register, steps=tl.move().tile(i=2, j=2).to(tl.thread).do("plus_0"))
    else:
        start = start.load("X", tl.register, steps=tl.move().tile(i=2, j=2).to(tl.thread).do(brought(2, 2, tl.shared)))
    plan = start.tile(i=2, j=2).to(tl.thread).vectorize(j=lanes)
    if lanes == 2:
        check(plan, SIMULATED)
        return
    error = refused(lambda: plan, SIMULATED)
    assert error.code == "instruction-mismatch" and "in rows of 4" in error.message
    assert str(error.counterexample).startswith("element 2 of the operand is in ")


def test_registers_that_are_not_in_a_row() -> None:
    i, j = tl.axes(i=32, j=6)
    A, B = tl.input("A", tl.float32, i, j), tl.input("B", tl.float32, j)
    T = tl.define("T", A[i, j] + 1, i, j)
    c = tl.computation("chained", outputs=(tl.define("Y", tl.maximum(T[i, j] * B[j], 0), j, i),))
    scaled_relu(8, tl.register, tl.global_)
    start = tl.schedule(c).tile(i=16, j=2).to(tl.block).load("B", tl.register)
    error = refused(lambda: start.compute("T", tl.register).do("scaled_relu"), POCL)
    assert error.code == "instruction-mismatch" and "8 consecutive registers" in error.message


# ---------------------------------------------------------------- meaning


def test_two_reads_of_one_tensor_are_two_operands() -> None:
    """A difference: which read is which operand matters."""
    n = tl.axes(n=4)
    a, b, d = (operand(name, tl.float32, tl.global_, n, fragment=fragment(1, 4, lambda lane, slot: slot)) for name in "abd")
    instruction("difference", means=computes(d[n], a[n] - b[n]), operands=(a, b, d), level=tl.thread, replace=True,
                template=dict.fromkeys(("cpu", "opencl"), "{d} = {a} - {b};"))  # fmt: skip
    i, j = tl.axes(i=3, j=8)
    X = tl.input("X", tl.float32, i, tl.axes(k=9))
    check(
        tl.schedule(tl.define("Y", X[i, j + 1] - X[i, j], i, j)).tile(i=1, j=8).to(tl.block).do("difference"), POCL, opencl=True
    )


def test_storing_in_a_narrower_type_is_part_of_the_meaning() -> None:
    n = tl.axes(n=4)
    a = operand("a", tl.float32, tl.global_, n, fragment=fragment(1, 4, lambda lane, slot: slot))
    d = operand("d", tl.bfloat16, tl.global_, n, fragment=fragment(1, 4, lambda lane, slot: slot))
    instruction("narrow", means=computes(d[n], a[n] + 1), operands=(a, d), level=tl.thread, replace=True)
    i = tl.axes(i=16)
    X = tl.input("X", tl.float32, i)
    check(tl.schedule(tl.define("Y", tl.cast(X[i] + 1, tl.bfloat16), i)).tile(i=8).to(tl.block).do("narrow"), POCL)
    error = refused(lambda: tl.schedule(tl.define("Y", X[i] + 1, i)).tile(i=8).to(tl.block).do("narrow"), POCL)
    assert error.counterexample == "dtype of Y: the instruction has bfloat16, but the step has float32"


def test_rows_that_are_not_neighbours() -> None:
    """A block of two rows is one run of the instruction and two in the tensor."""
    m, n = tl.axes(m=2, n=4)
    a, d = (operand(name, tl.float32, tl.global_, m, n, fragment=fragment(1, 8, lambda lane, slot: (slot // 4, slot % 4)))
            for name in "ad")  # fmt: skip
    instruction("block", means=computes(d[m, n], -a[m, n]), operands=(a, d), level=tl.thread, replace=True)

    def plan(width: int) -> Schedule:
        i, j = tl.axes(i=4, j=width)
        return tl.schedule(tl.define("Y", -tl.input("X", tl.float32, i, j)[i, j], i, j)).tile(i=2, j=4).to(tl.block).do("block")

    check(plan(4), POCL)
    error = refused(lambda: plan(8), POCL)
    assert error.code == "instruction-mismatch" and "elements (0, 3) and (1, 0) are 5 apart" in str(error)


def test_by_a_warp() -> None:
    """Lanes hold four neighbours each; the tail of whole pieces is left out by all of them."""
    n = tl.axes(n=128)
    a, d = (
        operand(name, tl.float32, tl.global_, n, fragment=fragment(32, 4, lambda lane, slot: 4 * lane + slot)) for name in "ad"
    )
    instruction("warp_exp", means=computes(d[n], tl.exp(a[n])), operands=(a, d), level=tl.warp, replace=True)

    def plan(columns: int) -> Schedule:
        i, j = tl.axes(i=3, j=columns)
        c = tl.define("Y", tl.exp(tl.input("X", tl.float32, i, j)[i, j]), i, j)
        return tl.schedule(c).tile(i=1, j=256).to(tl.block).tile(j=128).to(tl.warp).do("warp_exp")

    for columns in (384, 256):
        assert check_schedule(plan(columns), arrays(plan(columns).computation), profile=SIMULATED) == []
    assert refused(lambda: plan(300)).code == "unguardable-do"


@pytest.mark.parametrize("memory", [tl.shared, tl.global_])
def test_a_scalar_in_a_memory_is_one_element_from_its_address(memory: Any) -> None:
    """Without a fragment: a thread gives the address of the one element that there is."""
    x = tl.axes(x=4)
    d = operand("d", tl.float32, tl.global_, x, fragment=fragment(1, 4, lambda lane, slot: slot))
    v, s = operand("v", tl.float32, tl.register, x), operand("s", tl.float32, memory)
    instruction("add_scalar", means=computes(d[x], v[x] + s[()]), operands=(d, v, s), level=tl.thread, replace=True)
    i, j = tl.axes(i=6, j=8)
    A, B = tl.input("A", tl.float32, i, j), tl.input("B", tl.float32, i)
    start = tl.schedule(tl.define("Y", A[i, j] + B[i], i, j)).tile(i=2, j=8).to(tl.block)
    start = start.load("B", tl.shared) if memory is tl.shared else start
    plan = start.load("A", tl.register, steps=tl.move().vectorize(j=4)).split(i=1)
    check(plan.do("add_scalar"), SIMULATED)
    scaled_relu(4, tl.register, tl.global_)  # does not match; the scalar's instruction is among the nearest
    error = refused(lambda: plan.do("scaled_relu"), SIMULATED)
    assert error.code == "instruction-mismatch"


@pytest.mark.parametrize("kind", ["load", "compute", "store"])
def test_several_elements_in_a_memory_need_a_fragment(kind: str) -> None:
    x = tl.axes(x=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    i, j = tl.axes(i=4, j=8)
    A = tl.input("A", tl.float32, i, j)
    P = tl.define("P", A[i, j] * 2, i, j) if kind == "compute" else A
    places = {"load": (tl.shared, tl.global_), "compute": (tl.shared, tl.global_), "store": (tl.global_, tl.register)}[kind]

    def plan(written: Any, read: Any) -> Schedule:
        d, s = (operand(n, tl.float32, m, x, fragment=f) for n, m, f in zip("ds", places, (written, read), strict=True))
        means = moves(d[x], s[x]) if kind == "load" else computes(d[x], s[x] * 2)
        instruction("four", means=means, operands=(d, s), level=tl.thread, replace=True)
        start = tl.schedule(tl.define("Y", P[i, j] * 2, i, j)).tile(i=1, j=4).to(tl.block)
        steps = tl.move().tile(j=4).to(tl.thread).do("four")
        if kind == "store":
            return start.load("A", tl.register).do("four")
        return start.load("A", tl.shared, steps=steps) if kind == "load" else start.compute("P", tl.shared, steps=steps)

    for written, read, name in ((None, run, "d"), (run, None, "s")):
        if name == "s" and kind == "store":
            check(plan(written, read), SIMULATED)  # registers need none
            continue
        error = refused(lambda written=written, read=read: plan(written, read), SIMULATED)  # type: ignore[misc]
        assert error.code == "instruction-definition" and error.help == f"add fragment= to tl.operand({name!r}, ...)"
    check(plan(run, run), SIMULATED)


def test_a_stage_is_given_to_threads_by_its_instruction_alone() -> None:
    """What it reads is in global memory: no step has placed it yet when the threads' tiles are chosen."""
    x = tl.axes(x=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    d, s = operand("d", tl.float32, tl.shared, x, fragment=run), operand("s", tl.float32, tl.global_, x, fragment=run)
    instruction("twice", means=computes(d[x], s[x] * 2), operands=(d, s), level=tl.thread, replace=True)
    i, j = tl.axes(i=4, j=8)
    A = tl.input("A", tl.float32, i, j)
    P = tl.define("P", A[i, j] * 2, i, j)
    start = tl.schedule(tl.define("Y", P[i, j] + P[i, 7 - j], i, j)).units(block=tl.warps(1)).tile(i=4, j=8).to(tl.block)
    plan = start.compute("P", tl.shared, steps=tl.move().do("twice")).tile(j=1).to(tl.thread)
    check(plan, SIMULATED)
    assert [s.semantics.name for s in issued(plan, SIMULATED)] == ["twice"]


@pytest.mark.parametrize("memory", [tl.shared, tl.register])
def test_a_stage_by_an_instruction_above_the_stage_that_it_reads_is_refused(memory: Any) -> None:
    x = tl.axes(x=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    d, s = operand("d", tl.float32, tl.shared, x, fragment=run), operand("s", tl.float32, tl.shared, x, fragment=run)
    instruction("twice", means=computes(d[x], s[x] * 2), operands=(d, s), level=tl.thread, replace=True)
    i, j = tl.axes(i=4, j=8)
    A = tl.input("A", tl.float32, i, j)
    P = tl.define("P", A[i, j] + 1, i, j)
    Q = tl.define("Q", P[i, j] * 2, i, j)
    start = tl.schedule(tl.define("Y", Q[i, j] + 1, i, j)).tile(i=4, j=8).to(tl.block)
    plan = start.compute("Q", tl.shared, steps=tl.move().do("twice")).compute("P", memory).tile(j=1).to(tl.thread)
    error = refused(lambda: plan, SIMULATED)
    assert error.code == "stage-order" and error.counterexample == "P[i, j] has no value yet"


@pytest.mark.parametrize("memory", [tl.shared, tl.register])
def test_an_instruction_updates_an_accumulator_of_several_threads(memory: Any) -> None:
    """In shared memory every thread updated the first rows of the tile."""
    x = tl.axes(x=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    a = operand("a", tl.float32, tl.register)
    b, c = operand("b", tl.float32, tl.shared, x, fragment=run), operand("c", tl.float32, memory, x, fragment=run)
    instruction("row_update", means=updates(c[x], a[()] * b[x]), operands=(a, b, c), level=tl.thread, replace=True)
    i, j, k = tl.axes(i=8, j=8, k=8)
    A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    start = tl.schedule(tl.define("Y", tl.sum(A[i, k] * B[k, j], over=k), i, j)).tile(i=4, j=4).to(tl.block)
    plan = start.accumulate(tl.shared).split(k=4).load("B", tl.shared).tile(i=2, j=4).to(tl.thread)
    plan = plan if memory is tl.shared else plan.accumulate(tl.register)
    check(plan.split(k=1).load("A", tl.register).split(i=1).do("row_update"), SIMULATED)


def of_lanes(lanes: int, level: Any) -> str:
    """An instruction that negates one element for each of some lanes."""
    n = tl.axes(n=lanes)
    a, d = (operand(name, tl.float32, tl.global_, n, fragment=fragment(lanes, 1, lambda lane, slot: lane)) for name in "ad")
    instruction("lanes", means=computes(d[n], -a[n]), operands=(a, d), level=level, lanes=lanes, replace=True)
    return "lanes"


@pytest.mark.parametrize("name, warp", [("ampere", 32), ("cdna3", 64), ("rdna3", 32), ("mali_g76", 8)])
@pytest.mark.parametrize("lanes", [8, 32, 64])
def test_an_instruction_is_for_warps_of_as_many_threads(name: str, warp: int, lanes: int) -> None:
    """Not for half a warp, which would issue it twice with the numbers of its threads, nor for several."""
    i, profile = tl.axes(i=256), load_profile(name)
    plan = tl.schedule(tl.define("Y", -tl.input("X", tl.float32, i)[i], i)).tile(i=128).to(tl.block)
    plan = plan.tile(i=64).to(tl.warp).do(of_lanes(lanes, tl.warp))
    if lanes == warp:
        assert check_schedule(plan, arrays(plan.computation), profile=profile) == []
        return
    error = refused(lambda: plan, profile)
    assert error.code == "instruction-not-here"
    assert error.message.endswith(f": it is for a warp of {lanes} threads, but one of profile {name} has {warp}")


def test_padding_that_nothing_fills() -> None:
    n = tl.axes(n=4)
    a, d = (operand(name, tl.float32, tl.global_, n, fragment=fragment(1, 4, lambda lane, slot: slot)) for name in "ad")
    instruction("padded", means=computes(d[n], -tl.pad(a[n], 0)), operands=(a, d), level=tl.thread, replace=True)
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, tl.axes(k=8))
    error = refused(lambda: tl.schedule(tl.define("Y", -tl.pad(X[i - 1], 0), i)).tile(i=4).to(tl.block).do("padded"), POCL)
    assert error.code == "unguardable-do" and "nothing fills the elements outside X" in error.message


def test_two_outputs_are_no_instruction() -> None:
    i = tl.axes(i=16)
    X = tl.input("X", tl.float32, i)
    c = tl.computation("two", outputs=(tl.define("Y", X[i] + 1, i), tl.define("Z", X[i] * 2, i)))
    scaled_relu(8, tl.register, tl.global_)
    error = refused(lambda: tl.schedule(c).tile(i=16).to(tl.block).do("scaled_relu"), POCL)
    assert error.code == "instruction-mismatch" and "2 outputs" in str(error.counterexample)


def test_an_operand_of_one_element_in_memory() -> None:
    D, X = operand("D", tl.float32, tl.global_), operand("X", tl.float32, tl.register)
    instruction("minus_one_element", means=computes(D[()], -X[()]), operands=(X, D), level=tl.thread, replace=True,
                template={"cpu": "{D} = -{X};"})  # fmt: skip
    i = tl.axes(i=8)
    start = tl.schedule(tl.define("W", -tl.input("V", tl.float32, i)[i], i)).tile(i=1).to(tl.block)
    kernel = tl.compile(start.load("V", tl.register).do("minus_one_element"), target="cpu")
    np.testing.assert_array_equal(kernel(np.arange(8, dtype=np.float32)), -np.arange(8, dtype=np.float32))


def sum_of_rows(first: Any, second: Any) -> Schedule:
    """X[i, j] + X[i + 8, j] by an instruction that reads runs of both; each read has its own place in shared memory."""
    n = tl.axes(n=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    x, y = (operand(name, tl.float32, tl.shared, n, fragment=run) for name in "xy")
    d = operand("d", tl.float32, tl.register, n)
    instruction("add_rows", means=computes(d[n], x[n] + y[n]), operands=(x, y, d), level=tl.thread, replace=True)
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, a=16, b=8)
    D = tl.define("D", X[i, j] + X[i + 8, j], i, j)
    start = tl.schedule(tl.define("Z", D[i, j] + 1, i, j)).tile(i=8, j=8).to(tl.block)
    start = start.load(X[i, j], tl.shared, layout=first).load(X[i + 8, j], tl.shared, layout=second)
    return start.split(i=1, j=4).compute("D", tl.register, steps=tl.move().do("add_rows"))


def test_two_reads_of_one_tensor_have_layouts_of_their_own() -> None:
    columns = tl.layout("b", "a")
    check(sum_of_rows(None, None), SIMULATED)
    for layouts in ((columns, None), (None, columns)):
        error = refused(partial(sum_of_rows, *layouts), SIMULATED)
        assert error.code == "instruction-mismatch" and "are 8 apart" in str(error.counterexample)
