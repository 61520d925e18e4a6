"""Matrix product: one definition, a schedule for CPU cores, one for GPU threads, and two for matrix instructions.

The first two run on any OpenCL device. The last two say in full how a product uses asynchronous copies and matrix instructions; a
device without them refuses, and says why. Run: `python examples/01_matmul.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilelang as tl

# Rows and columns of sums that fit a core's vector registers, by the lanes of one: 24 of 32 registers of 16 or 4, 12 of 16 of 8.
REGISTER_TILES = {16: (8, 48), 8: (6, 16), 4: (8, 12)}


def matmul(M: int, N: int, K: int, dtype: tl.DType = tl.float32) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[k, n]."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def linear(M: int, N: int, K: int, dtype: tl.DType = tl.bfloat16) -> tl.Tensor:
    """A layer in 16 bits: gelu(A B^T + bias), accumulated in float32."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, n, k)
    bias = tl.input("bias", tl.float32, n)
    acc = tl.define("acc", tl.sum(tl.cast(A[m, k], tl.float32) * tl.cast(B[n, k], tl.float32), over=k), m, n)
    return tl.define("Y", tl.cast(tl.gelu(acc[m, n] + bias[n]), dtype), m, n)


def gemm_cpu(
    c: tl.Tensor, m: int = 336, n: int = 384, k: int = 256, rows: int = 8, columns: int = 48, lanes: int = 16
) -> tl.Schedule:
    """A CPU core as a block: panels of A and B packed by layouts, rows x columns accumulators in vector registers."""
    return (
        tl.schedule(c)
        .tile(m=m, n=n).to(tl.block)
        .split(k=k)
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (n // columns, k, n % columns)), steps=tl.move().vectorize(n=lanes))
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // rows, k, m % rows)))
        .split(n=columns, m=rows)
        .accumulate(tl.register)
        .split(k=4)
        .split(k=1, unroll=True)
        .load("B", tl.register, steps=tl.move().vectorize(n=lanes))
        .split(m=1, unroll=True)
        .vectorize(n=lanes)
    )  # fmt: skip


def gemm_simt(c: tl.Tensor, m: int = 128, n: int = 128, k: int = 8, columns: int = 32) -> tl.Schedule:
    """Threads: tiles ahead in shared memory, four interleaved 4 x 4 pieces a thread; columns: of a warp, as many as its threads."""
    return (
        tl.schedule(c)
        .tile(m=m, n=n).to(tl.block)
        .accumulate(tl.register, steps=tl.move().vectorize(n=4))
        .split(k=k)
        .load("A", tl.shared, layout=tl.layout("k", "m").pad(4), ahead=1,
              steps=tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4))
        .load("B", tl.shared, ahead=1, steps=tl.move().tile(k=1, n=4).to(tl.thread).vectorize(n=4))
        .tile(m=64, n=columns).to(tl.warp)
        .split(k=1)
        .load("A", tl.register, steps=tl.move().vectorize(m=4))
        .load("B", tl.register, steps=tl.move().vectorize(n=4))
        .split(m=32, n=columns // 2)
        .tile(m=4, n=4).to(tl.thread)
    )  # fmt: skip


def gemm_ampere(c: tl.Tensor) -> tl.Schedule:
    """float16 on warp matrix instructions, operands copied asynchronously three rounds ahead."""
    store = tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m % 8), n % 8)))
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=store.tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 8) ^ ((m // 2) % 4), k % 8)), ahead=3,
              steps=tl.move().tile(m=1, k=8).to(tl.thread).do("cp_async_16"))
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (k, (n // 8) ^ (k % 8), n % 8)), ahead=3,
              steps=tl.move().tile(k=1, n=8).to(tl.thread).do("cp_async_16"))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=16)
        .load("A", tl.register, steps=tl.move().do("ldmatrix_x4"))
        .load("B", tl.register, steps=tl.move().do("ldmatrix_x4_trans"))
        .do("mma_m16n8k16", m="m", n="n", k="k")
    )  # fmt: skip


def gemm_hopper(c: tl.Tensor, m: int = 128, n: int = 256, ahead: int = 3) -> tl.Schedule:
    """16 bits on warpgroup matrix instructions: one warpgroup copies, two compute half of m x n each, 132 persistent blocks."""
    of = "" if c.dtype == tl.bfloat16 else f"_{c.dtype.name}"
    store = tl.move().split(n=64).via(tl.shared, layout=tl.layout().swizzle(128)).do("tma_store_2d")
    copy = tl.move().do("tma_load_2d")
    return (
        tl.schedule(c)
        .units(block=tl.warpgroups(1).as_role("producer", registers=40) + tl.warpgroups(2).as_role("consumer", registers=232))
        .tile(m=m, n=n).to(tl.block, 132, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=store)
        .split(k=64)
        .load("A", tl.shared, layout=tl.layout().swizzle(128), ahead=ahead, on="producer", steps=copy)
        .load("B", tl.shared, layout=tl.layout().swizzle(128), ahead=ahead, on="producer", steps=copy)
        .tile(m=m // 2).to("consumer")
        .do(f"wgmma_m64n{n}k16{of}", m="m", n="n", k="k")
    )  # fmt: skip


def schedules(
    M: int = 500, N: int = 555, K: int = 444, small: bool = False, warp: int = 32, lanes: int = 16
) -> dict[str, tl.Schedule]:
    """The schedules that run everywhere, by name; small: with tiles for tiny sizes under a simulator; warp: threads of one; lanes: of
    a core's vectors."""
    c = matmul(M, N, K)
    if small:
        return {"gemm_cpu": gemm_cpu(c, 16, 64, 8, 4, 32), "gemm_simt": gemm_simt(c, 64, warp, 8, warp)}
    blocks = (336, 384, 256) if lanes == 16 else (168, 192, 128)  # smaller vectors come with smaller caches
    return {"gemm_cpu": gemm_cpu(c, *blocks, *REGISTER_TILES[lanes], lanes), "gemm_simt": gemm_simt(c, columns=warp)}


def refusals(target: tl.Target | None = None) -> dict[str, str]:
    """What a target (default: the device here) says to the schedules that need matrix instructions."""
    builds: dict[str, Callable[[], tl.Schedule]] = {
        "gemm_ampere": lambda: gemm_ampere(matmul(256, 256, 64, tl.float16)),
        "gemm_hopper": lambda: gemm_hopper(linear(256, 256, 128)),
    }
    texts = {}
    for name, build in builds.items():
        try:
            tl.compile(build(), target=target)
        except tl.Refusal as refusal:
            texts[name] = str(refusal)
    return texts


def expected(A: Any, B: Any) -> Any:
    """The same by NumPy, in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def main(M: int = 500, N: int = 555, K: int = 444, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy's product within the derived bound, timed."""
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((M, K), np.float32), generator.standard_normal((K, N), np.float32)
    lanes = max(tl.target().profile.vector_bytes) // 4
    for name, schedule in schedules(M, N, K, small, lanes=lanes).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(a, b) - expected(a, b)) > kernel.computation.bound(A=a, B=b)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        seconds = kernel.benchmark(repeats=3)
        print(f"{name}: right, {seconds * 1e3:.2f} ms, {2e-9 * M * N * K / seconds:.0f} GFLOP/s")
    for name, text in refusals().items():
        print(f"{name}: {text.splitlines()[0]}")


if __name__ == "__main__":
    main()
