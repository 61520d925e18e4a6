"""Legal kernel IR passes the verifier; every rule refuses the least program that breaks it, and names the place."""

from __future__ import annotations

import pytest

from tests.lowering.gemm_kernels import Faults, at, blocked_product, tiled_product
from tilelang.core import dtype as dt
from tilelang.core.expr import Axis, Binary, Call, Cast, Const, Expr, Select, Unary, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.verify import InternalError, verify

THREAD = Var("thread", dt.int64, 0, 31)
I = Var("i", dt.int64, 0, 7)
N = Var("n", dt.int64)
X = ir.Buffer("x", dt.float32, (32,), "global", "input")
OUT = ir.Buffer("out", dt.float32, (32,), "global", "output")
TILE = ir.Buffer("tile", dt.float32, (2, 32), "shared")
ACC = ir.Buffer("acc", dt.float32, (2, 32), "register", vector=16)
ZERO, ONE = Const(0.0, dt.float32), index(1)
BARRIER = ir.Barrier(("shared",))
VECTOR = ir.Load(X, (index(0),), 16)


def program(body: ir.Stmt, *more: ir.Buffer, threads: int = 32) -> ir.Program:
    buffers = (X, OUT, TILE, ACC, *more)
    kernel = ir.Kernel("kernel", (1, 1, 1), threads, buffers, body)
    return ir.Program((kernel,), tuple(b for b in buffers if b.memory == "global"))


def store(value: Expr, place: Expr = THREAD) -> ir.Stmt:
    return ir.Store(OUT, (place,), value, span=at(7))


@pytest.mark.parametrize("stage", ["lower", "vectorize", "unroll", "scalar_replacement", "barriers"])
def test_whole_kernels_are_legal(stage: str) -> None:
    verify(tiled_product(16, 8), stage)
    verify(tiled_product(16, 8, type=dt.bfloat16), stage)
    verify(blocked_product(16, 4), stage)


