"""The text form of a computation, as in the language's files; its hash is taken of this text.

Reading it back gives the same computation. Definitions print as they were written, so hidden reductions do not appear, since reading
recreates them. A number prints plainly only if reading gives it its type, otherwise as a cast. An axis whose extent no input determines
has a line of its own. Licences and ranges follow what they belong to.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tilelang.computations.combiners import SHIPPED, argument, state_type
from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import (
    INDEX,
    PRECEDENCE,
    Axis,
    Binary,
    Call,
    Cast,
    Combiner,
    Const,
    Expr,
    Pad,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
    cast,
)
from tilelang.core.identifiers import spelled

# The tensors, definitions and computations of tilelang.computations.computation, which imports this module.
Tensor: TypeAlias = Any
Definition: TypeAlias = Any
Computation: TypeAlias = Any

_TIGHTEST = 11  # precedence of names, reads and calls


def computation_text(computation: Computation) -> str:
    """The whole text, ending in a newline.

    >>> from tilelang.core import dtype as dt
    >>> from tilelang.computations.computation import as_computation, axes, input
    >>> from tilelang.computations.define import define
    >>> from tilelang.computations.functions import sum
    >>> m, k = axes(m=4, k=8)
    >>> A = input("A", dt.float32, m, k)
    >>> print(as_computation(define("y", sum(A[m, k] * 2.0, over=k), m)).text, end="")
    computation y {
      input A: float32[m: 4, k: 8]
      output y[m] = sum[k] A[m, k] * 2.0
    }
    """
    lines = [f"  input {_input(t)}" for t in computation.inputs]
    given = _given(computation)
    lines += [f"  axis {spelled(a.name)}: {a.extent}" for a in computation.axes if given.get(a.name) != a.extent]
    combiners = combiner_names(computation)
    lines += [f"  {line}" for c, name in combiners.items() for line in _combiner(c, name)]
    lines += [f"  {_definition(d, computation.outputs, combiners)}" for d in computation.definitions if d.written is not None]
    in_order = [t for d in computation.definitions for t in d.tensors if t in computation.outputs]
    if in_order != list(computation.outputs):
        lines.append(f"  outputs {', '.join(spelled(t.name) for t in computation.outputs)}")
    return f"computation {spelled(computation.name)} {{\n" + "\n".join(lines) + "\n}\n"


def _input(tensor: Tensor) -> str:
    dims = ", ".join(f"{spelled(d.name)}: {d.extent}" for d in tensor.dims)
    range_text = f" in {tensor.range[0]} .. {tensor.range[1]}" if tensor.range is not None else ""
    return f"{spelled(tensor.name)}: {tensor.dtype}[{dims}]{range_text}"


def _given(computation: Computation) -> dict[str, int]:
    """The extent that the first input with a dimension of each name determines."""
    found: dict[str, int] = {}
    for dim in (d for t in computation.inputs for d in t.dims):
        found.setdefault(dim.name, dim.extent)
    return found


def combiner_names(computation: Computation) -> dict[Combiner, str]:
    """The user's combiners, each with a unique name."""
    values = [v for d in computation.definitions for v in d.written or ()]
    found: dict[Combiner, str] = {}
    for c in dict.fromkeys(e.combiner for v in values for e in v.walk() if isinstance(e, Reduce)):
        if c.name not in SHIPPED:
            base, number = "".join(x if x.isalnum() or x == "_" else "_" for x in c.name), 2
            base = name = base if base.isidentifier() else f"combine_{base}"
            while name in found.values():
                name, number = f"{base}_{number}", number + 1
            found[c] = name
    return found


def _combiner(c: Combiner, name: str) -> list[str]:
    left, right = (", ".join(f"{v.name}: {v.type}" for v in side) for side in (c.left, c.right))
    printer = _Printer({})
    results = [printer.text(r, 0, r.dtype) for r in c.result]
    return [
        f"combiner {spelled(name)}({left}; {right}) {{",
        *(f"  {r}{',' if k + 1 < len(results) else ''}" for k, r in enumerate(results)),
        f"  identity {', '.join(printer.text(i, 0, i.type) for i in c.identity)}",
        "}",
    ]


