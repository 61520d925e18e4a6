"""Random computations: small ones of every kind in the language.

A computation is drawn as a `Recipe`, the name of a family below and plain arguments, which prints as the Python line that reproduces
it. The families cover every reduction, conditions, padded, strided, dilated, divided and gathered indices, several stages and outputs,
and every element type. Extents are often odd, prime, 0, 1 or smaller than a tile.
"""

from __future__ import annotations

from typing import Any

from tilelang.computations import functions as F
from tilelang.computations.computation import Computation, Tensor, axes, computation, input
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core.expr import Axis, Expr
from tilelang.testing.choice import Source
from tilelang.testing.family import (
    FLOATS,
    REDUCTIONS,
    TYPES,
    chain,
    defined,
    draw_chain,
    extent,
    family,
    named_axes,
    reduce_by,
    small,
    type_name,
)
from tilelang.testing.networks import network as network

# ---------------------------------------------------------------- pointwise work


def _draw_pointwise(source: Source) -> dict[str, Any]:
    return {
        "extents": tuple(extent(source) for _ in range(source.integer(1, 3))),
        "dtype": type_name(source),
        "steps": draw_chain(source, 4),
        "other": source.pick(("none", "same", "last", "first")),
        "to": source.pick(("", "", *TYPES)),
    }


@family(_draw_pointwise)
def pointwise(extents: tuple[int, ...], dtype: str, steps: tuple[str, ...], other: str, to: str) -> Tensor:
    """A chain of functions, perhaps with a second, broadcast operand and a conversion."""
    named = named_axes("ijl", extents)
    x: Expr = input("X", dtype, *named)[named]
    if other != "none":
        own = {"same": named, "last": named[-1:], "first": named[:1]}[other]
        x = x + input("B", dtype, *own)[own]
    value = chain(x, steps)
    return defined("Y", F.cast(small(value, to), to) if to else value, *named)


@family(lambda s: {"rows": extent(s), "columns": extent(s), "dtype": type_name(s), "batch": s.pick((0, 2, 3))})
def transpose(rows: int, columns: int, dtype: str, batch: int) -> Tensor:
    """Y[j, i] = X[i, j], perhaps in a batch."""
    i, j, b = axes(i=rows, j=columns, b=batch)
    outer = (b,) if batch else ()
    return defined("Y", input("X", dtype, *outer, i, j)[(*outer, i, j)], *outer, j, i)


# ---------------------------------------------------------------- products


def _draw_product(source: Source) -> dict[str, Any]:
    return {
        "m": extent(source), "n": extent(source), "k": extent(source), "dtype": type_name(source),
        "form": source.pick(("nn", "nt", "tn")), "bias": source.chance(40), "steps": draw_chain(source, 1) if source.chance(50) else (),
        "to": source.pick(("", "", "", "float16", "float32")), "causal": source.chance(15), "batch": source.pick((0, 0, 2)),
    }  # fmt: skip


@family(_draw_product)
def product(
    m: int, n: int, k: int, dtype: str, form: str, bias: bool, steps: tuple[str, ...], to: str, causal: bool, batch: int
) -> Tensor:
    """A matrix product with an epilogue, perhaps batched, transposed, or over a triangle."""
    mm, nn, kk, bb = axes(m=m, n=n, k=k, b=batch)
    outer = (bb,) if batch else ()
    left = (*outer, kk, mm) if form == "tn" else (*outer, mm, kk)
    right = (*outer, nn, kk) if form == "nt" else (*outer, kk, nn)
    a, b = input("A", dtype, *left), input("B", dtype, *right)
    value = F.sum(a[left] * b[right], over=kk, where=(kk <= mm) if causal else None)
    if bias:
        value = value + input("bias", dtype, nn)[nn]
    value = chain(value, steps)
    if to and (dt.dtype(to).is_float and value.dtype.is_float):
        value = F.cast(value, to)
    return defined("C", value, *outer, mm, nn)


