"""Determines whether a computation is exact on small integers, and how small they must be.

If every node is exact on integers (`+ - *`, min, max, comparisons, selections, reads, integer literals), a correct kernel matches the
reference bit for bit, in whatever order it sums, as long as every partial result is an integer that its type represents exactly. The
maximum magnitude of every node follows from that of the inputs by interval arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import COMPARISONS, Axis, Binary, Call, Cast, Const, Expr, Pad, Read, Reduce, Select, Unary, Var

AMPLITUDES = (8, 6, 4, 3, 2, 1)


class Inexact(Exception):
    """A node that may round."""


def amplitude(computation: Computation) -> int | None:
    """The greatest input magnitude, of those tried, for which everything is exact; None if some node may round even then."""
    for size in AMPLITUDES:
        try:
            magnitudes(computation, size)
        except Inexact:
            continue
        return size
    return None


def inexact(computation: Computation) -> str | None:
    """The reason why a computation is not exact on integers, as text; None if it is."""
    try:
        magnitudes(computation, AMPLITUDES[-1])
    except Inexact as fault:
        return str(fault)
    return None


def magnitudes(computation: Computation, size: int) -> dict[Tensor, int]:
    """The maximum magnitude of every tensor's elements for inputs up to `size`. Raises Inexact."""
    found: dict[Tensor, int] = {}
    for t in computation.inputs:
        if t.range is not None:
            found[t] = max(abs(t.range[0]), abs(t.range[1]))
        else:
            found[t] = 1 if t.dtype.kind == "bool" else size
            _held(found[t], t.dtype, t.name)
    for definition in computation.definitions:
        for tensor, value in zip(definition.tensors, definition.values, strict=True):
            found[tensor] = _Magnitude(found, definition).of(value)
    return found


def _held(size: int, t: DType, what: object) -> int:
    """The magnitude, if the type represents every integer up to it."""
    limit = 2**t.mantissa_bits if t.is_float else 1 if t.kind == "bool" else t.highest
    if size > limit:
        raise Inexact(f"`{what}` may reach {size}, and {t} holds integers up to {limit}")
    return size


class _Magnitude:
    """The maximum magnitude of a definition's expressions."""

    def __init__(self, tensors: Mapping[Tensor, int], definition: Definition) -> None:
        self.tensors, self.definition = tensors, definition
        self.known: dict[Expr, int] = {}

    def of(self, e: Expr) -> int:
        found = self.known.get(e)
        if found is None:
            found = self.known[e] = self.compute(e)
        return found

    def compute(self, e: Expr) -> int:
        match e:
            case Const(value, t):
                # An infinity stays exact: it is compared but not added, or gives the same NaN in every order.
                if t.is_float and not math.isinf(value) and not float(value).is_integer():
                    raise Inexact(f"the literal {value} is not a whole number")
                return 0 if t.is_float and math.isinf(value) else abs(int(value))
            case Axis(extent=extent):
                return max(0, extent - 1)
            case Var():
                raise Inexact(f"`{e}` is unknown")
            case Binary(op, left, right):
                return self.binary(op, left, right, e)
            case Unary(_, operand):
                return self.of(operand) if e.dtype.kind != "bool" else self.of(operand) * 0 + 1
            case Call("abs" | "floor" | "ceil" | "round", (x,)):
                return self.of(x)
            case Call("isnan", (x,)):
                self.of(x)
                return 1
            case Call(name, _):
                raise Inexact(f"{name} rounds")
            case Select(condition, then, otherwise):
                self.of(condition)
                return max(self.of(then), self.of(otherwise))
            case Cast(operand, t):
                return self.cast(self.of(operand), operand.dtype, t, e)
            case Read(tensor, indices):
                for i in indices:
                    self.of(i)
                return self.tensors[tensor]
            case Pad(read, value):
                return max(self.of(read), self.of(value))
            case Reduce():
                return self.reduce(e)
            case _:
                raise Inexact(f"`{e}` is not known to be exact")

    def binary(self, op: str, left: Expr, right: Expr, e: Expr) -> int:
        a, b = self.of(left), self.of(right)
        if e.dtype.kind == "bool" and op not in ("==", "!=", "<", "<="):
            return 1
        match op:
            case "+" | "-":
                return _held(a + b, left.dtype, e)
            case "*":
                return _held(a * b, left.dtype, e)
            case "min" | "max":
                return max(a, b)
            case "//" | "%" if not left.dtype.is_float:
                return max(a, b)
            case _ if op in COMPARISONS:
                return 1
            case "&" | "|" | "^":
                return 1 << max(a.bit_length(), b.bit_length())
            case _:
                raise Inexact(f"`{op}` rounds")

    @staticmethod
    def cast(size: int, source: DType, target: DType, e: Expr) -> int:
        if target.kind == "bool":
            return 1
        if source.is_float and target.is_float and target.bits < source.bits:
            # An integer rounds to the same integer everywhere, unless it exceeds the type's range.
            if size > {"float16": 65504, "float8_e4m3": 448, "float8_e5m2": 57344}.get(target.name, 2**100):
                raise Inexact(f"`{e}` may overflow")
            return size if size <= 2**target.mantissa_bits else 2 * size
        if source.is_float and target.is_integer:
            return int(min(size, max(target.highest, -target.lowest)))  # values out of range saturate, identically everywhere
        return _held(size, target, e)

    def reduce(self, e: Reduce) -> int:
        points = math.prod(a.extent for a in e.axes)
        if e.condition is not None:
            self.of(e.condition)
        size = max(self.of(v) for v in e.values)
        t = dt.float16 if "float16_accumulate" in self.definition.allow and e.dtype.is_float else e.dtype
        match e.combiner.name:
            case "sum" if len(e.values) == 1:
                return _held(size * points, t, e)
            case "prod" if not t.is_float:
                return int(t.highest)  # wraps identically in any order
            case _ if all(_only_chooses(r) for r in e.combiner.result):
                return size
            case _:
                raise Inexact(f"{e.combiner.name} may round")


def _only_chooses(e: Expr) -> bool:
    """Whether a combiner's expression only selects: comparisons, selections, min and max."""
    for part in e.walk():
        if isinstance(part, Binary) and part.op not in (*COMPARISONS, "and", "or", "min", "max"):
            return False
        if isinstance(part, Call) and part.name not in ("isnan", "abs"):
            return False
    return True
