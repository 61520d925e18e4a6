"""Random computations, small ones of every kind that the language has.

A computation is drawn as a `Recipe`: the name of a family below and plain arguments, so that it prints as the Python line that makes
it again. Families cover every reduction, conditions, padded, strided, dilated, divided and gathered indices, several stages and
outputs, and every element type; extents are odd, prime, 0, 1 or smaller than a tile as often as not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tilelang import dtype as dt
from tilelang import functions as F
from tilelang.computation import Computation, Tensor, as_computation, axes, computation, define, input
from tilelang.expr import Axis, Expr
from tilelang.testing.choice import Source

FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
TYPES = (*FLOATS, "float32", "int32", "int8", "int64", "uint8", "int16", "uint32")
EXTENTS = (4, 8, 16, 5, 7, 13, 3, 2, 1, 11, 17, 0)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A family and its arguments: a computation that prints as the line that makes it."""

    family: str
    arguments: tuple[tuple[str, Any], ...]

    def build(self) -> Computation:
        """The computation; every call makes it anew."""
        return as_computation(FAMILIES[self.family].make(**dict(self.arguments)))

    def __str__(self) -> str:
        return f"families.{self.family}({', '.join(f'{name}={value!r}' for name, value in self.arguments)})"


@dataclasses.dataclass(frozen=True)
class Family:
    """How a kind of computation is made from arguments, and how its arguments are drawn."""

    make: Callable[..., Any]
    draw: Callable[[Source], dict[str, Any]]


FAMILIES: dict[str, Family] = {}
# How often each family is drawn, against 1 of the others.
WEIGHTS = {"product": 3, "reduction": 10, "convolution": 2, "softmax": 2, "staged": 2, "divided": 3, "gather": 2}