@family(lambda s: {"m": extent(s, 8), "n": extent(s, 8), "k": extent(s, 8), "p": extent(s, 8), "dtype": type_name(s)})
def two_products(m: int, n: int, k: int, p: int, dtype: str) -> Tensor:
    """(A B) C, where the second product reads the whole first one."""
    mm, nn, kk, pp = axes(m=m, n=n, k=k, p=p)
    first = define("T", F.sum(input("A", dtype, mm, kk)[mm, kk] * input("B", dtype, kk, pp)[kk, pp], over=kk), mm, pp)
    return defined("C", F.sum(first[mm, pp] * input("D", first.dtype, pp, nn)[pp, nn], over=pp), mm, nn)


# ---------------------------------------------------------------- reductions


def _draw_reduction(source: Source) -> dict[str, Any]:
    kind = source.pick(REDUCTIONS)
    floats_only = kind in ("welford", "user")
    most = 8 if kind == "prod" else 24
    return {
        "kind": kind,
        "kept": tuple(extent(source) for _ in range(source.integer(0, 2))),
        "over": tuple(extent(source, most) for _ in range(source.integer(1, 2))),
        "dtype": type_name(source, ("float32", "float64") if floats_only else TYPES),
        "value": source.pick(("plain", "square", "abs", "product")),
        "where": source.pick(("", "", "", "triangle", "even", "data", "first", "window", "blocks")),
        "steps": draw_chain(source, 1) if source.chance(30) and kind in ("sum", "max", "min") else (),
        "reduced_first": source.chance(30),
    }


@family(_draw_reduction)
def reduction(
    kind: str,
    kept: tuple[int, ...],
    over: tuple[int, ...],
    dtype: str,
    value: str,
    where: str,
    steps: tuple[str, ...],
    reduced_first: bool,
) -> Any:
    """One reduction of any kind, over one or two axes, perhaps under a condition."""
    outer, inner = named_axes("il", kept), named_axes("jk", over)
    dims = (*inner, *outer) if reduced_first else (*outer, *inner)
    x = input("X", dtype, *dims)[dims]
    items: Expr = x
    if value == "square":
        items = x * x
    elif value == "abs" and x.dtype.kind != "uint":
        items = F.abs(x)
    elif value == "product":
        items = x * input("W", dtype, *inner)[inner]
    condition = _condition(where, outer, inner, x)
    found = reduce_by(kind, items, inner, condition)
    if isinstance(found, tuple):
        names = tuple(f"Y{i}" for i in range(len(found)))
        return computation("Y", define(names, found, *outer))
    return defined("Y", chain(found, steps), *outer)


