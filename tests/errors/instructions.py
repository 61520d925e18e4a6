"""Instructions that do not fit what is left, or cannot be guarded."""

import tilelang as tl
from tests.errors._computations import matmul
from tilelang.core.expr import Axis
from tilelang.instructions.fragment import fragment
from tilelang.instructions.instruction import computes, instruction, moves, updates, use
from tilelang.instructions.operand import operand


def cannot_be_guarded() -> None:
    """A point that does not exist is filled with 0, and exp(0) is not 0."""
    r, j = tl.axes(r=4, j=8)
    a, c = operand("a", tl.float32, tl.register, r, j), operand("c", tl.float32, tl.register, j)
    instruction("exponentials", means=updates(c[j], tl.exp(a[r, j])), operands=(a, c), level=tl.thread)
    n, k = tl.axes(n=16, k=10)
    X = tl.input("X", tl.float32, k, n)
    start = tl.schedule(tl.define("Y", tl.sum(tl.exp(X[k, n]), over=k), n)).tile(n=16).to(tl.block)
    start.accumulate(tl.register).split(k=8).load("X", tl.register).do("exponentials").check("sapphire_rapids")


def cannot_be_guarded_and_nothing_is_filled() -> None:
    """An instruction that reads global memory, and a row of 14 elements in pieces of 4."""
    r = tl.axes(r=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    a, b = (operand(name, tl.float32, tl.global_, r, fragment=run) for name in "ab")
    c = operand("c", tl.float32, tl.register)
    instruction("dot_of_global", means=updates(c[()], a[r] * b[r]), level=tl.thread, operands=(a, b, c))
    i, j = tl.axes(i=3, j=14)
    X, Y = tl.input("X", tl.float32, i, j), tl.input("Y", tl.float32, i, j)
    start = tl.schedule(tl.define("Z", tl.sum(X[i, j] * Y[i, j], over=j), i)).tile(i=1).to(tl.block)
    start.do("dot_of_global").check("sapphire_rapids")


def _relu(pieces: int) -> tl.Schedule:
    """Rows of 36 values by an instruction of eight, in pieces of some size."""
    n = tl.axes(n=8)
    x, d = (operand(name, tl.float32, tl.global_, n, fragment=fragment(1, 8, lambda lane, slot: slot)) for name in "xd")
    instruction("relu8", means=computes(d[n], tl.maximum(x[n], 0)), operands=(x, d), level=tl.thread, replace=True)
    i, j = tl.axes(i=3, j=36)
    X = tl.input("X", tl.float32, i, j)
    return tl.schedule(tl.define("Y", tl.maximum(X[i, j], 0), i, j)).tile(i=1, j=pieces).to(tl.block)


def stores_what_does_not_exist() -> None:
    """A row of 36 values in pieces of 8: the last one would be stored beyond the row."""
    _relu(pieces=16).do("relu8").check("sapphire_rapids")


def stores_by_itself_and_streams() -> None:
    _relu(pieces=12).via(tl.register, stream=True).split(j=8).do("relu8").check("sapphire_rapids")


def computes_it_from_elsewhere() -> None:
    """The meaning fits, up to names; the shape and the memory do not."""
    _relu(pieces=12).load("X", tl.shared).do("relu8", n="j").check("sapphire_rapids")


def computes_something_else() -> None:
    _relu(pieces=8)
    i = tl.axes(i=16)
    X = tl.input("X", tl.float32, i)
    tl.schedule(tl.define("Y", tl.maximum(X[i], 1), i)).tile(i=16).to(tl.block).do("relu8").check("sapphire_rapids")


def does_something_else() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register).do("opencl_dot4").check("sapphire_rapids")


def binding_of_unknown_axes() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register).do("opencl_mad4", q="n").check("sapphire_rapids")


def extent_that_it_has_not() -> None:
    use("opencl_mad4").resized(n=3)


def operands_of_two_sizes() -> None:
    operand("A", (tl.float32, tl.float16), "register")


def text_without_an_operand() -> None:
    n = Axis("n", 4)
    A, C = operand("A", tl.float32, "register", n), operand("C", tl.float32, "register", n)
    instruction("copy4", means=moves(C[n], A[n]), operands=(A, C), level="thread", template={"opencl": "{C} = 0;"})