LEGAL: dict[str, ir.Stmt] = {
    "let": ir.Seq((ir.Let(N, THREAD * 2), store(Cast(N, dt.float32)))),
    "one name in two loops": ir.seq(*(ir.For(I, index(8), store(ZERO, I)) for _ in range(2))),
    "uniform branch": ir.For(I, index(8), ir.If(I < 4, BARRIER)),
    "uniform load": ir.If(Binary("<", ir.Load(X, (index(0),)), ZERO), BARRIER),
    "uniform let": ir.Seq((ir.Let(N, ir.BLOCK[0] + 1), ir.For(I, N, BARRIER))),
    "vector condition of a select": ir.Store(OUT, (index(0),), Select(ir.Ramp(THREAD, 16) < 3, VECTOR, ZERO)),
    "part of a vector": ir.Store(ACC, (index(1), index(4)), ir.Load(X, (index(0),), 4)),
    "load in part": ir.Store(OUT, (index(0),), ir.Load(X, (index(0),), 4, THREAD, ZERO), THREAD),
    "shift of mixed types": store(Cast(Binary("<<", const(1, dt.int32), index(3)), dt.float32)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    verify(program(LEGAL[name]), "scalar_replacement")


ILLEGAL: dict[str, tuple[ir.Stmt, str]] = {
    "undeclared buffer": (store(ir.Load(ir.Buffer("y", dt.float32, (1,), "register"), (index(0),))), "y is not declared"),
    "stale buffer": (store(ir.Load(TILE.replace(offset=64), (index(0), index(0)))), "tile is declared as"),
    "arity": (store(ir.Load(TILE, (index(0),))), "tile has 2 dimensions and 1 indices"),
    "index type": (store(ir.Load(X, (ZERO,))), "is float32"),
    "vector index": (store(ir.Load(X, (ir.Ramp(THREAD, 4),))), "an index or count .* has 4 lanes"),
    "stored type": (store(index(1)), "int64 is stored to out of float32"),
    "written input": (ir.Store(X, (THREAD,), ZERO), "the input x is written"),
    "undefined name": (store(ZERO, I), "i is not defined here"),
    "name out of scope": (ir.seq(ir.For(I, index(8), store(ZERO, I)), store(ZERO, I)), "i is not defined here"),
    "name defined twice": (ir.For(I, index(8), ir.For(I, index(8), store(ZERO))), "i is defined twice"),
    "name of two types": (ir.For(I, index(8), store(ZERO, Var("i", dt.int32))), "i is defined as int64 and used as int32"),
    "false range of a loop": (ir.For(I, index(9), store(ZERO)), "i takes 0 .. 8 and claims 0 .. 7"),
    "false range of the thread": (store(ZERO, Var("thread", dt.int64, 0, 30)), "thread takes 0 .. 31 and claims 0 .. 30"),
    "false range of the block": (store(ZERO, Var("block_x", dt.int64, 1, None)), "block_x takes 0 .. 0 and claims 1"),
    "let of another type": (ir.Seq((ir.Let(N, ZERO), store(ZERO))), "n is int64, its value float32"),
    "let of a vector": (ir.Seq((ir.Let(N, ir.Ramp(THREAD, 4)),)), "the value .* has 4 lanes"),
    "lanes": (ir.Store(OUT, (index(0),), VECTOR + ir.Load(X, (index(0),), 4)), r"vectors of \[4, 16\] lanes together"),
    "pack": (ir.Store(OUT, (index(0),), ir.Pack((VECTOR, VECTOR))), "not scalars of one type"),
    "shuffle": (ir.Store(OUT, (index(0),), ir.Shuffle(VECTOR, VECTOR, (0, 99))), "not lanes of two vectors"),
    "operand types": (store(Cast(Binary("+", ONE, const(1, dt.int32)), dt.float32)), r"int64 \+ int32"),
    "division of integers": (store(Cast(Binary("/", ONE, ONE), dt.float32)), "/ of int64"),
    "bits of floats": (store(Binary("&", ZERO, ZERO)), "& of float32"),
    "logic of numbers": (ir.If(Binary("and", ONE, ONE), store(ZERO)), "and of int64"),
    "not of a number": (store(Cast(Unary("not", ONE), dt.float32)), "not of int64"),
    "function": (store(Cast(Call("exp", (ONE,)), dt.float32)), "no function exp of int64"),
    "branches of a select": (store(Select(THREAD < 1, ZERO, ONE)), "on bool, float32 or int64"),
    "condition that is a number": (ir.If(ONE, store(ZERO)), "the condition is int64"),
    "vector condition": (ir.If(ir.Ramp(THREAD, 4) < 3, store(ZERO)), "the condition .* has 4 lanes"),
    "expression of a computation": (store(Cast(Axis("m", 4), dt.float32)), "Axis is not an expression of kernel IR"),
    "load in part without a fill": (store(ir.Load(X, (index(0),), 1, THREAD)), "loaded in part with fill None"),
    "barrier by thread": (ir.If(THREAD < 4, BARRIER), "a barrier where not all threads"),
    "barrier by loop": (ir.For(I, THREAD, BARRIER), "a barrier where not all threads"),
    "barrier by let": (ir.Seq((ir.Let(N, THREAD * 2), ir.If(N < 4, BARRIER))), "a barrier where not all threads"),
    "barrier by load": (ir.If(ir.Load(X, (THREAD,)) < 0.0, BARRIER), "a barrier where not all threads"),
    "barrier by register": (ir.If(ir.Load(ACC, (index(0), index(0))) < 0.0, BARRIER), "a barrier where not all threads"),
    "barrier of registers": (ir.Barrier(("register",)), "a barrier orders shared and global"),
    "barrier of nothing": (ir.Barrier(()), "a barrier orders shared and global"),
    "copy of another type": (
        ir.Copy(ir.Buffer("half", dt.float16, (32,), "shared"), (THREAD,), X, (THREAD,), 1),
        "float32 is copied to half of float16",
    ),
    "copy to registers": (ir.Copy(ACC, (index(0), index(0)), X, (THREAD,), 1), "an asynchronous copy to or from registers"),
    "prefetch of shared memory": (ir.Prefetch(TILE, (index(0), index(0))), "tile in shared memory is prefetched"),
    "kind of loop": (ir.For(I, index(8), store(ZERO), "parallel"), "a loop of kind 'parallel'"),
    "vector loop of unknown extent": (ir.For(I, THREAD, store(ZERO), "vector"), "a loop of kind vector of unknown extent"),
    "wait": (ir.Wait(-1), "a wait until -1"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal(name: str) -> None:
    body, message = ILLEGAL[name]
    with pytest.raises(InternalError, match=message):
        verify(program(body, ir.Buffer("half", dt.float16, (32,), "shared")), "lower")


LATER: dict[str, tuple[str, ir.Stmt, str]] = {
    "vector loop": ("vectorize", ir.For(I, index(8), store(ZERO), "vector"), "a vector loop after vectorize"),
    "unroll loop": ("unroll", ir.For(I, index(8), store(ZERO), "unroll"), "an unroll loop after unroll"),
    "variable index": ("scalar_replacement", ir.For(I, index(2), ir.Store(ACC, (I, index(0)), ZERO)), "`i` is not constant"),
    "two vectors": ("scalar_replacement", ir.Store(ACC, (index(0), index(8)), VECTOR), "crosses vectors of 16 lanes"),
    "outside": ("scalar_replacement", ir.Store(ACC, (index(2), index(0)), ZERO), "lies outside"),
}


@pytest.mark.parametrize("name", LATER)
def test_illegal_from_some_pass_on(name: str) -> None:
    stage, body, message = LATER[name]
    verify(program(body), "lower")
    for given in ({"stage": stage}, {"stage": "allocate_shared", "after": (stage,)}, {"stage": "scalar_replacement"}):
        with pytest.raises(InternalError, match=message):
            verify(program(body), **given)


BUFFERS: dict[str, tuple[ir.Buffer, str]] = {
    "memory": (ir.Buffer("y", dt.float32, (1,), "l1"), "y is in 'l1' memory"),
    "role": (ir.Buffer("y", dt.float32, (1,), "shared", "input"), "has role 'input'"),
    "no role": (ir.Buffer("y", dt.float32, (1,), "global"), "has role ''"),
    "vector": (ir.Buffer("y", dt.float32, (24,), "register", vector=16), "does not divide into vectors of 16"),
    "shared vector": (ir.Buffer("y", dt.float32, (32,), "shared", vector=16), "is kept in vectors"),
    "offset": (ir.Buffer("y", dt.float32, (32,), "shared", offset=2), "has offset 2"),
    "register offset": (ir.Buffer("y", dt.float32, (32,), "register", offset=0), "has an offset"),
    "ring": (ir.Buffer("y", dt.float32, (3, 32), "shared", ring=2), "is not a ring of 2"),
    "twice": (X, "two buffers named x"),
    "wide": (ir.Buffer("y", dt.float32, (2**16, 2**16), "global", "input"), "indices have 32 bits"),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_illegal_buffer(name: str) -> None:
    buffer, message = BUFFERS[name]
    with pytest.raises(InternalError, match=message):
        verify(program(store(ZERO), buffer), "lower")


def test_argument_that_the_program_does_not_list() -> None:
    whole = program(store(ZERO))
    with pytest.raises(InternalError, match="x is not what the program lists"):
        verify(whole.replace(buffers=(OUT,)), "lower")


def test_single_threads_meet_nobody() -> None:
    thread = Var("thread", dt.int64, 0, 0)
    verify(program(ir.If(thread < 4, BARRIER), threads=1), "barriers")


def test_message_names_pass_kernel_statement_and_step() -> None:
    with pytest.raises(InternalError) as caught:
        verify(tiled_product(16, 8, Faults(barrier_under_if=True)), "barriers")
    assert str(caught.value).splitlines() == [
        "after barriers, kernel product: a barrier where not all threads of the block need come",
        "  in `barrier shared` from gemm.py:5",
    ]