def _condition(where: str, outer: tuple[Axis, ...], inner: tuple[Axis, ...], x: Expr) -> Expr | None:
    match where:
        case "triangle" if outer:
            return inner[0] <= outer[0]
        case "even":
            return F.equal(inner[-1] % 2, 0)
        case "data":
            return x < 1
        case "first":
            return inner[0] < 3
        case "window" if outer:
            return (outer[0] - 2 <= inner[0]) & (inner[0] <= outer[0] + 1)
        case "blocks" if outer:
            return F.equal(inner[0] // 3, outer[0] // 3)
        case _:
            return None


def _draw_several_outputs(source: Source) -> dict[str, Any]:
    return {
        "rows": extent(source),
        "columns": extent(source),
        "dtype": type_name(source, ("float32", "int32", "float64", "float16")),
        "kinds": (source.pick(REDUCTIONS[:6]), source.pick(REDUCTIONS[:6])),
    }


@family(_draw_several_outputs)
def several_outputs(rows: int, columns: int, dtype: str, kinds: tuple[str, str] = ("sum", "max")) -> Computation:
    """Two reductions of the same rows, in one kernel."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    return computation("both", tuple(define(f"Y{n}", reduce_by(kind, x[i, j], (j,), None), i) for n, kind in enumerate(kinds)))


@family(lambda s: {"rows": extent(s), "columns": extent(s), "dtype": type_name(s), "steps": draw_chain(s, 2)})
def pointwise_outputs(rows: int, columns: int, dtype: str, steps: tuple[str, ...]) -> Computation:
    """Two pointwise outputs of one input, one of them read by the other."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    first = define("P", x[i, j] + x[i, j], i, j)
    second = define("Q", chain(first[i, j], steps), i, j)
    return computation("pair", (first, second))


# ---------------------------------------------------------------- indices


def _draw_read_twice(source: Source) -> dict[str, Any]:
    forms = ("product", "computed", "pointwise")
    return {"rows": extent(source, 17), "columns": extent(source, 17), "depth": extent(source), "dtype": type_name(source),
            "form": source.pick(forms)}  # fmt: skip


@family(_draw_read_twice)
def read_twice(rows: int, columns: int, depth: int, dtype: str, form: str) -> Tensor:
    """A tensor that is read in two ways: X X', c c' with a computed c, or X + X'."""
    i, j, k, r = axes(i=rows, j=columns, k=depth, r=max(rows, columns))
    if form == "pointwise":
        S = input("S", dtype, r=max(rows, columns), q=max(rows, columns))
        return defined("Y", S[i, j] + S[j, i] + S[j, i], i, j)
    X = input("X", dtype, r, k)
    c = defined("c", X[r, k] + X[r, k], r, k) if form == "computed" else X
    return defined("Y", F.sum(c[i, k] * c[j, k], over=k), i, j)


def _draw_convolution(source: Source) -> dict[str, Any]:
    return {
        "n": source.pick((1, 2)),
        "channels": source.pick((2, 3, 1)),
        "size": source.pick((8, 7, 5, 3)),
        "filters": source.pick((4, 3, 1)),
        "window": source.pick((3, 2, 1)),
        "stride": source.pick((1, 2)),
        "dilation": source.pick((1, 1, 2)),
        "pad": source.pick((1, 0, 2)),
        "dtype": type_name(source, ("float32", "float16", "int8", "float64")),
        "depthwise": source.chance(30),
    }


@family(_draw_convolution)
def convolution(
    n: int, channels: int, size: int, filters: int, window: int, stride: int, dilation: int, pad: int, dtype: str, depthwise: bool
) -> Tensor:
    """A convolution of a square image: padded, strided, dilated; depthwise if `depthwise`."""
    out = max(0, (size + 2 * pad - dilation * (window - 1) - 1) // stride + 1)
    nn, f, p, q, c, r, s = axes(n=n, f=filters, p=out, q=out, c=channels, r=window, s=window)
    x = input("X", dtype, n=n, h=size, w=size, c=channels)
    rows, columns = stride * p + dilation * r - pad, stride * q + dilation * s - pad
    if depthwise:
        w = input("W", dtype, r=window, s=window, c=channels)
        return defined("Z", F.sum(F.pad(x[nn, rows, columns, c], 0) * w[r, s, c], over=(r, s)), nn, p, q, c)
    w = input("W", dtype, f=filters, r=window, s=window, c=channels)
    value = F.pad(x[nn, rows, columns, c], 0) if pad else x[nn, rows, columns, c]
    return defined("Z", F.sum(value * w[f, r, s, c], over=(r, s, c)), nn, p, q, f)


def _draw_pooling(source: Source) -> dict[str, Any]:
    return {
        "length": extent(source),
        "kind": source.pick(("max", "sum", "min")),
        "window": source.pick((2, 3)),
        "stride": source.pick((1, 2, 3)),
        "dtype": type_name(source),
        "fill": source.pick((0, 1)),
    }


@family(_draw_pooling)
def pooling(length: int, kind: str, window: int, stride: int, dtype: str, fill: int) -> Tensor:
    """Windows over a padded row, reduced."""
    i, r, b = axes(i=-(-length // stride), r=window, b=3)
    x = input("X", dtype, b=3, t=length)
    return defined("Y", reduce_by(kind, F.pad(x[b, stride * i + r - 1], fill), (r,), None), b, i)


@family(
    lambda s: {"rows": extent(s), "columns": extent(s), "dtype": type_name(s), "steps": draw_chain(s, 1), "fill": s.pick((0, 2))}
)
def stencil(rows: int, columns: int, dtype: str, steps: tuple[str, ...], fill: int) -> Tensor:
    """A padded stencil of each element and its neighbours."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    here = x[i, j]
    value = here + F.pad(x[i - 1, j], fill) + F.pad(x[i, j + 1], fill)
    return defined("Y", chain(value, steps), i, j)


def _draw_divided(source: Source) -> dict[str, Any]:
    return {
        "outer": source.pick((3, 4, 1, 5)),
        "inner": source.pick((2, 4, 3)),
        "dtype": type_name(source),
        "form": source.pick(("split", "join", "repeat")),
        "summed": source.chance(40),
    }


@family(_draw_divided)
def divided(outer: int, inner: int, dtype: str, form: str, summed: bool) -> Tensor:
    """Indices with quotients and remainders: a row seen as a matrix, a matrix seen as a row, repeated elements."""
    a, b, t, j = axes(a=outer, b=inner, t=outer * inner, j=5)
    if form == "split":
        x = input("X", dtype, t, j)
        read = x[a * inner + b, j]
        return defined("Y", F.sum(read, over=b), a, j) if summed else defined("Y", read, a, b, j)
    x = input("X", dtype, a, b, j) if form == "join" else input("X", dtype, a, j)
    read = x[t // inner, t % inner, j] if form == "join" else x[t // inner, j]
    return defined("Y", F.sum(read, over=t), j) if summed else defined("Y", read, t, j)


def _draw_gather(source: Source) -> dict[str, Any]:
    return {
        "rows": extent(source),
        "bag": source.pick((3, 4, 1, 0, 7)),
        "width": extent(source),
        "table": source.pick((5, 11)),
        "dtype": type_name(source),
        "kind": source.pick(("sum", "max", "none")),
    }


@family(_draw_gather)
def gather(rows: int, bag: int, width: int, table: int, dtype: str, kind: str) -> Tensor:
    """Rows of a table by number: an embedding, or a reduction of several rows."""
    b, t, e = axes(b=rows, t=bag, e=width)
    rows_of = input("table", dtype, v=table, e=width)
    ids = input("ids", "int32", b, t, range=(0, table))
    read = rows_of[ids[b, t], e]
    if kind == "none":
        return defined("Y", read, b, t, e)
    return defined("Y", reduce_by(kind, read, (t,), None), b, e)


# ---------------------------------------------------------------- several stages


@family(lambda s: {"rows": s.pick((3, 2, 1, 5)), "columns": extent(s), "dtype": type_name(s, FLOATS)})
def softmax(rows: int, columns: int, dtype: str) -> Tensor:
    """exp(x - max) divided by its sum for each row, in four definitions."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    peak = define("peak", F.max(x[i, j], over=j), i)
    shifted = define("shifted", F.exp(x[i, j] - peak[i]), i, j)
    total = define("total", F.sum(shifted[i, j], over=j), i)
    return defined("Y", shifted[i, j] / total[i], i, j)


@family(
    lambda s: {"rows": s.pick((3, 2, 1, 5)), "columns": s.pick((8, 7, 13, 16, 1)), "dtype": type_name(s, ("float32", "float64"))}
)
def normalised(rows: int, columns: int, dtype: str) -> Tensor:
    """Rows normalized by their mean and standard deviation, with the Welford tuple."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    count, mean, squares = define(("count", "mean", "squares"), reduce_by("welford", x[i, j], (j,), None), i)
    return defined("Y", (x[i, j] - mean[i]) / F.sqrt(squares[i] / count[i] + 1), i, j)


def _draw_staged(source: Source) -> dict[str, Any]:
    return {
        "rows": extent(source),
        "columns": extent(source),
        "dtype": type_name(source),
        "first": draw_chain(source, 2),
        "second": draw_chain(source, 2),
        "kind": source.pick(("none", "sum", "max")),
    }


@family(_draw_staged)
def staged(rows: int, columns: int, dtype: str, first: tuple[str, ...], second: tuple[str, ...], kind: str) -> Tensor:
    """A pointwise stage that a second one reads, also at a neighbour, or that a reduction reads."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    middle = define("P", chain(x[i, j], first), i, j)
    if kind == "none":
        return defined("Y", chain(middle[i, j] + F.pad(middle[i, j - 1], 0), second), i, j)
    return defined("Y", chain(reduce_by(kind, middle[i, j], (j,), None), second), i)