def name_taken() -> None:
    n = Axis("n", 4)
    A, C = operand("A", tl.float32, "register", n), operand("C", tl.float32, "register", n)
    instruction("opencl_mad4", means=moves(C[n], A[n]), operands=(A, C), level="thread")


def meaning_with_two_indices() -> None:
    n = Axis("n", 4)
    A, C = operand("A", tl.float32, "register", n), operand("C", tl.float32, "register", n)
    instruction("test_errors_rank", means=moves(C[n], A[n, n]), operands=(A, C), level="thread")


def meaning_outside() -> None:
    n = Axis("n", 4)
    A, C = operand("A", tl.float32, "register", n), operand("C", tl.float32, "register", n)
    instruction("test_errors_outside", means=moves(C[n], A[n + 1]), operands=(A, C), level="thread")


def meaning_with_a_condition() -> None:
    n, k = Axis("n", 4), Axis("k", 4)
    A, C = operand("A", tl.float32, "register", n, k), operand("C", tl.float32, "register", n)
    updates(C[n], tl.sum(A[n, k], over=k, where=k <= n))


def threads_that_are_no_warp() -> None:
    """32 threads issue the instruction together, and the block has 48."""
    start = tl.schedule(matmul()).units(block=tl.threads(48)).tile(m=16, n=8).to(tl.block).accumulate(tl.register).split(k=8)
    start = start.tile(m=16, n=8).to(tl.warp).load("A", tl.register).load("B", tl.register)
    start.do("simulated_mma_m16n8k8", m="m", n="n", k="k").check("simulated")


def without_the_licence() -> None:
    """tf32 cuts the factors of a product of float32."""
    plan = tl.schedule(matmul()).tile(m=16, n=8).to(tl.block).accumulate(tl.register).split(k=8)
    plan.load("A", tl.register).load("B", tl.register).do("mma_m16n8k8_tf32").check("ampere")


def wrapper_that_nothing_defines() -> None:
    n = Axis("n", 4)
    A, C = operand("A", tl.float32, "register", n), operand("C", tl.float32, "register", n)
    text, definition = "copied({C[0]}, {A[0]});", "static inline void copy4(float& c, float a) { c = a; }"
    instruction("copy4", means=moves(C[n], A[n]), operands=(A, C), level="thread", template={"cuda": text},
                definitions={"cuda": definition})  # fmt: skip


def more_registers_than_a_thread_has() -> None:
    """Six warpgroups leave 80 registers per thread; the accumulator alone takes 68."""
    text = """computation product {
      input A: float16[m: 128, k: 16]
      input B: float16[n: 408, k: 16]
      output C[m, n] = sum[k] cast(A[m, k], float32) * cast(B[n, k], float32)
    }
    schedule for product {
      tile m=128 n=408 -> block
      accumulate in register
      load A in shared swizzle 32
      load B in shared swizzle 32
      tile m=64 n=136 -> warpgroup
      split k=16
      do wgmma_m64n136k16_float16
    }"""
    tl.parse(text, "product.tile").schedule().check("hopper")


def copy_at_once_of_a_partial_tile() -> None:
    e = tl.axes(e=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    D, S = operand("D", tl.float32, tl.shared, e, fragment=run), operand("S", tl.float32, tl.global_, e, fragment=run)
    instruction("four_at_once", means=moves(D[e], S[e]), operands=(D, S), level=tl.thread, outside=0)
    m, n = tl.axes(m=4, n=10)
    start = tl.schedule(tl.define("C", tl.input("A", tl.float32, m, n)[m, n] * 2, m, n)).tile(m=1, n=16).to(tl.block)
    start.load("A", tl.shared, steps=tl.move().tile(n=4).to(tl.thread).do("four_at_once")).check("simulated")


def count_of_a_copy_at_once() -> None:
    e = tl.axes(e=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    D, S = operand("D", tl.float32, tl.shared, e, fragment=run), operand("S", tl.float32, tl.global_, e, fragment=run)
    text = "copy({D.address}, {S.address}, {existing});"
    instruction("counted", means=moves(D[e], S[e]), operands=(D, S), level=tl.thread, template={"cpu": text})


def operand_in_memory_without_a_fragment() -> None:
    n = tl.axes(n=8)
    D, X = operand("D", tl.float32, tl.global_, n), operand("X", tl.float32, tl.register, n)
    instruction("minus", means=computes(D[n], -X[n]), operands=(X, D), level=tl.thread, template={"cpu": "{D} = -{X};"})
