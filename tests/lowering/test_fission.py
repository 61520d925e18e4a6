"""Threads in loops: the simulator finds the same values before and after, and nothing else, whatever stands between barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.small_kernels import array, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Axis, Binary, Const, Expr, Var, cast, const, index
from tilelang.errors import Refusal
from tilelang.instructions.instruction import instruction, updates
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.passes.fission import run_threads_in_loops
from tilelang.lowering.passes.scalar_replacement import replace_by_scalars
from tilelang.lowering.passes.unroll import unroll
from tilelang.lowering.passes.values_across_barriers import vector_widths
from tilelang.lowering.passes.vectorize import vectorize
from tilelang.lowering.printer import to_text
from tilelang.lowering.simulator import simulate
from tilelang.lowering.verify import InternalError, verify

N = 8
T = Var("thread", INDEX, 0, N - 1)
S, X, OUT = shared("S", N), array("X", N), array("Out", N, role="output")
MEET = ir.Barrier(("shared",))
IN_LOOPS = ("threads_in_loops",)
ZERO, ONE = index(0), const(1.0, dt.float32)


def var(name: str, extent: int) -> Var:
    return Var(name, INDEX, 0, extent - 1)


K = var("k", 3)


def register(name: str, *shape: int, type: dt.DType = dt.float32, role: str = "") -> ir.Buffer:
    return ir.Buffer(name, type, shape, "register", role)


R = register("r", 1)


def load(buffer: ir.Buffer, *at: Expr | int, lanes: int = 1) -> ir.Load:
    return ir.Load(buffer, tuple(i if isinstance(i, Expr) else index(i) for i in at), lanes)


def put(buffer: ir.Buffer, *at: Expr | int, value: Expr) -> ir.Store:
    return ir.Store(buffer, tuple(i if isinstance(i, Expr) else index(i) for i in at), value)


def equal(left: Expr, right: int) -> Expr:
    return Binary("==", left, index(right))


def arguments(of: ir.Program) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    return {b.name: generator.integers(1, 7, b.shape).astype(b.dtype.numpy) for b in of.buffers if b.role == "input"}


def found(of: ir.Program, arrays: dict[str, Any]) -> dict[str, Any]:
    """The outputs in the simulator, which has nothing to report."""
    report = simulate.run(of, arrays)
    assert not report.counts, str(report)
    return report.outputs


def same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether outputs agree to the bit, any NaN with any other one."""

    def numbers(array: Any) -> Any:
        return array if array.dtype.kind in "iub" else array.astype(np.float64)  # of bfloat16, NumPy does not know what a NaN is

    return all(np.array_equal(numbers(before[n]), numbers(after[n]), equal_nan=before[n].dtype.kind not in "iub") for n in before)


def split(before: ir.Program, arrays: dict[str, Any] | None = None) -> ir.Kernel:
    """The kernel after the pass, which is right then, and after each pass that follows."""
    given = arguments(before) if arrays is None else arrays
    expected = found(before, given)
    after, done = before, list[str]()
    for name, run in (
        ("fission", run_threads_in_loops), ("vectorize", vectorize), ("unroll", lambda k: unroll(k, 256)),
        ("scalar_replacement", replace_by_scalars),
    ):  # fmt: skip
        after = after.replace(kernels=tuple(run(k) for k in after.kernels))
        verify(after, name, after=done)
        assert same(expected, found(after, given)), name
        done.append(name)
    (kernel,) = after.kernels
    assert kernel.threads == 1
    assert not any(isinstance(s, ir.Barrier) for s in ir.statements(kernel.body))
    made = run_threads_in_loops(before.kernels[0])
    loops = [s for s in ir.statements(made.body) if isinstance(s, ir.For)]
    assert all((s.var.lower, s.var.upper) == (0, int(s.extent.value) - 1) for s in loops if isinstance(s.extent, Const))
    return made


def lines(kernel: ir.Kernel) -> list[str]:
    return to_text(kernel.body).splitlines()


def arrays_of(kernel: ir.Kernel) -> dict[str, tuple[int, ...]]:
    """The arrays over threads, by name."""
    return {b.name: b.shape for b in kernel.shared if b.name.endswith("_by_thread")}


# ---------------------------------------------------------------- what is split, and what stays


