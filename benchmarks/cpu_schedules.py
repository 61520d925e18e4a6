"""The operators of the CPU table, as computations and schedules: what `benchmarks/cpu.py` measures.

Blocks are tasks of one core and have one thread; rows go through in vectors of 64 floats (four of the machine's), results past the
caches, and what comes next is prefetched. The hand-written kernels beside which they are measured have the same forms.
"""

from __future__ import annotations

import tilelang as tl


def matmul(m: int, n: int, k: int) -> tl.Tensor:
    """C[m, n] = sum[k] A[m, k] * B[k, n]."""
    i, j, r = tl.axes(m=m, n=n, k=k)
    a = tl.input("A", tl.float32, i, r)
    b = tl.input("B", tl.float32, r, j)
    return tl.define("C", tl.sum(a[i, r] * b[r, j], over=r), i, j)


def even(extent: int, most: int, piece: int = 1) -> int:
    """The extent of equal parts of at most `most` elements, in whole pieces.

    >>> even(1111, 256, 64), even(4032, 512)
    (256, 504)
    """
    return -(-extent // -(-extent // most) // piece) * piece


def matmul_schedule(m: int, n: int, k: int) -> tl.Schedule:
    """B packed in panels of 64 columns, A read where it lies; a 6 x 64 tile of C in 24 vector registers.

    A block has all rows, so that B is packed once. Two cores take the blocks in halves, so their number is even. Depths of 512 read and
    write C seldom, and half a megabyte of B leaves room for the rest in the second-level cache.
    """
    blocks = 2 * -(-n // 512)
    return (
        tl.schedule(matmul(m, n, k))
        .tile(m=m, n=even(n, -(-n // blocks), 64)).to(tl.block)
        .split(k=even(max(1, k), 512))
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (n // 64, k, n % 64)), steps=tl.move().vectorize(n=16))
        .split(m=6).split(n=64)
        .accumulate(tl.register)
        .split(k=4, peel=True).split(k=1, unroll=True)
        .load("B", tl.register, steps=tl.move().vectorize(n=16))
        .split(m=1, unroll=True)
        .vectorize(n=16)
    )  # fmt: skip


def _matrix(rows: int, columns: int) -> tuple[tl.Tensor, tl.Axis, tl.Axis]:
    i, j = tl.axes(i=rows, j=columns)
    return tl.input("X", tl.float32, i, j), i, j


def row_sum(rows: int, columns: int) -> tl.Schedule:
    """Y[i] = sum[j] X[i, j]."""
    x, i, j = _matrix(rows, columns)
    y = tl.define("Y", tl.sum(x[i, j], over=j), i)
    return tl.schedule(y).tile(i=1).to(tl.block).accumulate(tl.register).split(j=64).load("X", tl.l1, ahead=16).vectorize(j=64)


def softmax(rows: int, columns: int) -> tl.Schedule:
    """Y[i, j] = exp(X[i, j] - peak[i]) / total[i], exp once; a row is stored while the next one is computed."""
    x, i, j = _matrix(rows, columns)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    shifted = tl.define("shifted", tl.exp(x[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(shifted[i, j], over=j), i)
    scale = tl.define("scale", 1.0 / total[i], i)
    y = tl.define("Y", shifted[i, j] * scale[i], i, j)
    wide = tl.move().vectorize(j=128)
    next_row = tl.move().split(j=128).load("X", tl.l1, ahead=-(-columns // 128)).vectorize(j=128)
    return (
        tl.schedule(y)
        .tile(i=16).to(tl.block)
        .split(i=1)
        .via(tl.register, stream=True, behind=1)
        .compute("peak", tl.register, steps=wide)
        .compute("shifted", tl.shared, steps=next_row)
        .compute("total", tl.register, steps=wide)
        .compute("scale", tl.register)
        .split(j=128)
        .vectorize(j=128)
    )  # fmt: skip


def layer_normalization(rows: int, columns: int, epsilon: float = 1e-5) -> tl.Schedule:
    """Y[i, j] = (X[i, j] - mean[i]) * scale[i] * gamma[j] + beta[j], mean and variance in two passes over a row in the cache."""
    x, i, j = _matrix(rows, columns)
    gamma, beta = (tl.input(name, tl.float32, j) for name in ("gamma", "beta"))
    mean = tl.define("mean", tl.sum(x[i, j], over=j) * (1.0 / columns), i)
    deviation = x[i, j] - mean[i]
    variance = tl.define("variance", tl.sum(deviation * deviation, over=j) * (1.0 / columns), i)
    scale = tl.define("scale", tl.rsqrt(variance[i] + epsilon), i)
    y = tl.define("Y", (x[i, j] - mean[i]) * scale[i] * gamma[j] + beta[j], i, j)
    wide = tl.move().vectorize(j=64)
    return (
        tl.schedule(y)
        .tile(i=1).to(tl.block)
        .via(tl.register, stream=True)
        .compute("mean", tl.register, steps=wide)
        .compute("variance", tl.register, steps=wide)
        .compute("scale", tl.register)
        .split(j=64)
        .load("X", tl.l2, ahead=-(-columns // 64))
        .vectorize(j=64)
    )  # fmt: skip


def gelu(rows: int, columns: int) -> tl.Schedule:
    """The tanh form of GELU, one pass."""
    x, i, j = _matrix(rows, columns)
    y = tl.define("Y", tl.gelu_tanh(x[i, j]), i, j)
    return (
        tl.schedule(y)
        .tile(i=1).to(tl.block)
        .via(tl.register, stream=True)
        .split(j=64)
        .load("X", tl.l1, ahead=16)
        .vectorize(j=64)
    )  # fmt: skip


def transpose(rows: int, columns: int) -> tl.Schedule:
    """Y[j, i] = X[i, j] through a 32 x 32 tile in shared memory."""
    x, i, j = _matrix(rows, columns)
    y = tl.define("Y", x[i, j], j, i)
    return (
        tl.schedule(y)
        .tile(i=32, j=32).to(tl.block)
        .via(tl.register, stream=True)
        .load("X", tl.shared, steps=tl.move().vectorize(j=16))
        .split(j=1)
        .vectorize(i=16)
    )  # fmt: skip


def copy(rows: int, columns: int) -> tl.Schedule:
    """Y[i, j] = X[i, j], streaming: the bound for what reads and writes everything once."""
    x, i, j = _matrix(rows, columns)
    y = tl.define("Y", x[i, j], i, j)
    return tl.schedule(y).tile(i=8).to(tl.block).via(tl.register, stream=True).split(i=1).split(j=64).vectorize(j=64)
