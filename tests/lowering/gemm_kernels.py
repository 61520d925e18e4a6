"""Kernels built by hand for the tests of the lowering: tiled matrix products through shared memory, whole or with one fault."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from tilelang.core import dtype as dt
from tilelang.core.expr import Const, Expr, Var, const, index
from tilelang.errors import Span
from tilelang.lowering import ir


def at(line: int) -> Span:
    """A place in an imagined schedule."""
    return Span("gemm.py", line)


@dataclasses.dataclass(frozen=True)
class Faults:
    """What is wrong with a tiled product; by default nothing."""

    no_first_barrier: bool = False
    no_second_barrier: bool = False
    shared_column: int = 0  # added to the column of every write to the tile of A
    output_row: int = 0  # added to the row of the result
    input_column: int = 0  # added to the column read of A
    barrier_under_if: bool = False
    all_rows_to_one: bool = False
    no_zero: bool = False


def tiled_product(size: int, tile: int, faults: Faults = Faults(), type: dt.DType = dt.float32) -> ir.Program:
    """C = A @ B for square matrices: a block of tile * tile threads makes one tile of C, a thread one element."""
    a = ir.Buffer("A", type, (size, size), "global", "input")
    b = ir.Buffer("B", type, (size, size), "global", "input")
    c = ir.Buffer("C", dt.float32, (size, size), "global", "output")
    a_tile, b_tile = ir.Buffer("As", type, (tile, tile), "shared"), ir.Buffer("Bs", type, (tile, tile), "shared")
    acc = ir.Buffer("acc", dt.float32, (1,), "register")
    thread = Var("thread", dt.int64, 0, tile * tile - 1)
    x, y = thread % tile, thread // tile
    row, column = ir.BLOCK[1] * tile + y, ir.BLOCK[0] * tile + x
    step, k = Var("step", dt.int64, 0, size // tile - 1), Var("k", dt.int64, 0, tile - 1)
    barrier: ir.Stmt = ir.Barrier(("shared",), span=at(5))
    first = ir.If(x < tile // 2, barrier) if faults.barrier_under_if else barrier
    left, right = ir.Load(a_tile, (y, k)), ir.Load(b_tile, (k, x))
    inner = ir.Store(acc, (index(0),), ir.Load(acc, (index(0),)) + _wide(left) * _wide(right), span=at(6))
    body = ir.seq(
        ir.Store(a_tile, (y, x + faults.shared_column), ir.Load(a, (row, step * tile + x + faults.input_column)), span=at(3)),
        ir.Store(b_tile, (y, x), ir.Load(b, (step * tile + y, column)), span=at(4)),
        None if faults.no_first_barrier else first,
        ir.For(k, index(tile), inner),
        None if faults.no_second_barrier else barrier,
    )
    target = index(0) if faults.all_rows_to_one else row + faults.output_row
    zero = ir.Store(acc, (index(0),), Const(0.0, dt.float32), span=at(1))
    whole = ir.seq(
        None if faults.no_zero else zero,
        ir.For(step, index(size // tile), body, span=at(2)),
        ir.Store(c, (target, column), ir.Load(acc, (index(0),)), span=at(7)),
    )
    buffers = (a, b, c, a_tile, b_tile, acc)
    kernel = ir.Kernel("product", (size // tile, size // tile, 1), tile * tile, buffers, whole)
    return ir.Program((kernel,), (a, b, c))


def _wide(value: Expr) -> Expr:
    from tilelang.core.expr import cast

    return cast(value, dt.float32)


def blocked_product(size: int, lanes: int = 1) -> ir.Program:
    """C = A @ B in one block of 256 threads, each with a 4 x 4 piece in registers, `lanes` columns at a time."""
    a = ir.Buffer("A", dt.float32, (size, size), "global", "input")
    b = ir.Buffer("B", dt.float32, (size, size), "global", "input")
    c = ir.Buffer("C", dt.float32, (size, size), "global", "output")
    acc = ir.Buffer("acc", dt.float32, (4, 4), "register")
    tiles = size // 4
    thread = Var("thread", dt.int64, 0, tiles * tiles - 1)
    row, column = thread // tiles * 4, thread % tiles * 4
    k = Var("k", dt.int64, 0, size - 1)
    places = [(i, j) for i in range(4) for j in range(0, 4, lanes)]

    def vector(value: float) -> Expr:
        return ir.Pack((const(value, dt.float32),) * lanes) if lanes > 1 else const(value, dt.float32)

    def piece(i: int, j: int) -> ir.Load:
        return ir.Load(acc, (index(i), index(j)), lanes)

    zero = [ir.Store(acc, (index(i), index(j)), vector(0.0)) for i, j in places]
    product = [
        ir.Store(acc, (index(i), index(j)), piece(i, j) + ir.Load(a, (row + i, k)) * ir.Load(b, (k, column + j), lanes))
        for i, j in places
    ]
    store = [ir.Store(c, (row + i, column + j), piece(i, j)) for i, j in places]
    body = ir.seq(*zero, ir.For(k, index(size), ir.seq(*product)), *store)
    return ir.Program((ir.Kernel("blocked", (1, 1, 1), tiles * tiles, (a, b, c, acc), body),), (a, b, c))


def matrices(size: int, type: dt.DType = dt.float32) -> dict[str, npt.NDArray[np.float32]]:
    """Small whole numbers, whose products are exact."""
    generator = np.random.default_rng(1)
    return {name: generator.integers(-3, 4, (size, size)).astype(type.numpy) for name in "AB"}