def test_statements_between_barriers_become_loops() -> None:
    body = ir.Seq((put(S, T, value=load(X, T) + 1.0), MEET, put(OUT, T, value=load(S, 7 - T))))
    assert lines(split(program(body, X, OUT, S, threads=N))) == [
        "threads tid in 0..8:",
        "  S[tid] = X[tid] + 1.0",
        "threads tid in 0..8:",
        "  Out[tid] = S[7 - tid]",
    ]


def test_as_many_neighbours_cross_at_once_as_a_vector_touches() -> None:
    single, wide, odd = (register(name, 8) for name in ("single", "wide", "odd"))
    j = var("j", 6)
    body = ir.Seq((
        put(single, K, value=load(single, 7)),
        put(wide, 4, value=load(X, 0, lanes=4)),
        ir.For(j, index(6), put(odd, j, value=ONE), "vector"),
    ))  # fmt: skip
    assert vector_widths(body) == {single: 1, wide: 4, odd: 2}, "as far as rows of 8 divide"


def rotation() -> ir.Stmt:
    """x[0] = S of the neighbour, three times."""
    step = ir.Seq((put(S, T, value=load(R, 0)), MEET, put(R, 0, value=load(S, (T + 1) % N) * 2.0), MEET))
    return ir.Seq((put(R, 0, value=load(X, T)), ir.For(K, index(3), step), put(OUT, T, value=load(R, 0))))


def test_a_loop_with_barriers_stays_outside_and_registers_cross_it() -> None:
    kernel = split(program(rotation(), X, OUT, S, R, threads=N))
    assert lines(kernel) == [
        "threads tid in 0..8:",
        "  r_by_thread[tid, 0] = X[tid]",
        "for k in 0..3:",
        "  threads tid in 0..8:",
        "    S[tid] = r_by_thread[tid, 0]",
        "  threads tid in 0..8:",
        "    r_by_thread[tid, 0] = S[(tid + 1) % 8] * 2.0",
        "threads tid in 0..8:",
        "  Out[tid] = r_by_thread[tid, 0]",
    ]
    assert [(b.name, b.offset) for b in kernel.shared] == [("S", 0), ("r_by_thread", 64)]
    assert kernel.shared_bytes == 64 + 4 * N


def test_uniform_conditions_stay_outside() -> None:
    again = ir.Seq((put(S, T, value=load(S, T) + load(R, 0)), MEET))
    inner = ir.If(equal(K, 1), again, ir.Seq((MEET, put(R, 0, value=load(R, 0) + load(S, 7 - T)), MEET)))
    body = ir.Seq(
        (put(R, 0, value=load(X, T)), put(S, T, value=ONE), MEET, ir.For(K, index(3), inner), put(OUT, T, value=load(R, 0)))
    )
    kernel = split(program(body, X, OUT, S, R, threads=N))
    assert [line.strip() for line in lines(kernel)].count("if k == 1:") == 1


def test_a_loop_that_may_have_no_round_keeps_what_was_there() -> None:
    i, block = var("i", 2), Var("block_x", INDEX, 0, 1)
    step = ir.Seq((put(R, 0, value=load(S, 7 - T)), MEET))
    body = ir.Seq((put(R, 0, value=load(X, T)), put(S, T, value=ONE), MEET, ir.For(i, block, step),
                   put(array("O", 2, N, role="output"), block, T, value=load(R, 0))))  # fmt: skip
    kernel = split(program(body, X, array("O", 2, N, role="output"), S, R, threads=N, grid=(2, 1, 1)))
    assert arrays_of(kernel) == {"r_by_thread": (N, 1)}


def test_a_kernel_of_one_thread_stays_as_it_is() -> None:
    kernel = program(put(OUT, 0, value=ONE), X, OUT, S, threads=1).kernels[0]
    assert run_threads_in_loops(kernel) is kernel


# ---------------------------------------------------------------- which threads


