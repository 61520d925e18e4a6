"""The text of a computation, in the form of the language's files: what its hash is taken of.

Definitions print as they were written, so hidden reductions do not appear: reading the text back makes them again. An axis whose
extent no input's dimension of that name gives has a line of its own. Licences and ranges follow what they belong to.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tilelang.expr import Axis, Cast, Combiner, Expr, Reduce, rewrite, to_text, unique

# The tensors, definitions and computations of tilelang.computation, which imports this module.
Tensor: TypeAlias = Any
Definition: TypeAlias = Any
Computation: TypeAlias = Any

SHIPPED = ("sum", "prod", "max", "min", "argmax", "argmin")


def computation_text(computation: Computation) -> str:
    """The whole text, ending in a newline.

    >>> from tilelang import dtype as dt
    >>> from tilelang.computation import as_computation, axes, define, input
    >>> from tilelang.functions import sum
    >>> m, k = axes(m=4, k=8)
    >>> A = input("A", dt.float32, m, k)
    >>> print(as_computation(define("y", sum(A[m, k] * 2.0, over=k), m)).text, end="")
    computation y {
      input A: float32[m: 4, k: 8]
      output y[m] = sum[k] A[m, k] * 2.0
    }
    """
    lines = [f"  input {t!r}{_range(t)}" for t in computation.inputs]
    given = _given(computation)
    lines += [f"  axis {a.name}: {a.extent}" for a in computation.axes if given.get(a.name) != a.extent]
    lines += [f"  {line}" for combiner in _own_combiners(computation) for line in _combiner(combiner)]
    lines += [f"  {_definition(d, computation.outputs)}" for d in computation.definitions if d.written is not None]
    return f"computation {computation.name} {{\n" + "\n".join(lines) + "\n}\n"


def _range(tensor: Tensor) -> str:
    return f" in {tensor.range[0]} .. {tensor.range[1]}" if tensor.range is not None else ""


def _given(computation: Computation) -> dict[str, int | None]:
    """The extent that inputs give to a name; None where two differ."""
    found: dict[str, int | None] = {}
    for dim in (d for t in computation.inputs for d in t.dims):
        if found.setdefault(dim.name, dim.extent) != dim.extent:
            found[dim.name] = None
    return found


def _own_combiners(computation: Computation) -> list[Combiner]:
    values = [v for d in computation.definitions for v in d.values]
    found = dict.fromkeys(e.combiner for v in values for e in unique(v) if isinstance(e, Reduce))
    return [c for c in found if c.name not in SHIPPED]


def _combiner(c: Combiner) -> list[str]:
    left, right = (", ".join(f"{v.name}: {v.type}" for v in side) for side in (c.left, c.right))
    return [
        f"combiner {c.name}({left}; {right}) {{",
        *(f"  {to_text(r)}" for r in c.result),
        f"  identity {', '.join(to_text(i) for i in c.identity)}",
        "}",
    ]


def _definition(definition: Definition, outputs: tuple[Tensor, ...]) -> str:
    tensors = definition.tensors
    assert definition.written is not None
    written = tuple(rewrite(e, _without_implied_cast) for e in definition.written)
    word = "output " if any(t in outputs for t in tensors) else ""
    # Of the members of one reduction some may be outputs and others not.
    names = ", ".join(f"{t.name}[{', '.join(a.name for a in definition.axes)}]" for t in tensors)
    chosen = [t.name for t in tensors if t in outputs]
    partly = f" only {', '.join(chosen)}" if word and len(chosen) < len(tensors) else ""
    allow = f" allow {', '.join(definition.allow)}" if definition.allow else ""
    value = root_text(written[0]) if len(written) == 1 else _tuple_text(written)
    return f"{word}{names} = {value}{allow}{partly}"


def _without_implied_cast(e: Expr) -> Expr:
    """A reduction of 16-bit floats comes with the cast that `tl.sum` put around it: reading it back puts it there again."""
    if isinstance(e, Cast) and isinstance(e.operand, Reduce) and e.type.is_float:
        reduce = e.operand
        if reduce.dtype != e.type and reduce.values[reduce.member].dtype == e.type:
            return reduce
    return e


def _tuple_text(written: tuple[Expr, ...]) -> str:
    first = written[0]
    if isinstance(first, Reduce) and written == tuple(first.replace(member=i) for i in range(len(first.values))):
        return f"{first.combiner.name}[{_domain(first)}] ({', '.join(to_text(v) for v in first.values)})"
    return ", ".join(to_text(e) for e in written)


def root_text(e: Expr) -> str:
    """An expression at the head of a definition: a reduction there needs no parentheses."""
    if isinstance(e, Reduce) and len(e.values) == 1:
        return f"{e.combiner.name}[{_domain(e)}] {to_text(e.values[0])}"
    return to_text(e)


def _domain(e: Reduce) -> str:
    axes: tuple[Axis, ...] = e.axes
    condition = f": {to_text(e.condition)}" if e.condition is not None else ""
    return ", ".join(a.name for a in axes) + condition
