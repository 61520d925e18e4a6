"""Integers of every type in the reference, compiled kernels and the simulator, beside a model of docs/computations.md's table.

The model works on Python's whole numbers. An expression and its values are drawn together, so that it reads nothing of the package.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl

N = 24
TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def bits(t: str) -> int:
    return int(t.lstrip("uint"))


def wrap(value: int, t: str) -> int:
    value &= (1 << bits(t)) - 1
    return value - (1 << bits(t)) if t[0] == "i" and value >> (bits(t) - 1) else value


def work(t: str) -> str:
    return t if bits(t) >= 32 else t.rstrip("0123456789") + "32"


def promoted(a: str, b: str) -> str:
    if a[0] == b[0]:
        return a if bits(a) > bits(b) else b
    signed, unsigned = (a, b) if a[0] == "i" else (b, a)
    return f"int{max(bits(signed), min(64, 2 * bits(unsigned)))}"


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "//": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0, "min": min, "max": max,
}  # fmt: skip
COMPARED = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Value:
    """An expression, its nominal type ("" for a condition), and its value at every i, in the type of the work."""

    def __init__(self, expr: Any, type: str, values: list[Any]) -> None:
        self.expr, self.type, self.values = expr, type, values

    def to(self, type: str, always: bool = False) -> list[int]:
        """Its values as a type's: always: a written cast, which wraps to the own type, too."""
        return self.values if self.type == type and not always else [wrap(int(v), type) for v in self.values]


class Draw:
    def __init__(self, random: random.Random) -> None:
        self.random, self.i = random, tl.axes(i=N)
        some = random.sample(("int8", "uint8", "int16", "uint16"), random.choice((1, 1, 2)))
        self.types = TYPES if random.random() < 0.3 else (*some, *random.sample(TYPES, random.randrange(2)))
        self.tensors: dict[str, tl.Tensor] = {}
        self.arrays: dict[str, Any] = {}

    def leaf(self) -> Value:
        r, t = self.random, self.random.choice(self.types)
        name, info = f"X_{t}_{r.randrange(2)}", np.iinfo(t)
        if name not in self.tensors:
            self.tensors[name] = tl.input(name, getattr(tl, t), self.i)
            edges = [e for e in (info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, -1, -2, -7) if info.min <= e]
            drawn = [r.choice(edges) if r.random() < 0.6 else r.randint(info.min, info.max) for _ in range(N)]
            self.arrays[name] = np.array(drawn, t)
        x, a, o = self.tensors[name], [int(v) for v in self.arrays[name]], r.randint(-3, 3)
        if r.random() < 0.7:
            return Value(x[self.i], t, a)
        return Value(tl.pad(x[self.i + o], 5), t, [a[i + o] if 0 <= i + o < N else 5 for i in range(N)])

    def value(self, depth: int) -> Value:
        r = self.random
        if depth == 0 or r.random() < 0.1:
            return self.leaf()
        kind, a = r.choice(("binary",) * 6 + ("shift", "unary", "cast", "cast", "where", "condition")), self.value(depth - 1)
        t, w = a.type, work(a.type)
        if kind == "binary":
            op, b = r.choice(list(OPERATORS)), self.value(depth - 1)
            t = promoted(t, b.type)
            pairs = zip(a.to(t), b.to(t), strict=True)
            return Value(applied(op, a.expr, b.expr), t, [wrap(OPERATORS[op](x, y), work(t)) for x, y in pairs])
        if kind == "shift":
            count = r.randrange(bits(w))
            if r.random() < 0.5:
                return Value(a.expr << count, t, [wrap(x << count, w) for x in a.values])
            return Value(a.expr >> count, t, [x >> count for x in a.values])
        if kind == "unary":
            made = r.choice((operator.neg, operator.invert, abs))
            return Value(made(a.expr), t, [wrap(made(x), w) for x in a.values])
        if kind == "cast":
            t = r.choice(self.types)
            return Value(tl.cast(a.expr, getattr(tl, t)), t, a.to(t, always=True))
        c = self.condition(depth - 1)
        if kind == "condition":
            return Value(tl.cast(c.expr, getattr(tl, t)), t, [int(x) for x in c.values])
        b = self.value(depth - 1)
        t = promoted(t, b.type)
        values = [x if keep else y for keep, x, y in zip(c.values, a.to(t), b.to(t), strict=True)]
        return Value(tl.where(c.expr, a.expr, b.expr), t, values)

    def condition(self, depth: int) -> Value:
        r, a, b = self.random, self.value(max(0, depth - 1)), self.value(max(0, depth - 1))
        op, t = r.choice(list(COMPARED)), promoted(a.type, b.type)
        pairs = list(zip(a.to(t), b.to(t), strict=True))
        found = Value(COMPARED[op](a.expr, b.expr), "", [COMPARED[op](x, y) for x, y in pairs])
        if depth > 0 and r.random() < 0.3:
            other = self.condition(depth - 1)
            both = zip(found.values, other.values, strict=True)
            return Value(found.expr & ~other.expr, "", [x and not y for x, y in both])
        return found


