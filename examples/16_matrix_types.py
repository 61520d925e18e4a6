"""Matrix units by type: products of tf32, of bytes and of 8-bit floats by NVIDIA's warps, of float16 by AMD's waves of 32.

Beside 15_matrix_units.py, whose operands have 16 bits. `ldmatrix` hands out rows of 16 bytes that begin at multiples of 16, and turns
16-bit elements only: of wider and narrower ones k has to run along the rows, so bytes take B as [n, k], and the tf32 product, which
has B as [k, n], reads it element by element. Devices without the instructions refuse; the simulator runs them here, lanes and all.
Run: `python examples/16_matrix_types.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def matmul(M: int, N: int, K: int, dtype: tl.DType = tl.float32) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[k, n]; float32 with operands rounded to tf32."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n, allow=("tf32",) if dtype == tl.float32 else ())


def linear(M: int, N: int, K: int, dtype: tl.DType = tl.int8) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[n, k], in int32 of bytes and in float32 of 8-bit floats."""
    sums = tl.float32 if dtype.is_float else tl.int32
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, n, k)
    return tl.define("C", tl.sum(tl.cast(A[m, k], sums) * tl.cast(B[n, k], sums), over=k), m, n)


def gemm_tf32(c: tl.Tensor) -> tl.Schedule:
    """`mma` of 16 x 8 x 8: a ring of four tiles in shared memory, 64 x 64 sums a warp. Rows of B are eight words longer than they need
    to be, so that four of them below each other, eight columns of each, want every bank once."""
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=tl.move().vectorize(n=2))
        .split(k=16)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 4) ^ (m // 2 % 4), k % 4)), ahead=3,
              steps=tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4))
        .load("B", tl.shared, layout=tl.layout("k", "n").pad(8), ahead=3,
              steps=tl.move().tile(k=1, n=4).to(tl.thread).vectorize(n=4))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=8, unroll=True)
        .load("A", tl.register, steps=tl.move().do("ldmatrix_x4_of_4_bytes"))
        .load("B", tl.register)
        .do("mma_m16n8k8_tf32", m="m", n="n", k="k")
    )  # fmt: skip


def gemm_bytes(c: tl.Tensor, dtype: tl.DType = tl.int8) -> tl.Schedule:
    """`mma` of 16 x 8 x 32: a ring of four tiles in shared memory, 64 x 64 sums a warp; both operands have k along their rows."""
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=tl.move().vectorize(n=2))
        .split(k=64)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 16) ^ (m // 2 % 4), k % 16)), ahead=3,
              steps=tl.move().tile(m=1, k=16).to(tl.thread).vectorize(k=16))
        .load("B", tl.shared, layout=tl.layout(lambda n, k: (n, (k // 16) ^ (n // 2 % 4), k % 16)), ahead=3,
              steps=tl.move().tile(n=1, k=16).to(tl.thread).vectorize(k=16))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=32)
        .load("A", tl.register, steps=tl.move().do("ldmatrix_x4_of_1_byte"))
        .load("B", tl.register, steps=tl.move().do("ldmatrix_x4_right_of_1_byte"))
        .do(f"mma_m16n8k32_{dtype.name}", m="m", n="n", k="k")
    )  # fmt: skip


def gemm_rdna(c: tl.Tensor) -> tl.Schedule:
    """`wmma` of 16 x 16 x 16: 64 x 32 sums a wave of 32; the next tiles wait in registers meanwhile, where threads turn pieces of B so
    that k runs along its rows. Pieces of eight stand where neither eight rows of one nor those that threads bring want a bank twice."""
    of = "" if c.dtype == tl.float16 else f"_{c.dtype.name}"
    store = tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m % 2 * 2), n % 8)))
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=store.tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // 2, (m + m // 8) % 2, (k // 8) ^ (m // 2 % 4), k % 8)), ahead=1,
              steps=tl.move().tile(m=1, k=8).to(tl.thread).vectorize(k=8))
        .load("B", tl.shared, layout=tl.layout(lambda n, k: (n // 2, (n + n // 8) % 2, (k // 8) ^ (n // 2 % 4), k % 8)), ahead=1,
              steps=tl.move().tile(k=8, n=2).to(tl.thread).vectorize(k=8))
        .tile(m=64, n=32).to(tl.warp)
        .split(k=16)
        .load("A", tl.register, steps=tl.move().vectorize(k=8))
        .load("B", tl.register, steps=tl.move().vectorize(k=8))
        .do(f"wmma_16x16x16{of}", m="m", n="n", k="k")
    )  # fmt: skip


def units() -> dict[str, tuple[str, str, tl.Schedule]]:
    """The schedules by name, each with the dialect and the profile of a device that has its instructions."""
    return {
        "gemm_tf32": ("cuda", "ampere", gemm_tf32(matmul(128, 256, 96))),
        "gemm_int8": ("cuda", "ampere", gemm_bytes(linear(128, 256, 192))),
        "gemm_float8": ("cuda", "ada", gemm_bytes(linear(128, 256, 192, tl.float8_e4m3), tl.float8_e4m3)),
        "gemm_rdna": ("hip", "rdna3", gemm_rdna(matmul(128, 128, 64, tl.float16))),
    }


def schedules(M: int = 128, N: int = 128, K: int = 64, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules that run everywhere: none."""
    return {}


def refusals(target: tl.Target | None = None) -> dict[str, str]:
    """What a target (default: the device here) without these instructions says to the schedules."""
    texts = {}
    for name, (_, _, schedule) in units().items():
        try:
            tl.compile(schedule, target=target)
        except tl.Refusal as refusal:
            texts[name] = str(refusal)
    return texts


def expected(A: Any, B: Any) -> Any:
    """The products by NumPy, in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def right_in_the_simulator(kernel: tl.Kernel) -> bool:
    """Whether the simulator's results lie within the derived bound."""
    return bool(kernel.computation.check(lambda arrays: tl.simulate(kernel, **arrays).outputs))


def main(M: int = 128, N: int = 128, K: int = 64, small: bool = False) -> None:
    """Every schedule in the simulator, as on a device that has its instructions."""
    for name, (dialect, profile, schedule) in units().items():
        kernel = tl.compile(schedule, target=tl.target(dialect, profile=profile))
        report = tl.simulate(kernel)
        extra = sum(count.total for count in report.conflicts)
        if report.findings or not right_in_the_simulator(kernel):
            raise SystemExit(f"{name} is wrong: {report}")
        print(f"{name} for {kernel.target}: simulated, and right; {extra} extra phases by bank conflicts")


if __name__ == "__main__":
    main()
