"""The same program through the functions of `tl`, each operator written in one of the ways that Python and NumPy have for it."""

import random
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks.foreign.program import Expression

NUMPY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tanh", "floor", "ceil", "isnan")
UFUNCS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.mod,
    "pow": np.power,
}
UFUNCS |= {"max": np.maximum, "min": np.minimum, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def computation(program: dict[str, Any], r: random.Random) -> Any:
    """The `tl.Computation` of a program."""
    return _Builder(program, r).computation()


class _Builder:
    def __init__(self, program: dict[str, Any], r: random.Random):
        self.program, self.random = program, r
        made = tl.axes(**program["axes"])
        self.axes: dict[str, Any] = dict(zip(program["axes"], made if isinstance(made, tuple) else (made,), strict=True))
        self.tensors: dict[str, Any] = {}
        for i in program["inputs"]:
            dtype = tl.bool if i["dtype"] == "bool" else getattr(tl, i["dtype"])
            named: dict[str, Any] = dict(i["dims"]) | ({"range": tuple(i["range"])} if i.get("range") else {})
            self.tensors[i["name"]] = tl.input(i["name"], dtype, **named)

    def computation(self) -> Any:
        for d in self.program["definitions"]:
            axes = [self.axes[a] for a in d["axes"]]
            values = d["values"]
            if len(values) < len(d["names"]):
                members = self.reduce(values[0])
            else:
                members = [self.value(e) for e in values]
            for name, value in zip(d["names"], members, strict=True):
                self.tensors[name] = tl.define(name, value, *axes)
        return tl.computation("drawn", [self.tensors[n] for n in self.program["outputs"]])

    def reduce(self, e: Expression) -> Any:
        _, kind, axes, condition, bodies = e
        over: Any = tuple(self.axes[a] for a in axes)
        over = over[0] if len(over) == 1 and self.random.random() < 0.7 else over
        where = {"where": self.value(condition)} if condition else {}
        values = [self.value(b) for b in bodies]
        if kind in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"):
            return getattr(tl, kind)(values[0], over=over, **where)
        combine, identity = COMBINERS[kind.split("__")[0]]
        if len(values) == 1:
            return [tl.reduce(combine, identity[0], values[0], over=over, **where)]
        return tl.reduce(combine, identity, tuple(values), over=over, **where)

    def value(self, e: Expression) -> Any:
        match e:
            case ["number", value]:
                return value
            case ["axis", name]:
                return self.axes[name]
            case ["read", name, indices]:
                tensor = self.tensors[name]
                return tensor[tuple(self.value(i) for i in indices)]
            case ["pad", read, value]:
                return tl.pad(self.value(read), value)
            case ["binary", op, a, b]:
                return self.binary(op, self.value(a), self.value(b))
            case ["unary", op, a]:
                return self.unary(op, self.value(a))
            case ["where", c, a, b]:
                return tl.where(self.value(c), self.value(a), self.value(b))
            case ["cast", a, dtype]:
                return tl.cast(self.value(a), getattr(tl, dtype))
            case ["reduce", *_]:
                made = self.reduce(e)
                return made[0] if isinstance(made, list) else made
            case ["member", a, n]:
                return self.reduce(a)[int(n)]
        raise ValueError(e)

    def unary(self, op: str, a: Any) -> Any:
        r = self.random
        number = isinstance(a, int | float)
        if op == "-":
            return -a
        if op == "~":
            return np.logical_not(a) if r.random() < 0.2 and not number else ~a if not number else not a
        if op == "abs":
            return abs(a) if r.random() < 0.5 and not number else tl.abs(a)
        if op == "round":
            return round(a) if r.random() < 0.5 and not number else tl.round(a)
        if op in NUMPY and r.random() < 0.4 and not number:
            return getattr(np, op)(a)
        return getattr(tl, op)(a)

    def binary(self, op: str, a: Any, b: Any) -> Any:
        r = self.random
        numbers = isinstance(a, int | float) and isinstance(b, int | float)
        if op in ("max", "min"):
            return (tl.maximum if op == "max" else tl.minimum)(a, b) if numbers or r.random() < 0.5 else UFUNCS[op](a, b)
        if numbers and op in ("and", "or"):
            return a and b if op == "and" else a or b
        if numbers and op == "pow":  # what the text makes of numbers alone has a type
            return tl.cast(float(np.power(float(a), b)), tl.float32) if isinstance(a, float) or isinstance(b, float) else a**b
        if op in UFUNCS and not numbers and r.random() < 0.25:
            return UFUNCS[op](a, b)
        if op in MIRRORED:
            if r.random() < 0.3:
                op, a, b = MIRRORED[op], b, a
            if op in ("==", "!=") and r.random() < 0.3:
                return (tl.equal if op == "==" else tl.not_equal)(a, b)
        if op in ("//", "%") and r.random() < 0.3:
            return divmod(a, b)[op == "%"]
        return OPERATORS[op](a, b)


OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "pow": lambda a, b: a**b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
}  # fmt: skip


def _first_best(x: Any, y: Any) -> Any:
    (a, p), (b, q) = x, y
    lost, lost_too = tl.isnan(a), tl.isnan(b)
    tie = (a == b) | (lost & lost_too)
    return tl.maximum(a, b), tl.where((a > b) | (lost & ~lost_too) | (tie & (p < q)), p, q)


COMBINERS: dict[str, Any] = {
    "larger": (tl.maximum, (float("-inf"),)),
    "exclusive": (lambda a, b: a ^ b, (0,)),
    "sum_and_least": (lambda x, y: (x[0] + y[0], tl.minimum(x[1], y[1])), (0, float("inf"))),
    "turn": (lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]), (1, 0)),
    "first_best": (_first_best, (float("-inf"), 1000000)),
}