def _definition(definition: Definition, outputs: tuple[Tensor, ...], combiners: dict[Combiner, str]) -> str:
    tensors, written = definition.tensors, definition.written
    assert written is not None
    word = "output " if any(t in outputs for t in tensors) else ""
    # Some members of a reduction may be outputs and others not.
    axes = ", ".join(spelled(a.name) for a in definition.axes)
    names = ", ".join(f"{spelled(t.name)}[{axes}]" for t in tensors)
    chosen = [spelled(t.name) for t in tensors if t in outputs]
    partly = f" only {', '.join(chosen)}" if word and len(chosen) < len(tensors) else ""
    allow = f" allow {', '.join(definition.allow)}" if definition.allow else ""
    return f"{word}{names} = {_Printer(combiners).written(written)}{allow}{partly}"


class _Printer:
    """Prints expressions so that reading them gives the same expression. combiners: their names in the text."""

    def __init__(self, combiners: dict[Combiner, str]) -> None:
        self.combiners = combiners

    def written(self, values: tuple[Expr, ...]) -> str:
        """The right-hand side of a definition: a value for each tensor, or the members of one reduction."""
        first = _bare(values[0])
        if isinstance(first, Reduce) and len(first.values) > 1 and not _is_argument(first):
            members = tuple(first.replace(member=i) for i in range(len(first.values)))
            if tuple(map(_bare, values)) == members:
                return self._reduction(first)
        return ", ".join(self.text(e, 0, None) for e in values)

    def text(self, e: Expr, outer: int, like: DType | None) -> str:
        """An expression. outer: the precedence of the context. like: the type that a number gets in this context (None: its own)."""
        match e:
            case Const():
                return self._number(e, like)
            case Var(name=name) | Axis(name=name):
                return spelled(name)
            case Binary(op, left, right):
                return self._binary(op, left, right, outer)
            case Unary("not", operand):
                return _closed(f"not {self.text(operand, PRECEDENCE['=='] + 1, None)}", 3, outer)
            case Unary(op, operand):
                inner = _cast_text(operand) if isinstance(operand, Const) else self.text(operand, 10, None)
                return _closed(f"{op}{inner}", 10, outer)
            case Call(name, args):
                return f"{name}({', '.join(self.text(a, 0, None) for a in args)})"
            case Select(condition, then, otherwise):
                a, b = self._pair(then, otherwise)
                return f"where({self.text(condition, 0, None)}, {a}, {b})"
            case Read(tensor, indices):
                return f"{spelled(tensor.name)}[{', '.join(self.text(i, 0, INDEX) for i in indices)}]"
            case Pad(read, value):
                return f"pad({self.text(read, 0, None)}, {self.text(value, 0, value.type)})"
            case _:
                bare = _bare(e)
                if isinstance(bare, Reduce):
                    return self._nested(bare, outer)
                assert isinstance(e, Cast), f"{type(e).__name__} stands in no definition"
                if isinstance(e.operand, Const):
                    return f"cast({_cast_text(e.operand)}, {e.type})"
                return f"cast({self.text(e.operand, 0, None)}, {e.type})"

    # ------------------------------------------------------------ numbers

    @staticmethod
    def _number(e: Const, like: DType | None) -> str:
        text = _literal(e)
        kind = type(e.value)
        if kind is bool:
            read = dt.bool_
        elif kind is int:
            read = like if like is not None and like.kind != "bool" else INDEX
        else:
            read = like if like is not None and like.is_float else dt.float32
        return text if read == e.type else _cast_text(e)

    def _pair(self, left: Expr, right: Expr, below: tuple[int, int] = (0, 0)) -> tuple[str, str]:
        """Two operands; a number takes the type of the other operand, if that is not a number."""
        if isinstance(left, Const) and isinstance(right, Const):
            return _cast_text(left) if _literal_type(left) != left.type else self.text(left, below[0], None), (
                self.text(right, below[1], left.type if _literal_type(left) != left.type else None)
            )
        return self.text(left, below[0], right.dtype), self.text(right, below[1], left.dtype)

    def _binary(self, op: str, left: Expr, right: Expr, outer: int) -> str:
        p = PRECEDENCE.get(op, 0)  # 0 for min, max, pow
        if isinstance(left, Const) and isinstance(right, Const):  # two numbers would be folded when read
            a, b = _cast_text(left), self.text(right, p + 1, left.type)
        else:
            a, b = self._pair(left, right, (p + (p == PRECEDENCE["=="]), p + 1) if p else (0, 0))
        if not p:
            return f"{op}({a}, {b})"
        return _closed(f"{a} {op} {b}", p, outer)

    # ------------------------------------------------------------ reductions

    def _nested(self, e: Reduce, outer: int) -> str:
        text = self._reduction(e)
        if len(e.values) > 1 and not _is_argument(e):
            return f"({text})[{e.member}]"
        return _closed(text, 0, outer)

    def _reduction(self, e: Reduce) -> str:
        values, found = _restored(e)
        condition = f": {self.text(found, 0, None)}" if found is not None else ""
        domain = ", ".join(spelled(a.name) for a in e.axes) + condition
        own = self.combiners.get(e.combiner)
        name = e.combiner.name if own is None else f"reduce {spelled(own)}"
        if len(values) == 1 or _is_argument(e):
            return f"{name}[{domain}] {self.text(values[0], 0, None)}"
        return f"{name}[{domain}] ({', '.join(self.text(v, 0, None) for v in values)})"