def test_a_loop_is_as_long_as_threads_have_an_effect() -> None:
    def half(n: int) -> ir.Stmt:
        return ir.Seq((ir.If(Binary("<", T, index(n)), put(S, T, value=load(S, T) + load(S, T + n))), MEET))

    last = ir.Seq((put(R, 0, value=load(S, 0)), ir.If(equal(T, 0), put(OUT, T, value=load(R, 0)))))
    rest = ir.If(Binary("<", index(0), T), put(OUT, T, value=ONE))
    kernel = split(
        program(ir.Seq((put(S, T, value=load(X, T)), MEET, half(4), half(2), half(1), last, MEET, rest)), X, OUT, S, R, threads=N)
    )
    assert lines(kernel) == [
        "threads tid in 0..8:",
        "  S[tid] = X[tid]",
        "threads tid in 0..4:",
        "  S[tid] = S[tid] + S[tid + 4]",
        "threads tid in 0..2:",
        "  S[tid] = S[tid] + S[tid + 2]",
        "S[0] = S[0] + S[1]",
        "r[0] = S[0]",
        "Out[0] = r[0]",
        "threads tid in 0..7:",
        "  Out[tid + 1] = 1.0: float32",
    ]


@pytest.mark.parametrize("n", [5, 8, 1000, 1024])
def test_tails_where_threads_do_not_divide(n: int) -> None:
    threads = 1024 if n > 8 else 8
    t = Var("thread", INDEX, 0, threads - 1)
    x, out, s, r = array("X", n), array("Out", n, role="output"), shared("S", threads), register("r", 1)
    exists = Binary("<", t, index(n))
    first = ir.If(exists, put(r, 0, value=load(x, t)), put(r, 0, value=const(0.0, dt.float32)))
    body = ir.Seq((first, put(s, t, value=load(r, 0)), MEET, ir.If(exists, put(out, t, value=load(r, 0) - load(s, 0)))))
    kernel = split(program(body, x, out, s, r, threads=threads))
    assert arrays_of(kernel) == {"r_by_thread": (threads, 1)}
    assert f"threads tid in 0..{n}:" in lines(kernel)


@pytest.mark.parametrize("kind", ["vector", "serial"])
def test_neighbours_of_neighbouring_threads_are_one_loop(kind: str) -> None:
    x, y, lane, j = array("Xs", 2, 4 * N), array("Ys", 2, 4 * N, role="output"), var("lane", 4), var("j", 2)
    store = put(y, j, T * 4 + lane, value=load(x, j, T * 4 + lane) * 2.0)
    guarded = ir.If(Binary("<", T, index(6)), ir.For(j, index(2), ir.For(lane, index(4), store, kind)))
    rest = ir.If(Binary("<", index(5), T), ir.For(j, index(2), ir.For(lane, index(4), put(y, j, T * 4 + lane, value=ONE), kind)))
    text = lines(split(program(ir.Seq((guarded, MEET, rest)), x, y, threads=N)))
    word = {"vector": "threads", "serial": "for"}[kind]
    assert text[:3] == ["for j in 0..2:", f"  {word} element in 0..24:", "    Ys[j, element] = Xs[j, element] * 2.0"]
    turned = put(array("Z", 4, N, role="output"), lane, T, value=load(X, T))
    kernel = split(program(ir.For(lane, index(4), turned, kind), X, array("Z", 4, N, role="output"), threads=N))
    assert lines(kernel)[0] == "threads tid in 0..8:"  # whose elements lie apart


# ---------------------------------------------------------------- registers


def test_a_tile_is_copied_where_it_is_touched_often() -> None:
    size = 64
    t, step, k, m, n = Var("thread", INDEX, 0, 15), var("step", 4), var("k", 4), var("m", 2), var("n", 4)
    a, c, tile = array("A", size), array("C", 16, 8, role="output"), shared("tile", 16)
    acc = register("acc", 2, 4)

    def each(body: ir.Stmt, kind: str = "unroll") -> ir.Stmt:
        return ir.For(m, index(2), ir.For(n, index(4), body, "vector" if kind == "vector" else kind))

    product = load(acc, m, n) + load(tile, (t + k) % 16) * cast(m * 4 + n, dt.float32)
    rounds = ir.Seq(
        (put(tile, t, value=load(a, step * 16 + t)), MEET, ir.For(k, index(4), each(put(acc, m, n, value=product))), MEET)
    )
    back = each(put(c, t, m * 4 + n, value=load(acc, m, n)), "vector")
    body = ir.Seq((each(put(acc, m, n, value=const(0.0, dt.float32))), ir.For(step, index(4), rounds), back))
    kernel = split(program(body, a, c, tile, acc, threads=16))
    text = lines(kernel)
    assert arrays_of(kernel) == {"acc_by_thread": (16, 2, 4)}
    assert sum("acc[copied_0, copied_1 * 4 + copied_lane] = acc_by_thread" in line for line in text) == 1
    assert sum("acc_by_thread[tid, copied_0, copied_1 * 4 + copied_lane] = acc" in line for line in text) == 1
    assert sum("acc[m, n] = acc[m, n] + " in line for line in text) == 1  # in registers
    assert "acc_by_thread[tid, m, n] = 0.0: float32" in text[3]  # each element once: in its place
    final = replace_by_scalars(unroll(vectorize(kernel), 256))
    assert {b.name: b.vector for b in final.registers} == {"acc": 4}