def applied(op: str, a: Any, b: Any) -> Any:
    named = {"min": tl.minimum, "max": tl.maximum, "//": operator.floordiv, "%": operator.mod}
    return named.get(op, OPERATORS[op])(a, b)


def defined(draw: Draw, depth: int) -> tuple[tl.Tensor, list[int]]:
    """A definition of one expression, and what it is."""
    r, i, v = draw.random, draw.i, draw.value(depth)
    how = r.choice(("pointwise", "nested", "sum", "prod", "max", "min", "argmax", "argmin", "any"))
    if how == "pointwise":
        return tl.define("Y", v.expr, i), v.to(v.type, always=True)
    if how == "nested":
        T, other = tl.define("T", v.expr, i), draw.leaf()
        stored, t = Value(None, v.type, v.to(v.type, always=True)), promoted(v.type, other.type)
        pairs = zip(stored.to(t), other.to(t), strict=True)
        return tl.define("Y", T[i] * other.expr, i), [wrap(x * y, t) for x, y in pairs]
    c = draw.condition(1) if r.random() < 0.5 else Value(None, "", [True] * N)
    points = [k for k in range(N) if c.values[k]]
    wide, narrow, t = [v.values[k] for k in points], [v.to(v.type, always=True)[k] for k in points], work(v.type)
    info, where = np.iinfo(v.type), {} if c.expr is None else {"where": c.expr}
    if how == "any":
        return tl.define("Y", tl.any(v.expr != 0, over=i, **where)), [int(any(wide))]
    made = tl.define("Y", getattr(tl, how)(v.expr, over=i, **where))
    if how in ("argmax", "argmin"):
        best = (max if how == "argmax" else min)(narrow, default=0)
        return made, [points[narrow.index(best)] if points else np.iinfo("int32").max]
    total = 1
    for x in wide:
        total = wrap(total * x, t)
    least, most = min(narrow, default=int(info.max)), max(narrow, default=int(info.min))
    return made, [{"sum": wrap(sum(wide), t), "prod": total, "min": least, "max": most}[how]]


def drawn(seed: int) -> tuple[tl.Computation, dict[str, Any], list[int]]:
    draw = Draw(random.Random(seed))
    Y, wanted = defined(draw, 1 + seed % 4)
    computation = tl.computation("c", Y)
    return computation, {t.name: draw.arrays[t.name] for t in computation.inputs}, wanted


def numbers(array: Any) -> list[int]:
    return [int(x) for x in np.atleast_1d(array)]


@pytest.mark.parametrize("seed", range(200))
def test_the_reference_and_the_text_say_what_the_table_says(seed: int) -> None:
    computation, arrays, wanted = drawn(seed)
    assert numbers(computation.evaluate(**arrays)) == wanted, computation.text
    read = tl.parse(computation.text).computation("c")
    assert read.text == computation.text and numbers(read.evaluate(**arrays)) == wanted


@pytest.mark.parametrize("seed", range(200, 216))
def test_kernels_and_the_simulator_do_too(seed: int) -> None:
    computation, arrays, wanted = drawn(seed)
    start = tl.schedule(computation)
    schedules = [start, start.vectorize(i=8)] if computation.outputs[0].shape else [start.accumulate(tl.register).split(i=5)]
    for kernel in (tl.compile(s, tl.target("cpu")) for s in schedules):
        assert numbers(kernel(*arrays.values())) == wanted, computation.text
        assert numbers(tl.simulate(kernel, **arrays).outputs["Y"]) == wanted, computation.text


@pytest.mark.parametrize("op", [operator.floordiv, operator.mod])
def test_zero_as_a_divisor_is_refused_where_it_is_written(op: Callable[[Any, Any], Any]) -> None:
    """A divisor that is data may be zero, and gives zero; one that is written is a mistake."""
    i = tl.axes(i=4)
    X, D = tl.input("X", tl.int32, i), tl.input("D", tl.int32, i)
    for dividend in (X[i], i):
        with pytest.raises(tl.ComputationError, match="division-by-zero"):
            op(dividend, 0)
    both = tl.compile(tl.define("Y", op(X[i], D[i]), i))
    assert both(np.array([7, -7, 0, 9], np.int32), np.array([0, 0, 0, 2], np.int32)).tolist()[:3] == [0, 0, 0]
