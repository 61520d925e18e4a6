"""Matrix units: 16-bit products and a convolution by the matrix instructions of NVIDIA's warps and of AMD's waves.

A schedule names the instruction and says how its operands come into place: rings in shared memory, without bank conflicts, filled by
copies that the device makes by itself, and loads that leave each lane what the product wants of it. Devices without the instructions
refuse; the simulator runs them here, lanes and all. Run: `python examples/15_matrix_units.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def matmul(M: int, N: int, K: int, dtype: tl.DType = tl.float16) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[k, n], summed in float32."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def transposed(M: int, N: int, K: int, dtype: tl.DType = tl.float16) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[n, k], summed in float32: weights as layers keep them."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, n, k)
    return tl.define("C", tl.sum(A[m, k] * B[n, k], over=k), m, n)


def convolution(N: int, H: int, C: int, F: int, R: int = 3, stride: int = 1, padding: int = 1) -> tl.Tensor:
    """Z[n, p, q, f] = sum over r, s, c of X[n, stride p + r - padding, stride q + s - padding, c] W[r, s, c, f]; 0 outside X."""
    P = (H + 2 * padding - R) // stride + 1
    n, p, q, f, r, s, c = tl.axes(n=N, p=P, q=P, f=F, r=R, s=R, c=C)
    X = tl.input("X", tl.float16, n=N, h=H, w=H, c=C)
    W = tl.input("W", tl.float16, r, s, c, f)
    pixel = tl.pad(X[n, stride * p + r - padding, stride * q + s - padding, c], 0)
    return tl.define("Z", tl.sum(pixel * W[r, s, c, f], over=(r, s, c)), n, p, q, f)


def gemm_ampere(c: tl.Tensor) -> tl.Schedule:
    """`mma` of 16 x 8 x 16: a ring of four tiles in shared memory, 64 x 64 sums a warp; blocks in columns of eight stay in the L2."""
    of = "" if c.dtype == tl.float16 else f"_{c.dtype.name}"
    store = tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m % 8), n % 8)))
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=store.tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 8) ^ (m // 2 % 4), k % 8)), ahead=3,
              steps=tl.move().tile(m=1, k=8).to(tl.thread).do("cp_async_16"))
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (k, (n // 8) ^ (k % 8), n % 8)), ahead=3,
              steps=tl.move().tile(k=1, n=8).to(tl.thread).do("cp_async_16"))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=16)
        .load("A", tl.register, steps=tl.move().do("ldmatrix_x4"))
        .load("B", tl.register, steps=tl.move().do("ldmatrix_x4_trans"))
        .do(f"mma_m16n8k16{of}", m="m", n="n", k="k")
    )  # fmt: skip


def gemm_ampere_transposed(c: tl.Tensor) -> tl.Schedule:
    """The same for A B^T: rows of both operands run along k, so that B's tiles lie as A's do and its loads turn nothing."""
    of = "" if c.dtype == tl.float16 else f"_{c.dtype.name}"
    store = tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m % 8), n % 8)))
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=store.tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 8) ^ (m // 2 % 4), k % 8)), ahead=3,
              steps=tl.move().tile(m=1, k=8).to(tl.thread).do("cp_async_16"))
        .load("B", tl.shared, layout=tl.layout(lambda n, k: (n, (k // 8) ^ (n // 2 % 4), k % 8)), ahead=3,
              steps=tl.move().tile(n=1, k=8).to(tl.thread).do("cp_async_16"))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=16)
        .load("A", tl.register, steps=tl.move().do("ldmatrix_x4"))
        .load("B", tl.register, steps=tl.move().do("ldmatrix_x4_right"))
        .do(f"mma_m16n8k16{of}", m="m", n="n", k="k")
    )  # fmt: skip


def conv_ampere(z: tl.Tensor) -> tl.Schedule:
    """The same for a convolution: rows are output pixels, staged by access, padding as zeros that the copies write."""
    store = tl.move().via(tl.shared, layout=tl.layout(lambda npq, f: (npq, (f // 8) ^ (npq % 8), f % 8)))
    return (
        tl.schedule(z)
        .fuse(npq=("n", "p", "q"))
        .tile(npq=128, f=64).to(tl.block)
        .accumulate(tl.register, steps=store.tile(npq=1, f=8).to(tl.thread).vectorize(f=8))
        .split(r=1, s=1, c=32)
        .load("X", tl.shared, layout=tl.layout(lambda npq, c: (npq, (c // 8) ^ (npq // 2 % 4), c % 8)), ahead=2,
              steps=tl.move().tile(npq=1, c=8).to(tl.thread).vectorize(c=8))
        .load("W", tl.shared, layout=tl.layout(lambda c, f: (c, (f // 8) ^ (c % 8), f % 8)), ahead=2,
              steps=tl.move().tile(c=1, f=8).to(tl.thread).vectorize(f=8))
        .tile(npq=64, f=32).to(tl.warp)
        .split(c=16)
        .load("X", tl.register, steps=tl.move().do("ldmatrix_x4"))
        .load("W", tl.register, steps=tl.move().do("ldmatrix_x4_trans"))
        .do("mma_m16n8k16", m="npq", n="f", k="c")
    )  # fmt: skip


def gemm_cdna(c: tl.Tensor, product: str = "mfma_32x32x8") -> tl.Schedule:
    """`mfma`, 64 x 64 sums a wave; the next tiles wait in registers meanwhile, where threads turn pieces of B so that k runs along its
    rows. Runs of four stand where neither 16 rows of one nor the pieces that threads bring want a bank of shared memory twice."""
    of = "" if c.dtype == tl.float16 else f"_{c.dtype.name}"
    store = tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m // 4 % 8 * 2), n % 8)))
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=store.tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // 2, (m + m // 16) % 2, (k // 4) ^ ((m // 2 + m // 32) % 8), k % 4)),
              ahead=1, steps=tl.move().tile(m=1, k=8).to(tl.thread).vectorize(k=4))
        .load("B", tl.shared, layout=tl.layout(lambda n, k: (n // 2, (n + n // 16) % 2, (k // 4) ^ ((n // 2 + n // 32) % 8), k % 4)),
              ahead=1, steps=tl.move().tile(k=4, n=4).to(tl.thread).vectorize(k=4))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=tl.use(product).shape["k"])
        .load("A", tl.register, steps=tl.move().vectorize(k=4))
        .load("B", tl.register, steps=tl.move().vectorize(k=4))
        .do(f"{product}{of}", m="m", n="n", k="k")
    )  # fmt: skip


def gemm_direct(c: tl.Tensor) -> tl.Schedule:
    """`mfma` from tiles that go straight into shared memory, two elements a thread. Those of a wave stand there one behind the other:
    threads are numbered by where their elements lie in rows whose runs of four are exchanged."""
    of = "" if c.dtype == tl.float16 else f"_{c.dtype.name}"
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register)
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 4) ^ (m // 2 % 8), k % 4)), ahead=1,
              steps=tl.move().tile(m=1, k=2).to(tl.thread, order=tl.layout(lambda m, k: (m, (k // 2) ^ (m // 2 % 8), k % 2)))
                    .do("global_load_lds_4"))
        .load("B", tl.shared, layout=tl.layout(lambda n, k: (n, (k // 4) ^ (n // 2 % 8), k % 4)), ahead=1,
              steps=tl.move().tile(n=1, k=2).to(tl.thread, order=tl.layout(lambda n, k: (n, (k // 2) ^ (n // 2 % 8), k % 2)))
                    .do("global_load_lds_4"))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=8)
        .load("A", tl.register, steps=tl.move().vectorize(k=4))
        .load("B", tl.register, steps=tl.move().vectorize(k=4))
        .do(f"mfma_32x32x8{of}", m="n", n="m", k="k")
    )  # fmt: skip


def units() -> dict[str, tuple[str, str, tl.Schedule]]:
    """The schedules by name, each with the dialect and the profile of a device that has its instructions."""
    return {
        "gemm_ampere": ("cuda", "ampere", gemm_ampere(matmul(128, 256, 96))),
        "gemm_cdna": ("hip", "cdna2", gemm_cdna(matmul(128, 128, 64))),
        "gemm_mi300": ("hip", "cdna3", gemm_cdna(matmul(128, 128, 64), "mfma_16x16x16")),
        "gemm_ampere_transposed": ("cuda", "ampere", gemm_ampere_transposed(transposed(128, 256, 96))),
        "gemm_direct": ("hip", "cdna3", gemm_direct(transposed(128, 128, 64))),
        "conv_ampere": ("cuda", "ampere", conv_ampere(convolution(1, 10, 32, 64))),
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