def test_what_each_region_writes_first_does_not_cross() -> None:
    before = ir.Seq((put(R, 0, value=load(S, T)), put(S, T, value=load(R, 0) * 2.0), MEET))
    behind = ir.Seq((put(R, 0, value=load(S, 7 - T)), MEET, put(S, T, value=load(R, 0) + 1.0), MEET))
    for rounds, arrays in ((before, {}), (behind, {"r_by_thread": (N, 1)})):
        body = ir.Seq((put(S, T, value=load(X, T)), MEET, ir.For(K, index(3), rounds), put(OUT, T, value=load(S, T))))
        assert arrays_of(split(program(body, X, OUT, S, R, threads=N))) == arrays


def test_what_is_written_under_conditions_keeps_its_old_value() -> None:
    even = equal(T % 2, 0)
    often = ir.For(var("j", 5), index(5), put(R, 0, value=load(R, 0) + load(S, T)))
    body = ir.Seq((
        put(S, T, value=load(X, T)), ir.If(even, put(R, 0, value=load(X, T)), put(R, 0, value=ONE)), MEET,
        ir.If(even, often), MEET, put(S, 7 - T, value=load(R, 0)), MEET, put(OUT, T, value=load(S, T)),
    ))  # fmt: skip
    assert arrays_of(split(program(body, X, OUT, S, R, threads=N))) == {"r_by_thread": (N, 1)}


@pytest.mark.parametrize("surely", [True, False])
def test_what_a_loop_surely_writes_is_copied(surely: bool) -> None:
    """A copy of what may not have been written in full would read what nobody wrote."""
    two, w, block = register("two", 2), var("w", 2), Var("block_x", INDEX, 0, 1)
    write = ir.For(w, index(2), put(two, w, value=ONE))
    rounds = ir.For(K, index(3) if surely else block, ir.Seq((write, put(S, T, value=ONE), MEET)))
    often = ir.For(var("j", 50), index(50), ir.Seq((put(two, 0, value=load(S, T)), put(two, 1, value=load(two, 0)))))
    maybe = ir.If(equal(block, 1), ir.seq(put(two, 0, value=ONE), often))
    body = ir.Seq((put(S, T, value=ONE), MEET, rounds, maybe, MEET, ir.If(equal(block, 1), put(OUT, T, value=load(two, 1)))))
    kernel = split(program(body, X, OUT, S, two, threads=N, grid=(2, 1, 1)))
    assert ("two" in {b.name for b in kernel.registers}) is surely


def test_what_only_some_threads_have_is_not_read_for_the_others() -> None:
    some = equal(T % 3, 0)
    often = ir.For(var("j", 5), index(5), put(R, 0, value=load(R, 0) + load(S, T)))
    body = ir.Seq((
        put(S, T, value=load(X, T)), ir.If(some, put(R, 0, value=load(X, T))), MEET, ir.If(some, often), MEET,
        put(OUT, T, value=load(S, T)), ir.If(some, put(OUT, T, value=load(R, 0))),
    ))  # fmt: skip
    assert arrays_of(split(program(body, X, OUT, S, R, threads=N))) == {"r_by_thread": (N, 1)}


def test_a_ring_in_registers_crosses_whole() -> None:
    ring, k = register("ring", 3, 2), var("k", 4)
    v = var("v", 2)
    fill = ir.For(v, index(2), put(ring, k % 3, v, value=load(X, (T + k + v) % N)), "vector")
    use = put(S, T, value=load(S, T) + load(ring, k % 3, 1))
    before = ir.For(v, index(2), put(ring, 2, v, value=ONE), "vector")
    body = ir.Seq(
        (
            before,
            put(S, T, value=ONE),
            ir.For(k, index(4), ir.Seq((fill, MEET, use))),
            put(OUT, T, value=load(S, T) + load(ring, 2, 0)),
        )
    )
    assert arrays_of(split(program(body, X, OUT, S, ring, threads=N))) == {"ring_by_thread": (N, 3, 2)}


