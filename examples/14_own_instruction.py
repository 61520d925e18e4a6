"""A matrix product whose innermost piece is an instruction that this file brings along.

What the instruction means is an expression, so it is matched, checked and simulated without the device that has it; its text is
handed to the device's compiler as it stands. The compiler knows no instruction by name. Run: `python examples/14_own_instruction.py`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import tilelang as tl
from tilelang.instructions.instruction import updates
from tilelang.instructions.operand import operand


@functools.cache
def multiply_accumulate(lanes: int) -> Any:
    """C[n] += A B[n] on one thread: A a number, B and C vectors of `lanes` float32."""
    n = tl.axes(n=lanes)
    A, B, C = (
        operand("A", tl.float32, "register"),
        operand("B", tl.float32, "register", n),
        operand("C", tl.float32, "register", n),
    )
    return tl.instruction(
        f"own_multiply_accumulate_{lanes}",
        means=updates(C[n], A[()] * B[n]),
        operands=(A, B, C),
        level="thread",
        template=dict.fromkeys(("cpu", "opencl", "cuda", "hip"), "{C} = {A} * {B} + {C};"),
    )


# Rows and columns of sums that fit a core's vector registers, by the lanes of one: 24 of 32 registers of 16 or 4, 12 of 16 of 8.
REGISTER_TILES = {16: (8, 48), 8: (6, 16), 4: (8, 12)}


def matmul(M: int, N: int, K: int) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[k, n]."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", tl.float32, m, k)
    B = tl.input("B", tl.float32, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def cpu(c: tl.Tensor, m: int = 168, n: int = 192, k: int = 128, rows: int = 8, columns: int = 48, lanes: int = 16) -> tl.Schedule:
    """A core as a block, as for any matrix product; the last line names the instruction instead of a vector width."""
    return (
        tl.schedule(c)
        .tile(m=m, n=n).to(tl.block)
        .split(k=k)
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (n // columns, k, n % columns)), steps=tl.move().vectorize(n=lanes))
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // rows, k, m % rows)))
        .split(n=columns, m=rows)
        .accumulate(tl.register)
        .split(k=1)
        .load("A", tl.register)
        .load("B", tl.register, steps=tl.move().vectorize(n=lanes))
        .split(m=1, unroll=True)
        .do(multiply_accumulate(lanes), n="n")
    )  # fmt: skip


def schedules(M: int = 500, N: int = 555, K: int = 444, small: bool = False, lanes: int = 16) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator; lanes: of a core's vectors."""
    c = matmul(M, N, K)
    return {"cpu": cpu(c, 16, 64, 8, 4, 32) if small else cpu(c, 168, 192, 128, *REGISTER_TILES[lanes], lanes)}


def expected(A: Any, B: Any) -> Any:
    """The same by NumPy, in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def main(M: int = 500, N: int = 555, K: int = 444, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((M, K), np.float32), generator.standard_normal((K, N), np.float32)
    lanes = max(tl.target().profile.vector_bytes) // 4
    for name, schedule in schedules(M, N, K, small, lanes=lanes).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(a, b) - expected(a, b)) > kernel.computation.bound(A=a, B=b)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
