"""Computations of outputs over different axes: what belongs to a row, and sums over all rows."""

import tilelang as tl


def sums(m: int, n: int) -> tl.Computation:
    i, j = tl.axes(i=m, j=n)
    X = tl.input("X", tl.float32, i, j)
    return tl.computation(
        "sums", (tl.define("rows", tl.sum(X[i, j], over=j), i), tl.define("columns", tl.sum(X[i, j], over=i), j))
    )


def normalized(m: int, n: int, dtype: tl.DType = tl.float32) -> tl.Computation:
    i, j = tl.axes(i=m, j=n)
    X = tl.input("X", dtype, i, j)
    mean = tl.define("mean", tl.sum(tl.cast(X[i, j], tl.float32), over=j) / float(n), i)
    centred = tl.cast(X[i, j], tl.float32) - mean[i]
    rstd = tl.define("rstd", tl.rsqrt(tl.sum(centred * centred, over=j) / float(n) + 1e-5), i)
    return tl.computation("normalized", (tl.define("Y", tl.cast(centred * rstd[i], dtype), i, j), mean, rstd))


def backward(m: int, n: int) -> tl.Computation:
    i, j = tl.axes(i=m, j=n)
    X, dY = tl.input("X", tl.float32, i, j), tl.input("dY", tl.float32, i, j)
    mean = tl.define("mean", tl.sum(dY[i, j], over=j) / float(n), i)
    dX = tl.define("dX", dY[i, j] - mean[i] * X[i, j], i, j)
    dg, db = tl.define("dg", tl.sum(dY[i, j] * X[i, j], over=i), j), tl.define("db", tl.sum(dY[i, j], over=i), j)
    return tl.computation("backward", (dg, db, dX))


def softmax(m: int, n: int) -> tl.Computation:
    i, j = tl.axes(i=m, j=n)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    ex = tl.define("ex", tl.exp(X[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(ex[i, j], over=j), i)
    return tl.computation("softmax", (tl.define("Y", ex[i, j] / total[i], i, j), peak, total))