@pytest.mark.parametrize("type", [dt.float32, dt.float16, dt.float64, dt.int8, dt.int64, dt.uint8], ids=str)
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_vectors_of_every_type_cross(type: dt.DType, lanes: int) -> None:
    x, out, held = array("X", N, 4, type=type), array("Out", N, 4, type=type, role="output"), register("held", 4, type=type)
    flag = shared("flag", N, type=type)
    at = range(0, 4, lanes)
    fetch = [ir.Store(held, (index(i),), load(x, T, i, lanes=lanes)) for i in at]
    back = [ir.Store(out, (T, index(i)), load(held, i, lanes=lanes) + load(held, i, lanes=lanes)) for i in at]
    body = ir.Seq((*fetch, put(flag, T, value=load(x, T, 0)), MEET, *back, put(out, T, 3, value=load(flag, 7 - T))))
    kernel = split(program(body, x, out, held, flag, threads=N))
    assert arrays_of(kernel) == {"held_by_thread": (N, 4)}
    assert all((b.offset or 0) % 64 == 0 for b in kernel.shared)


def test_arrays_that_are_not_alive_together_share_bytes() -> None:
    a, b = register("a", 1), register("b", 1)
    body = ir.Seq((
        put(a, 0, value=load(X, T)), put(S, T, value=ONE), MEET, put(S, 7 - T, value=load(a, 0)), MEET,
        put(b, 0, value=load(S, T)), MEET, put(S, T, value=load(b, 0) * 2.0), MEET, put(OUT, T, value=load(S, T)),
    ))  # fmt: skip
    kernel = split(program(body, X, OUT, S, a, b, threads=N))
    assert [x.offset for x in kernel.shared] == [0, 64, 64]


# ---------------------------------------------------------------- names


def test_what_has_no_place_yet_follows_what_has() -> None:
    first, second, third = shared("a", N, offset=64), shared("b", N), shared("c", N)
    body = ir.Seq((*(put(b, T, value=ONE) for b in (first, second, third)), put(OUT, T, value=load(third, T))))
    (kernel,) = program(body, OUT, first, second, third, threads=N).kernels
    offsets = {b.name: b.offset for b in run_threads_in_loops(kernel).shared}
    assert offsets == {"a": 64, "b": 128, "c": 192}, "64 + 32 bytes, at whole lines"


def test_names_are_computed_again_where_they_are_used() -> None:
    p, q = var("p", 2 * N), var("q", 4 * N)
    table = array("table", N, type=dt.int32)
    u = Var("u", dt.int32)
    body = ir.Seq((
        ir.Let(p, T * 2), ir.Let(q, p + 1), ir.Let(u, load(table, T)), put(S, T, value=cast(q + cast(u, INDEX), dt.float32)), MEET,
        put(OUT, T, value=load(S, 7 - T) + cast(p, dt.float32) + cast(u, dt.float32)),
    ))  # fmt: skip
    kernel = split(program(body, table, OUT, S, threads=N))
    assert [line.strip() for line in lines(kernel)].count("let p: int64 = tid * 2") == 2
    assert [line.strip() for line in lines(kernel)].count("let q: int64 = p + 1") == 1
    assert arrays_of(kernel) == {}


def test_names_and_numbers_of_rounds_read_nothing_that_changes() -> None:
    v, count = Var("v", dt.float32), shared("count", 1, type=dt.int32)
    for reads in (
        (ir.Let(v, load(S, 7 - T)), put(OUT, T, value=v)),
        (ir.For(var("i", 4), cast(load(count, 0), INDEX), ir.Seq((put(S, T, value=ONE), MEET))),),
    ):
        begin = (put(S, T, value=ONE), ir.If(equal(T, 0), put(count, 0, value=const(2, dt.int32))), MEET)
        body = ir.Seq((*begin, *reads))
        (kernel,) = program(body, X, OUT, S, count, threads=N).kernels
        with pytest.raises(InternalError, match="may change before it is used"):
            run_threads_in_loops(kernel)


# ---------------------------------------------------------------- instructions


