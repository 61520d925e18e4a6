"""What a program means, by `docs/computations.md` alone: every point of a grid, in float64 and in whole numbers.

`Value.array` has one dimension for each axis of the grid, of extent 1 where the value does not depend on it. `size` bounds the
magnitude of every intermediate result: the same expression with every sign positive.
"""

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {n: np.dtype(n) for n in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}
DTYPES |= {n: np.dtype(n) for n in ("float16", "float32", "float64", "bool")}
DTYPES |= {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
DTYPES |= {"float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2)}
RANK = {"float8_e4m3": 8, "float8_e5m2": 8, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}


class Unclear(Exception):
    """The documentation does not say what this means."""


class Value(NamedTuple):
    array: Array  # float64, bool, or a type of 32 or 64 bits
    dtype: str | None  # None: a number, which takes the type of what it meets
    size: Array


def bits(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


def is_float(dtype: str) -> bool:
    return dtype in RANK


def joined(a: str, b: str) -> str:
    if a == b:
        return a
    if is_float(a) and is_float(b):
        return "float32" if RANK[a] == RANK[b] else max(a, b, key=RANK.__getitem__)
    if is_float(a) or is_float(b):
        if "bool" in (a, b):
            raise Unclear("bool with float")
        return a if is_float(a) else b
    if "bool" in (a, b):
        raise Unclear("bool with integer")
    if a[0] == b[0]:
        return max(a, b, key=bits)
    signed, unsigned = (a, b) if a[0] == "i" else (b, a)
    width = max(bits(signed), 2 * bits(unsigned))
    if width > 64:
        raise Unclear("no type holds both")
    return f"int{width}"


def work(dtype: str) -> Any:
    """The type of pointwise work."""
    if is_float(dtype):
        return np.float64
    if dtype == "bool":
        return np.bool_
    return (np.uint32 if dtype[0] == "u" else np.int32) if bits(dtype) < 32 else DTYPES[dtype]


def to_integer(values: Array, dtype: str) -> Array:
    """Truncated; beyond the range the least or greatest; NaN gives 0."""
    limits = np.iinfo(DTYPES[dtype])
    cut = np.trunc(np.where(np.isnan(values), 0.0, values))
    result = np.zeros(cut.shape, DTYPES[dtype])
    high, low = cut >= float(limits.max), cut <= float(limits.min)
    result[high], result[low] = limits.max, limits.min
    inside = ~high & ~low
    result[inside] = cut[inside].astype(DTYPES[dtype])
    return result


def stored(v: Value, dtype: str) -> Array:
    """The value rounded or wrapped to a type."""
    with np.errstate(all="ignore"):
        if v.array.dtype == np.float64 and not is_float(dtype) and dtype != "bool":
            return to_integer(v.array, dtype)
        if v.array.dtype == np.float64 and is_float(dtype) and RANK[dtype] < 32:
            return v.array.astype(np.float64).astype(DTYPES[dtype])
        return v.array.astype(DTYPES[dtype])


def loaded(array: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        return array.astype(work(dtype))


def cast(v: Value, dtype: str) -> Value:
    return v if v.dtype == dtype else converted(v, dtype)


def converted(v: Value, dtype: str) -> Value:
    if is_float(dtype) and RANK[dtype] <= 32 and (v.dtype not in RANK or v.dtype == "float64"):
        with np.errstate(all="ignore"):  # narrower types are rounded at each `define` only
            return Value(v.array.astype(np.float32).astype(np.float64), dtype, v.size)
    if is_float(dtype):
        return Value(v.array.astype(np.float64), dtype, v.size)
    return Value(loaded(stored(v, dtype), dtype), dtype, v.size)


def wrapped(v: Value) -> Value:
    return v if v.dtype is None or v.dtype == "bool" or is_float(v.dtype) else converted(v, v.dtype)


def chosen(v: Value) -> Value:
    """What a function or `where` makes of numbers alone."""
    if v.dtype is not None:
        return v
    return v._replace(dtype="float32") if v.array.dtype == np.float64 else v._replace(dtype="int64")


def meet(a: Value, b: Value) -> tuple[Value, Value, str | None]:
    if a.dtype is None and b.dtype is None:
        return a, b, None
    if a.dtype is None or b.dtype is None:
        number, other = (a, b) if a.dtype is None else (b, a)
        assert other.dtype is not None
        dtype = other.dtype
        if number.array.dtype == np.float64 and not is_float(dtype):
            raise Unclear("a number with a fraction meets an integer")
    else:
        dtype = joined(a.dtype, b.dtype)
    wide = work(dtype)
    return a._replace(array=a.array.astype(wide)), b._replace(array=b.array.astype(wide)), dtype


def erfc(x: Array) -> Array:
    return np.vectorize(math.erfc, otypes=[np.float64])(x) if x.size else x


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


FUNCTIONS: dict[str, Any] = {
    **{
        n: getattr(np, n) for n in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tanh", "floor", "ceil")
    },
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * erfc(-x / math.sqrt(2.0)),
    "gelu_tanh": lambda x: x / (1.0 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "erf": erf,
    "round": np.rint,
    "isnan": np.isnan,
}


class Grid:
    """Evaluates expressions over named axes."""

    def __init__(self, program: dict[str, Any], tensors: dict[str, tuple[Array, str, Array]]):
        self.extents, self.tensors = program["axes"], tensors

    def axis(self, order: list[str], name: str) -> Array:
        shape = [1] * len(order)
        shape[order.index(name)] = self.extents[name]
        return np.arange(self.extents[name], dtype=np.int32).reshape(shape)

    def value(self, e: list[Any], order: list[str]) -> Value:
        one = [1] * len(order)
        match e:
            case ["number", bool(value)]:
                return Value(np.full(one, value), "bool", np.ones(one))
            case ["number", value]:
                kind: Any = np.int64 if isinstance(value, int) else np.float64
                return Value(np.full(one, value, kind), None, np.full(one, abs(float(value))))
            case ["axis", name]:
                values = self.axis(order, name)
                return Value(values, "int32", values.astype(np.float64))
            case ["read", name, indices]:
                return self.read(name, indices, order, None)
            case ["pad", ["read", name, indices], value]:
                return self.read(name, indices, order, value)
            case ["binary", op, a, b]:
                return binary(op, self.value(a, order), self.value(b, order))
            case ["unary", op, a]:
                return unary(op, self.value(a, order))
            case ["where", c, a, b]:
                condition = self.value(c, order)
                left, right, dtype = meet(self.value(a, order), self.value(b, order))
                if dtype is None:
                    wide = np.float64 if np.float64 in (left.array.dtype, right.array.dtype) else np.int64
                    left, right = left._replace(array=left.array.astype(wide)), right._replace(array=right.array.astype(wide))
                picked = np.where(condition.array, left.array, right.array)
                return chosen(Value(picked, dtype, np.maximum(left.size, right.size)))
            case ["cast", a, dtype]:
                value = settled(self.value(a, order))
                return (
                    wrapped(value) if value.dtype == dtype else cast(value, dtype)
                )  # narrow integers wrap in a cast to their own type
            case ["reduce", *_]:
                return self.reduce(e, order)[0]
            case ["member", a, n]:
                return self.reduce(a, order)[int(n)]
        raise ValueError(e)

    def read(self, name: str, indices: list[Any], order: list[str], outside: float | None) -> Value:
        array, dtype, size = self.tensors[name]
        at = [self.value(i, order).array.astype(np.int64) for i in indices]
        shape = np.broadcast_shapes(tuple([1] * len(order)), *(i.shape for i in at))
        if not array.size:
            return Value(np.full(shape, outside or 0).astype(work(dtype)), dtype, np.full(shape, abs(float(outside or 0))))
        inside = np.ones(shape, bool)
        for index, extent in zip(at, array.shape, strict=True):
            inside = inside & (index >= 0) & (index < extent)
        clamped = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, array.shape, strict=True))
        values = np.broadcast_to(
            loaded(array[clamped], dtype).reshape(np.broadcast_shapes((), *(i.shape for i in at)) or one_of(order)), shape
        )
        sizes = np.broadcast_to(size[clamped].reshape(np.broadcast_shapes((), *(i.shape for i in at)) or one_of(order)), shape)
        if outside is None:
            return Value(values, dtype, sizes)
        fill = loaded(stored(Value(np.full((1,), outside), None, sizes), dtype), dtype)
        return Value(
            np.where(inside, values, fill[0]), dtype, np.maximum(sizes, abs(float(outside)) if outside == outside else 0.0)
        )

    def reduce(self, e: list[Any], order: list[str]) -> list[Value]:
        _, kind, axes, condition, bodies = e
        inner = order + [a for a in axes if a not in order]
        values = [settled(self.value(b, inner)) for b in bodies]
        shape = tuple(self.extents[a] if a in axes else 1 for a in inner)
        shape = np.broadcast_shapes(shape, *(v.array.shape for v in values))
        points = np.ones(shape, bool)
        if condition:
            points = points & self.value(condition, inner).array
        shape = points.shape
        where = [inner.index(a) for a in axes]

        def lines(x: Array) -> Array:
            """The reduced axes last, as one, in row-major order."""
            moved = np.moveaxis(np.broadcast_to(x, shape), where, range(len(shape) - len(where), len(shape)))
            kept = moved.shape[: len(shape) - len(where)]
            return moved.reshape(*kept, math.prod(moved.shape[len(kept) :]))

        flat = [Value(lines(v.array), v.dtype, lines(v.size)) for v in values]
        results = combined(kind, flat, lines(points), axes, inner, self.extents)
        left = [n for n in range(len(inner)) if n not in where]

        def back(x: Array) -> Array:
            return x.reshape([x.shape[left.index(n)] if n in left else 1 for n in range(len(order))])

        return [Value(back(r.array), r.dtype, back(r.size)) for r in results]


def one_of(order: list[str]) -> tuple[int, ...]:
    return tuple([1] * len(order))


def settled(v: Value) -> Value:
    """A number by itself has no type that the documentation tells."""
    if v.dtype is not None:
        return v
    raise Unclear("the type of a number by itself")


def combined(
    kind: str, values: list[Value], points: Array, axes: list[str], inner: list[str], extents: dict[str, int]
) -> list[Value]:
    v = values[0]
    dtype = v.dtype or "float32"
    size = np.where(points, v.size, 0.0)
    if kind in ("sum", "prod"):
        if dtype == "bool" or (not is_float(dtype) and bits(dtype) < 32):
            dtype = "uint32" if dtype[0] == "u" else "int32"
        neutral = 0 if kind == "sum" else 1
        source = np.where(points, v.array.astype(work(dtype)), np.array(neutral, work(dtype)))
        reduce = np.sum if kind == "sum" else np.prod
        total = size.sum(-1) if kind == "sum" else np.where(points, np.maximum(v.size, 1.0), 1.0).prod(-1)
        return [Value(reduce(source, axis=-1, dtype=work(dtype)), dtype, total)]
    if kind in ("any", "all"):
        truth = v.array.astype(bool)
        found = (points & truth).any(-1) if kind == "any" else (~points | truth).all(-1)
        return [Value(found, "bool", np.ones(found.shape))]
    if kind in ("max", "min"):
        v = wrapped(v)
        source = np.where(points, v.array, np.array(extreme(dtype, kind), v.array.dtype))
        if not source.shape[-1]:
            return [Value(np.full(source.shape[:-1], extreme(dtype, kind), v.array.dtype), dtype, np.zeros(source.shape[:-1]))]
        return [Value(source.max(-1) if kind == "max" else source.min(-1), dtype, size.max(-1))]
    if kind in ("argmax", "argmin"):
        return [best(kind, wrapped(v), points)]
    return own(kind.split("__")[0], [wrapped(x) for x in values], points)


def extreme(dtype: str, kind: str) -> Any:
    if is_float(dtype):
        return -np.inf if kind == "max" else np.inf
    if dtype == "bool":
        return kind == "min"
    limits = np.iinfo(DTYPES[dtype])
    return limits.min if kind == "max" else limits.max


def best(kind: str, v: Value, points: Array) -> Value:
    result = np.full(points.shape[:-1], np.iinfo(np.int32).max, np.int32)
    for at in np.ndindex(points.shape[:-1]):
        row = v.array[at]
        found = -1
        for n in np.flatnonzero(points[at]).tolist():
            if found < 0 or (row[n] != row[n] and row[found] == row[found]):
                found = n
            elif row[found] == row[found] and (row[n] > row[found] if kind == "argmax" else row[n] < row[found]):
                found = n
        if found >= 0:
            result[at] = found
    return Value(result, "int32", np.ones(result.shape))


def own(kind: str, values: list[Value], points: Array) -> list[Value]:
    """The combiners of `program.COMBINERS`, folded from the left."""
    start: dict[str, list[Any]] = {
        "larger": [-np.inf],
        "exclusive": [0],
        "sum_and_least": [0, np.inf],
        "turn": [1, 0],
        "first_best": [-np.inf, 1000000],
    }
    shape = points.shape[:-1]
    states = [np.full(shape, s).astype(v.array.dtype) for s, v in zip(start[kind], values, strict=True)]
    sizes = [np.abs(np.where(points, v.size, 0.0)).sum(-1) + 1 for v in values]
    for n in range(points.shape[-1]):
        a, b = states, [v.array[..., n] for v in values]
        match kind:
            case "larger":
                new = [np.maximum(a[0], b[0])]
            case "exclusive":
                new = [a[0] ^ b[0]]
            case "sum_and_least":
                new = [a[0] + b[0], np.minimum(a[1], b[1])]
            case "turn":
                new = [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
            case _:
                lost, lost_too = np.isnan(a[0]), np.isnan(b[0])
                tie = (a[0] == b[0]) | (lost & lost_too)
                first = (a[0] > b[0]) | (lost & ~lost_too) | (tie & (a[1] < b[1]))
                new = [np.maximum(a[0], b[0]), np.where(first, a[1], b[1])]
        states = [np.where(points[..., n], x, y) for x, y in zip(new, states, strict=True)]
    return [wrapped(Value(s, v.dtype, z)) for s, v, z in zip(states, values, sizes, strict=True)]


def unary(op: str, a: Value) -> Value:
    if op == "~":
        return a._replace(array=~a.array)
    if op in ("-", "abs"):
        if op == "abs":
            a = settled(a)
        return a._replace(array=-a.array if op == "-" else np.abs(a.array))
    a = settled(a)
    assert a.dtype is not None
    if not is_float(a.dtype):
        if op == "relu":
            return a._replace(array=np.maximum(a.array, 0))
        raise Unclear("a function of floats of an integer")
    values = FUNCTIONS[op](a.array)
    return Value(values, "bool" if op == "isnan" else a.dtype, np.maximum(np.abs(values), a.size))


def binary(op: str, a: Value, b: Value) -> Value:
    a, b, dtype = meet(a, b)
    x, y = a.array, b.array
    sizes = a.size + b.size
    compare = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
    if op in compare:
        return Value(compare[op](x, y), "bool", np.ones(sizes.shape))
    if op in ("and", "or"):
        return Value(x & y if op == "and" else x | y, "bool", np.ones(sizes.shape))
    whole = x.dtype != np.float64
    match op:
        case "+":
            return Value(x + y, dtype, sizes)
        case "-":
            return Value(x - y, dtype, sizes)
        case "*":
            return Value(x * y, dtype, a.size * b.size)
        case "/":
            if whole:
                raise Unclear("a quotient of integers")
            return Value(x / y, dtype, np.abs(x / y))
        case "//" | "%":
            if whole and (y == 0).any():
                raise Unclear("division by zero")
            return Value(np.floor_divide(x, y) if op == "//" else np.mod(x, y), dtype, sizes)
        case "pow":
            if whole:
                raise Unclear("a power of integers")
            power = np.where((y == 0.5) & ((x == 0) | np.isinf(x)), np.abs(x), np.power(x, y))  # as C's; NumPy takes the root
            return chosen(Value(power, dtype, np.power(np.maximum(a.size, 1.0), np.abs(y))))
        case "max" | "min":
            return chosen(Value((np.maximum if op == "max" else np.minimum)(x, y), dtype, np.maximum(a.size, b.size)))
        case "&" | "|" | "^":
            return Value({"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[op](x, y), dtype, sizes)
        case "<<" | ">>":
            return Value(np.left_shift(x, y) if op == "<<" else np.right_shift(x, y), dtype, sizes * 256)
    raise ValueError(op)


def evaluate(program: dict[str, Any], arrays: dict[str, Array]) -> dict[str, tuple[Array, str, Array]]:
    """Every tensor of the program: values, type and the bound of the magnitudes on the way."""
    tensors = {}
    for i in program["inputs"]:
        if i["name"] not in arrays:  # nobody reads it
            continue
        array = arrays[i["name"]]
        with np.errstate(all="ignore"):
            tensors[i["name"]] = (array, i["dtype"], np.abs(array.astype(np.float64)))
    grid = Grid(program, tensors)
    for d in program["definitions"]:
        order = list(d["axes"])
        shape = tuple(program["axes"][a] for a in order)
        with np.errstate(all="ignore"):
            found = (
                [grid.value(e, order) for e in d["values"]]
                if len(d["values"]) == len(d["names"])
                else grid.reduce(d["values"][0], order)
            )
        for name, value in zip(d["names"], found, strict=True):
            value = settled(value)
            assert value.dtype is not None
            array = np.broadcast_to(stored(value, value.dtype), shape)
            tensors[name] = (array, value.dtype, np.broadcast_to(value.size, shape))
    return tensors
