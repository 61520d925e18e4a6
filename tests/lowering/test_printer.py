"""The text of kernel IR, case by case."""

from __future__ import annotations

import types

from tests.lowering.gemm_kernels import at, tiled_product
from tilelang.core import dtype as dt
from tilelang.core.expr import Const, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.printer import headline, to_text

GEMM = """\
program
  global A: float32[16, 16] input
  global B: float32[16, 16] input
  global C: float32[16, 16] output

kernel product: 2 x 2 x 1 blocks of 64 threads, index 32 bits
  global A: float32[16, 16] input
  global B: float32[16, 16] input
  global C: float32[16, 16] output
  shared As: float32[8, 8]
  shared Bs: float32[8, 8]
  register acc: float32[1]
  acc[0] = 0.0: float32
  for step in 0..2:
    As[thread // 8, thread % 8 + 0] = A[block_y * 8 + thread // 8, step * 8 + thread % 8 + 0]
    Bs[thread // 8, thread % 8] = B[step * 8 + thread // 8, block_x * 8 + thread % 8]
    barrier shared
    for k in 0..8:
      acc[0] = acc[0] + As[thread // 8, k] * Bs[k, thread % 8]
    barrier shared
  C[block_y * 8 + thread // 8 + 0, block_x * 8 + thread % 8] = acc[0]
"""


def test_program() -> None:
    assert to_text(tiled_product(16, 8)) == GEMM


def test_every_statement() -> None:
    x = ir.Buffer("x", dt.float32, (2, 64), "shared", offset=256, ring=2)
    y = ir.Buffer("y", dt.float32, (64,), "global", "workspace")
    z = ir.Buffer("z", dt.float32, (16,), "register", vector=16)
    i, n = Var("i", dt.int64, 0, 7), Var("n", dt.int64)
    vector = ir.Load(y, (i,), 16, n, Const(0.0, dt.float32))
    body = ir.Seq(
        (
            ir.Let(n, i * 2, at(1)),
            ir.Store(z, (index(0),), vector, span=at(2)),
            ir.Store(y, (i,), ir.Load(z, (index(0),), 16), n, streaming=True),
            ir.If(i < 4, ir.Barrier(("shared", "global"), ("x is written, then read",), at(3)), ir.Prefetch(y, (i,))),
            ir.Copy(x, (i % 2, n), y, (i,), 4, n),
            ir.Commit(),
            ir.Wait(1),
            ir.Instruction(types.SimpleNamespace(name="mma"), (("A", x, (i, n)), ("C", z, (index(0),))), 32),
            ir.For(i, index(16), ir.Seq(()), "vector", at(4)),
            ir.For(i, n, ir.Store(z, (i,), const(1, dt.float32)), "unroll"),
        )
    )
    kernel = ir.Kernel("all", (1, 2, 3), 32, (y, x, z), body, 64, contract=False, fast_math=("exp",))
    expected = """\
kernel all: 1 x 2 x 3 blocks of 32 threads, index 64 bits, no contraction, fast exp
  global y: float32[64] workspace
  shared x: float32[2, 64] ring 2 offset 256
  register z: float32[16] vector 16
  let n: int64 = i * 2
  z[0:16] = y[i:16 first n else 0.0]
  stream y[i:16 first n] = z[0:16]
  if i < 4:
    barrier shared global
  else:
    prefetch y[i]
  copy x[i % 2, n:4] from y[i:4 first n]
  commit
  wait 1
  do mma(A=x[i, n], C=z[0]) by 32 threads
  vector i in 0..16:
    pass
  unroll i in 0..n:
    z[i] = 1.0: float32
"""
    assert to_text(kernel) == expected


def test_places_only_on_demand() -> None:
    barrier = ir.Barrier(("shared",), ("As is written at gemm.py:3 and read at gemm.py:6",), at(5))
    assert to_text(barrier) == "barrier shared\n"
    assert to_text(barrier, spans=True) == "barrier shared  # gemm.py:5\n  # As is written at gemm.py:3 and read at gemm.py:6\n"


def test_headline() -> None:
    assert headline(ir.For(Var("k", dt.int64), index(4), ir.Commit())) == "for k in 0..4:"
    assert headline(ir.Seq(())) == "pass"