def doubled() -> Any:
    """acc[i] += x[i] of two elements, by one thread."""
    i = Axis("i", 2)
    acc, x = operand("Acc", dt.float32, "register", i), operand("Xs", dt.float32, "register", i)
    return instruction("fission_add2", means=updates(acc[i], x[i] * 1.0), operands=(acc, x), level="thread")


@pytest.mark.parametrize("whole", [True, False])
def test_instructions_of_one_thread_work_on_copies(whole: bool) -> None:
    acc, x = register("acc", 2), register("x", 2)
    add = ir.Instruction(doubled(), (("Acc", acc, (ZERO,)), ("Xs", x, (ZERO,))))
    exists: Expr = Binary("<", T, index(N if whole else 5))

    def under(stmt: ir.Stmt) -> ir.Stmt:
        return stmt if whole else ir.If(exists, stmt)

    fill = [put(acc, j, value=load(X, T)) for j in range(2)] + [put(x, j, value=load(X, T) + float(j)) for j in range(2)]
    body = ir.Seq((put(S, T, value=ONE), under(ir.Seq(tuple(fill))), MEET, ir.For(K, index(3), ir.Seq((under(add), MEET))),
                   put(OUT, T, value=load(S, 7 - T)), under(put(OUT, T, value=load(acc, 1)))))  # fmt: skip
    kernel = split(program(body, X, OUT, S, acc, x, threads=N))
    assert arrays_of(kernel) == {"acc_by_thread": (N, 2), "x_by_thread": (N, 2)}
    (done,) = (s for s in ir.statements(kernel.body) if isinstance(s, ir.Instruction))
    assert {b.memory for _, b, _ in done.operands} == {"register"}
    assert ("x_by_thread[tid, copied_0] = 0.0: float32" in "".join(lines(kernel))) is not whole
    assert whole or lines(kernel)[0] == "threads tid in 0..8:", (
        "zeros for all threads, for copies bring what some have not written"
    )


def test_what_needs_threads_at_one_time_is_refused_by_name() -> None:
    add = ir.Instruction(doubled(), (("Acc", register("acc", 2), (ZERO,)), ("Xs", register("x", 2), (ZERO,))), 4)
    role = ir.Role("only", 0, N, put(OUT, T, value=ONE))
    for body, code in (
        (add, "instruction-on-cpu"),
        (ir.Roles((role,)), "roles-on-cpu"),
    ):
        kernel = program(body, X, OUT, S, register("acc", 2), register("x", 2), threads=N).kernels[0]
        with pytest.raises(Refusal) as refused:
            run_threads_in_loops(kernel)
        assert refused.value.code == code
        assert refused.value.help
    with pytest.raises(Refusal, match="cluster") as refused:
        run_threads_in_loops(program(put(OUT, T, value=ONE), OUT, threads=N, grid=(2, 1, 1)).kernels[0].replace(cluster=2))
    assert refused.value.code == "clusters-on-cpu"


def test_what_threads_keep_across_barriers_fits_in_a_block() -> None:
    """64 MiB: a driver gives no block more."""
    many = 64 * 2**20 // 4 // N
    for elements in (many, many + 1):
        kept = register("r", elements)
        v = var("s", elements)
        body = ir.seq(ir.For(v, index(elements), put(kept, v, value=ONE)), MEET, put(OUT, T, value=load(kept, 3)))
        kernel = program(body, OUT, kept, threads=N).kernels[0]
        if elements == many:
            assert run_threads_in_loops(kernel).shared_bytes == 64 * 2**20
            continue
        with pytest.raises(Refusal) as refused:
            run_threads_in_loops(kernel)
        assert refused.value.code == "memory-over-capacity"
        assert refused.value.help == "make the tile that fills `r_by_thread` smaller"
        assert (refused.value.counterexample or "").split()[5:] == [
            "r_by_thread",
            "8",
            "x",
            "2097153",
            "float32",
            "67108896",
            "0",
        ]


def test_asynchronous_copies_are_made_at_once() -> None:
    body = ir.Seq(
        (ir.Copy(S, (T,), X, (T,), 1), ir.Commit(), ir.Wait(0), ir.Barrier(("shared",)), put(OUT, T, value=load(S, 7 - T)))
    )
    kernel = split(program(body, X, OUT, S, threads=N))
    assert not any(isinstance(s, (ir.Copy, ir.Commit, ir.Wait)) for s in ir.statements(kernel.body))
