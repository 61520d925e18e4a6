"""The computations that the cases schedule."""

import tilelang as tl
from tilelang import Tensor


def matmul(M: int = 64, N: int = 64, K: int = 64, dtype: tl.DType = tl.float32) -> Tensor:
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", dtype, m, k)
    B = tl.input("B", dtype, k, n)
    made: Tensor = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    return made


def linear(M: int = 64, N: int = 64, K: int = 64) -> Tensor:
    """A matrix product with an epilogue: bias and relu."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", tl.float32, m, k)
    B = tl.input("B", tl.float32, k, n)
    bias = tl.input("bias", tl.float32, n)
    made: Tensor = tl.define("C", tl.relu(tl.sum(A[m, k] * B[k, n], over=k) + bias[n]), m, n)
    return made


def softmax(M: int = 64, N: int = 64) -> Tensor:
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    shifted = tl.define("shifted", tl.exp(X[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(shifted[i, j], over=j), i)
    made: Tensor = tl.define("Y", shifted[i, j] / total[i], i, j)
    return made


def copy(M: int = 64, N: int = 64, dtype: tl.DType = tl.float32) -> Tensor:
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", dtype, i, j)
    made: Tensor = tl.define("Y", X[i, j], i, j)
    return made


def row_sum(M: int = 64, N: int = 64) -> Tensor:
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    made: Tensor = tl.define("Y", tl.sum(X[i, j], over=j), i)
    return made