def family(draw: Callable[[Source], dict[str, Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a family by its name; `draw` gives its arguments."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        FAMILIES[make.__name__] = Family(make, draw)
        return make

    return register


def draw_recipe(source: Source, names: tuple[str, ...] = ()) -> Recipe:
    """A recipe of one of the named families (none named: of any)."""
    name = source.pick(names or tuple(n for n in FAMILIES for _ in range(WEIGHTS.get(n, 1))))
    return Recipe(name, tuple(FAMILIES[name].draw(source).items()))


def extent(source: Source, most: int = 24) -> int:
    """An axis' extent."""
    return source.pick([n for n in EXTENTS if n <= most])


def type_name(source: Source, names: tuple[str, ...] = TYPES) -> str:
    """An element type's name."""
    return source.pick(names)


# ---------------------------------------------------------------- pointwise work

_FLOAT_STEPS: dict[str, Callable[[Expr], Expr]] = {
    "relu": F.relu, "exp": lambda x: F.exp(F.minimum(x, 4)), "tanh": F.tanh, "square": lambda x: x * x, "sigmoid": F.sigmoid,
    "gelu": F.gelu, "erf": F.erf, "halve": lambda x: x * 0.5, "shift": lambda x: x + 1, "root": lambda x: F.sqrt(F.abs(x)),
    "floor": F.floor, "negate": lambda x: -x, "choose": lambda x: F.where(x < 0, x * 0.25, x), "log": lambda x: F.log(F.abs(x) + 1),
}  # fmt: skip
_ANY_STEPS: dict[str, Callable[[Expr], Expr]] = {
    "double": lambda x: x + x, "clip": lambda x: F.minimum(F.maximum(x, 0), 3), "offset": lambda x: x + 3,
    "pick": lambda x: F.where(x < 2, x, x * 2),
}  # fmt: skip


def chain(x: Expr, steps: tuple[str, ...]) -> Expr:
    """Pointwise steps one after another; those for floats are left out for integers."""
    for name in steps:
        if name in _ANY_STEPS:
            x = _ANY_STEPS[name](x)
        elif x.dtype.is_float:
            x = _FLOAT_STEPS[name](x)
    return x


def draw_chain(source: Source, most: int = 3) -> tuple[str, ...]:
    names = (*_ANY_STEPS, *_FLOAT_STEPS)
    return tuple(source.pick(names) for _ in range(source.integer(0, most)))


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
    named = _axes("ijl", extents)
    x: Expr = input("X", dtype, *named)[named]
    if other != "none":
        own = {"same": named, "last": named[-1:], "first": named[:1]}[other]
        x = x + input("B", dtype, *own)[own]
    value = chain(x, steps)
    return _defined("Y", F.cast(_small(value, to), to) if to else value, *named)


def _small(value: Expr, to: str) -> Expr:
    """A value that a conversion to an integer type can hold: what others give is up to the device."""
    target = dt.dtype(to)
    if target.is_integer and value.dtype.is_float:
        low = 0 if target.kind == "uint" else -50
        value = F.where(F.isnan(value), 0, F.minimum(F.maximum(value, low), 50))
    return value


@family(lambda s: {"rows": extent(s), "columns": extent(s), "dtype": type_name(s), "batch": s.pick((0, 2, 3))})
def transpose(rows: int, columns: int, dtype: str, batch: int) -> Tensor:
    """Y[j, i] = X[i, j], perhaps in a batch."""
    i, j, b = axes(i=rows, j=columns, b=batch)
    outer = (b,) if batch else ()
    return _defined("Y", input("X", dtype, *outer, i, j)[(*outer, i, j)], *outer, j, i)


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
    return _defined("C", value, *outer, mm, nn)


@family(lambda s: {"m": extent(s, 8), "n": extent(s, 8), "k": extent(s, 8), "p": extent(s, 8), "dtype": type_name(s)})
def two_products(m: int, n: int, k: int, p: int, dtype: str) -> Tensor:
    """(A B) C, the second product reading the whole of the first."""
    mm, nn, kk, pp = axes(m=m, n=n, k=k, p=p)
    first = define("T", F.sum(input("A", dtype, mm, kk)[mm, kk] * input("B", dtype, kk, pp)[kk, pp], over=kk), mm, pp)
    return _defined("C", F.sum(first[mm, pp] * input("D", first.dtype, pp, nn)[pp, nn], over=pp), mm, nn)


# ---------------------------------------------------------------- reductions

REDUCTIONS = ("sum", "max", "min", "prod", "argmax", "argmin", "any", "all", "welford", "user")


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
    outer, inner = _axes("il", kept), _axes("jk", over)
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
    return _defined("Y", chain(found, steps), *outer)


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


def reduce_by(kind: str, value: Expr, over: tuple[Axis, ...], where: Expr | None) -> Any:
    """A reduction by the name of its kind; a tuple of expressions for `welford`."""
    match kind:
        case "any" | "all":
            return getattr(F, kind)(0 < value, over=over, where=where)
        case "welford":
            one = F.cast(1, value.dtype)
            return F.reduce(welford, (0, 0, 0), (one, value, value * 0), over=over, where=where, name="welford")
        case "user":
            return F.reduce(_larger_magnitude, 0, F.abs(value), over=over, where=where, name="larger_magnitude")
        case _:
            return getattr(F, kind)(value, over=over, where=where)


def welford(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """(count, mean, sum of squared differences) of two sets together."""
    (n, mean, squares), (m, other, more) = left, right
    total = n + m
    share = m / F.where(F.equal(total, 0), 1, total)
    gap = other - mean
    return total, mean + gap * share, squares + more + gap * gap * n * share


def _larger_magnitude(a: Expr, b: Expr) -> Expr:
    return F.maximum(a, b)


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
    """One tensor read in two ways: X X', c c' with a computed c, or X + X'."""
    i, j, k, r = axes(i=rows, j=columns, k=depth, r=max(rows, columns))
    if form == "pointwise":
        S = input("S", dtype, r=max(rows, columns), q=max(rows, columns))
        return _defined("Y", S[i, j] + S[j, i] + S[j, i], i, j)
    X = input("X", dtype, r, k)
    c = _defined("c", X[r, k] + X[r, k], r, k) if form == "computed" else X
    return _defined("Y", F.sum(c[i, k] * c[j, k], over=k), i, j)


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
    """A convolution of a square image, padded, strided, dilated; per channel where `depthwise`."""
    out = max(0, (size + 2 * pad - dilation * (window - 1) - 1) // stride + 1)
    nn, f, p, q, c, r, s = axes(n=n, f=filters, p=out, q=out, c=channels, r=window, s=window)
    x = input("X", dtype, n=n, h=size, w=size, c=channels)
    rows, columns = stride * p + dilation * r - pad, stride * q + dilation * s - pad
    if depthwise:
        w = input("W", dtype, r=window, s=window, c=channels)
        return _defined("Z", F.sum(F.pad(x[nn, rows, columns, c], 0) * w[r, s, c], over=(r, s)), nn, p, q, c)
    w = input("W", dtype, f=filters, r=window, s=window, c=channels)
    value = F.pad(x[nn, rows, columns, c], 0) if pad else x[nn, rows, columns, c]
    return _defined("Z", F.sum(value * w[f, r, s, c], over=(r, s, c)), nn, p, q, f)


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
    return _defined("Y", reduce_by(kind, F.pad(x[b, stride * i + r - 1], fill), (r,), None), b, i)


@family(
    lambda s: {"rows": extent(s), "columns": extent(s), "dtype": type_name(s), "steps": draw_chain(s, 1), "fill": s.pick((0, 2))}
)
def stencil(rows: int, columns: int, dtype: str, steps: tuple[str, ...], fill: int) -> Tensor:
    """Each element with its neighbours, padded."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    here = x[i, j]
    value = here + F.pad(x[i - 1, j], fill) + F.pad(x[i, j + 1], fill)
    return _defined("Y", chain(value, steps), i, j)


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
    """Indices with quotients and remainders: a row seen as a matrix, a matrix as a row, elements repeated."""
    a, b, t, j = axes(a=outer, b=inner, t=outer * inner, j=5)
    if form == "split":
        x = input("X", dtype, t, j)
        read = x[a * inner + b, j]
        return _defined("Y", F.sum(read, over=b), a, j) if summed else _defined("Y", read, a, b, j)
    x = input("X", dtype, a, b, j) if form == "join" else input("X", dtype, a, j)
    read = x[t // inner, t % inner, j] if form == "join" else x[t // inner, j]
    return _defined("Y", F.sum(read, over=t), j) if summed else _defined("Y", read, t, j)


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
    """Rows of a table by number: an embedding, or a bag of them reduced."""
    b, t, e = axes(b=rows, t=bag, e=width)
    rows_of = input("table", dtype, v=table, e=width)
    ids = input("ids", "int32", b, t, range=(0, table))
    read = rows_of[ids[b, t], e]
    if kind == "none":
        return _defined("Y", read, b, t, e)
    return _defined("Y", reduce_by(kind, read, (t,), None), b, e)


# ---------------------------------------------------------------- several stages


@family(lambda s: {"rows": s.pick((3, 2, 1, 5)), "columns": extent(s), "dtype": type_name(s, FLOATS)})
def softmax(rows: int, columns: int, dtype: str) -> Tensor:
    """exp(x - max) over its sum, row by row, in four definitions."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    peak = define("peak", F.max(x[i, j], over=j), i)
    shifted = define("shifted", F.exp(x[i, j] - peak[i]), i, j)
    total = define("total", F.sum(shifted[i, j], over=j), i)
    return _defined("Y", shifted[i, j] / total[i], i, j)


@family(
    lambda s: {"rows": s.pick((3, 2, 1, 5)), "columns": s.pick((8, 7, 13, 16, 1)), "dtype": type_name(s, ("float32", "float64"))}
)
def normalised(rows: int, columns: int, dtype: str) -> Tensor:
    """Rows less their mean, over their spread: by the Welford tuple."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    count, mean, squares = define(("count", "mean", "squares"), reduce_by("welford", x[i, j], (j,), None), i)
    return _defined("Y", (x[i, j] - mean[i]) / F.sqrt(squares[i] / count[i] + 1), i, j)


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
    """A pointwise stage read by a second one, at its neighbour too, or by a reduction."""
    i, j = axes(i=rows, j=columns)
    x = input("X", dtype, i, j)
    middle = define("P", chain(x[i, j], first), i, j)
    if kind == "none":
        return _defined("Y", chain(middle[i, j] + F.pad(middle[i, j - 1], 0), second), i, j)
    return _defined("Y", chain(reduce_by(kind, middle[i, j], (j,), None), second), i)


# ---------------------------------------------------------------- shared


def _axes(names: str, extents: tuple[int, ...]) -> tuple[Axis, ...]:
    found = axes(**dict(zip(names, extents, strict=False))) if extents else ()
    return found if isinstance(found, tuple) else (found,)


def _defined(name: str, value: Expr, *dims: Axis) -> Tensor:
    made: Tensor = define(name, value, *dims)
    return made