def _closed(text: str, mine: int, outer: int) -> str:
    return f"({text})" if mine < outer else text


def _literal(e: Const) -> str:
    return str(e.value).lower() if e.type.kind == "bool" else str(e.value)


def _literal_type(e: Const) -> DType:
    """The type that the number has without context."""
    return dt.bool_ if isinstance(e.value, bool) else INDEX if isinstance(e.value, int) else dt.float32


def _cast_text(e: Const) -> str:
    return f"cast({_literal(e)}, {e.type})"


def _bare(e: Expr) -> Expr:
    """A reduction without its implicit cast, which reading adds again."""
    if isinstance(e, Cast) and isinstance(e.operand, Reduce):
        reduce = e.operand
        value = reduce.values[reduce.member]
        keeps = reduce.combiner.name in ("max", "min") and value.dtype.kind != "bool"
        nominal = value.dtype if value.dtype.is_float or keeps else state_type(value.dtype)
        return reduce if e.type == nominal else e
    return e


def _restored(e: Reduce) -> tuple[tuple[Expr, ...], Expr | None]:
    """Values and condition as given: for several values, a condition on data was moved into each (combiners.restrict)."""
    choices = [v for v in e.values if isinstance(v, Select)]
    if e.condition is not None or len(e.values) < 2 or len(choices) < len(e.values):
        return e.values, e.condition
    neutral = [
        isinstance(c.otherwise, Const) and c.otherwise.value == i.value for c, i in zip(choices, e.combiner.identity, strict=True)
    ]
    if not all(neutral) or any(c.condition is not choices[0].condition for c in choices):
        return e.values, e.condition
    if not any(isinstance(x, (Read, Reduce)) for x in choices[0].condition.walk()):
        return e.values, e.condition
    return tuple(c.then for c in choices), choices[0].condition


def _is_argument(e: Reduce) -> bool:
    """Whether this is what argmax or argmin builds: the index of a value, row-major over the axes."""
    if e.combiner.name not in ("argmax", "argmin") or e.member != 1 or len(e.values) != 2:
        return False
    number: Expr = e.axes[0]
    for axis in e.axes[1:]:
        number = number * axis.extent + axis
    kind = e.combiner.left[1].type
    return _restored(e)[0][1] is cast(number, kind) and e.combiner is argument(
        e.combiner.name, state_type(e.values[0].dtype), kind
    )


__all__ = ["combiner_names", "computation_text"]
