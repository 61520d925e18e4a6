"""Roles in the simulator: they run beside each other in any order, and what is missing between them is found whatever the order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.lowering.role_kernels import LANES, Pipeline
from tests.lowering.small_kernels import ORDERS, THREAD, array, kinds, program
from tilelang.core import dtype as dt
from tilelang.core.expr import Expr, const, index
from tilelang.errors import DeviceError
from tilelang.lowering import ir
from tilelang.lowering.passes.barriers import insert_barriers, missing_barrier
from tilelang.lowering.printer import to_text
from tilelang.lowering.simulator.simulate import run
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c import emitter
from tilelang.lowering.targets.c.dialect import RoleTexts
from tilelang.lowering.verify import InternalError, verify


@pytest.mark.parametrize("order", [*ORDERS, 2, 3])
@pytest.mark.parametrize("copies", [True, False], ids=["copies", "stores"])
@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_a_ring_between_roles(slots: int, copies: bool, order: str | int) -> None:
    made = Pipeline(slots, copies=copies).program
    verify(made, "build")
    x = np.arange(5 * LANES, dtype=np.float32).reshape(5, LANES)
    report = run(made, {"x": x}, order=order)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(report.outputs["out"], x[:, ::-1])


@pytest.mark.parametrize("order", [*ORDERS, 2, 3])
def test_copies_over_what_threads_stored_stand_behind_a_fence(order: str | int) -> None:
    x = np.arange(5 * LANES, dtype=np.float32).reshape(5, LANES)
    report = run(Pipeline(clears=True).program, {"x": x}, order=order)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(report.outputs["out"], x[:, ::-1])


WRONG: dict[str, tuple[Pipeline, set[str]]] = {
    "no empty barrier": (Pipeline(awaits_empty=False), {"data-race", "deadlock"}),
    "no full barrier": (Pipeline(awaits_full=False), {"data-race", "uninitialised-read", "read-before-wait"}),
    "the wrong phase": (Pipeline(empty_parity=0), {"deadlock"}),
    "an arrival before the read": (Pipeline(arrives_after=False), {"data-race"}),
    "one thread arrives for all": (Pipeline(together=0), {"data-race"}),
    "too many arrivals awaited": (Pipeline(arrivals=2), {"deadlock"}),
    "too few bytes": (Pipeline(bytes=4), {"data-race", "uninitialised-read", "read-before-wait", "deadlock"}),
    "too many bytes": (Pipeline(bytes=1024), {"deadlock"}),
    "no fence before a copy": (Pipeline(clears=True, fence=False), {"missing-fence"}),
    "no barrier after the first phase": (Pipeline(barrier=False), {"data-race"}),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("what", WRONG)
def test_what_is_missing_between_roles_is_found_in_any_order(what: str, order: str | int) -> None:
    made, expected = WRONG[what]
    report = run(made.program, {"x": np.ones((5, LANES), np.float32)}, order=order)
    assert kinds(report) & expected, str(report)


def test_a_deadlock_names_every_role_that_waits() -> None:
    report = run(Pipeline(empty_parity=0).program, {"x": np.ones((5, LANES), np.float32)})
    assert [str(f).split(": ", 1)[1] for f in report.findings if f.kind == "deadlock"] == [
        "thread 0 of block (0, 0, 0), `await full[q % 2] phase q // 2 % 2`: the consumer waits here for ever: no other role can go on,"
        " and no copy is under way",
        "thread 32 of block (0, 0, 0), `await empty[r % 2] phase (r // 2 % 2 + 0) % 2`: the producer waits here for ever: no other role"
        " can go on, and no copy is under way",
    ]


def test_roles_print() -> None:
    assert to_text(Pipeline().program.kernels[0]).splitlines()[7:] == [
        "  if thread < 1:",
        "    phases full of 1 arrival",
        "    phases empty of 1 arrival",
        "  barrier shared",
        "  role producer, threads 32..64 with 40 registers each:",
        "    for r in 0..5:",
        "      await empty[r % 2] phase (r // 2 % 2 + 1) % 2",
        "      if thread < 1:",
        "        arrive full[r % 2] and await 128 bytes",
        "        do row_copy(D=ring[r % 2, c], S=x[r, c]) to full[r % 2]",
        "  role consumer, threads 0..32:",
        "    for q in 0..5:",
        "      await full[q % 2] phase q // 2 % 2",
        "      held[0] = ring[q % 2, 31 - thread]",
        "      arrive empty[q % 2] by 32 threads",
        "      out[q, thread] = held[0]",
    ]


def changed(change: Callable[[ir.Role], ir.Role], which: int = 0) -> ir.Program:
    """The pipeline with one of its roles changed."""
    made = Pipeline().program
    (kernel,) = made.kernels
    *before, last = ir.flattened(kernel.body)
    roles = tuple(change(r) if k == which else r for k, r in enumerate(kernel.roles))
    return made.replace(kernels=(kernel.replace(body=ir.seq(*before, last.replace(body=roles))),))


ILLEGAL: dict[str, tuple[ir.Program, str]] = {
    "threads of no role": (changed(lambda r: r.replace(threads=16)), "roles of threads"),
    "one name twice": (changed(lambda r: r.replace(name="consumer")), "roles ['consumer', 'consumer']"),
    "a reader that awaits nothing": (Pipeline(awaits_full=False).program, "no phase is awaited before"),
    "a writer that awaits nothing": (Pipeline(awaits_empty=False, copies=False).program, "no phase is awaited before"),
    "an arrival of more than there are": (Pipeline(together=64).program, "64 of 32 threads"),
    "statements after roles": (
        Pipeline().program.replace(
            kernels=tuple(k.replace(body=ir.Seq((k.body, ir.Barrier(("shared",))))) for k in Pipeline().program.kernels)
        ),
        "not the last statement",
    ),
    "a signal of what completes at once": (
        changed(
            lambda r: r.replace(
                body=ir.seq(*(s.replace(signal=None) for s in ir.statements(r.body) if isinstance(s, ir.Instruction)))
            )
        ),
        "",
    ),
}


@pytest.mark.parametrize("what", ILLEGAL)
def test_illegal_roles_are_found(what: str) -> None:
    made, message = ILLEGAL[what]
    with pytest.raises(InternalError) as caught:
        verify(made, "build")
    assert message in str(caught.value)


def test_threads_of_a_role_meet_among_themselves() -> None:
    """A barrier in a role is of its threads: the other role neither needs nor joins it."""
    made = Pipeline().program
    (kernel,) = made.kernels
    shared = ir.Buffer("turned", kernel.shared[0].dtype, (LANES,), "shared")

    def turning(body: ir.Stmt) -> ir.Stmt:
        """What is stored goes through shared memory, to another thread."""
        match body:
            case ir.Store(buffer=ir.Buffer(name="out"), value=value):
                lane = body.indices[1]
                there = ir.Store(shared, (lane,), value)
                return ir.seq(there, body.replace(value=ir.Load(shared, (LANES - 1 - lane,))))
            case ir.Seq(parts):
                return ir.seq(*map(turning, parts))
            case ir.For():
                return body.replace(body=turning(body.body))
            case _:
                return body

    bodies = [turning(r.body) if r.name == "consumer" else r.body for r in kernel.roles]
    bare = kernel.with_roles(bodies).replace(buffers=(*kernel.buffers, shared))
    done = insert_barriers(bare)
    assert missing_barrier(bare) and not missing_barrier(done)
    assert [sum(isinstance(s, ir.Barrier) for s in ir.statements(r.body)) for r in done.roles] == [0, 2]
    x = np.arange(5 * LANES, dtype=np.float32).reshape(5, LANES)
    for k in (bare, done):
        report = run(made.replace(kernels=(k,)), {"x": x}, order="late")
        assert kinds(report) == (set() if k is done else {"data-race"}), str(report)
    np.testing.assert_array_equal(report.outputs["out"], x)
    beside = done.replace(body=ir.If(ir.THREAD < 1, done.body))
    with pytest.raises(InternalError):
        verify(made.replace(kernels=(beside,)), "barriers")


TEXTS = RoleTexts(
    barrier="{pointer}", meet="meet({number}, {threads});", registers="registers({registers}, {threads});",
    init="init({barrier}, {arrivals});", init_done="init_done();", arrive="arrive({barrier});",
    arrive_bytes="arrive({barrier}, {bytes});", wait="wait({barrier}, {parity});", together="warp();", elected="elected({thread})",
)  # fmt: skip


def test_roles_are_branches_that_count_their_threads() -> None:
    made = Pipeline(copies=False, slots=1).program
    text = emitter.emit(made, dataclasses.replace(opencl.DIALECT, roles=TEXTS))
    assert [line.strip() for line in text[text.index("if (thread < 1)") :].splitlines()] == [
        "if (thread < 1) {",
        "init(full + 0, 1);",
        "init_done();",
        "init(empty + 0, 1);",
        "init_done();",
        "}",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        "if (32 <= thread) {",
        "registers(40, 64);",
        "const int thread_1 = thread - 32;",
        "for (int r = 0; r < 5; ++r) {",
        "wait(empty + 0, (r % 2 + 1) % 2);",
        "ring[thread_1] = x[r * 32 + thread_1];",
        "warp();",
        "if (thread_1 % 32 == 0) arrive(full + 0);",
        "}",
        "}",
        "if (thread < 32) {",
        "for (int q = 0; q < 5; ++q) {",
        "wait(full + 0, q % 2);",
        "held[0] = ring[31 - thread];",
        "warp();",
        "if (thread % 32 == 0) arrive(empty + 0);",
        "out[q * 32 + thread] = held[0];",
        "}",
        "}",
        "}",
    ]


def elected(then: ir.Stmt, *around: Expr) -> bool:
    """Whether a dialect lets one thread of the first warp do what the first thread of a role is to do."""
    body: ir.Stmt = ir.If(THREAD < 1, then)
    for condition in around:
        body = ir.If(condition, body)
    made = program(ir.Roles((ir.Role("only", 0, 64, body),)), array("out", 64, role="output"), threads=64)
    return "if (elected(thread))" in emitter.emit(made, dataclasses.replace(opencl.DIALECT, roles=TEXTS))


def test_any_thread_of_the_first_warp_may_be_the_first() -> None:
    """Where whole warps come, and nothing asks which thread it is."""
    out = array("out", 64, role="output")

    def stored(i: Expr) -> ir.Stmt:
        return ir.Store(out, (i,), const(1.0, dt.float32))

    assert elected(stored(index(5)))
    assert elected(stored(index(5)), ir.BLOCK[0] < 3)
    assert not elected(stored(THREAD))
    assert not elected(stored(index(5)), THREAD % 2 < 1), "half of a warp would wait for the other"


def test_a_dialect_without_roles_says_so() -> None:
    with pytest.raises(DeviceError) as caught:
        emitter.emit(Pipeline().program, opencl.DIALECT)
    assert caught.value.code == "no-roles"
