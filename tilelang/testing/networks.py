"""Random computations of several stages that read each other in any order, unlike the single operators of the families.

A stage is plain text and numbers, so that it prints and shrinks: its axes, what it reduces, what it reads and how.
"""

from __future__ import annotations

from typing import Any

from tilelang.computations import functions as F
from tilelang.computations.computation import Computation, Tensor, axes, computation, input
from tilelang.core.expr import Axis, Expr, Read, index
from tilelang.testing.choice import Source, subset
from tilelang.testing.family import REDUCTIONS, chain, defined, draw_chain, family, reduce_by

NAMES = "abc"
FORMS = ("plain", "plain", "shifted", "reversed", "halved", "doubled")
JOINED = ("+", "*", "max", "where", "-")
Term = tuple[int, str]  # the number of a tensor, and how its last dimension is indexed
Stage = tuple[str, str, str, tuple[Term, ...], str, tuple[str, ...]]


def draw_network(source: Source, stages_of: tuple[int, int] = (1, 4)) -> dict[str, Any]:
    """Arguments of `network`. stages_of: the minimum and maximum number of stages."""
    tensors = [_some(source) for _ in range(source.integer(1, 3))]
    inputs, stages = tuple(tensors), []
    for _ in range(source.integer(*stages_of)):
        kind = source.pick(("none", "none", "sum", *REDUCTIONS[:8]))
        kept, over = _some(source), ""
        if kind != "none":
            over = "".join(subset(source, NAMES, 60)) or source.pick(NAMES)
            kept = "".join(a for a in kept if a not in over)
        terms = tuple((source.integer(0, len(tensors) - 1), source.pick(FORMS)) for _ in range(source.integer(1, 3)))
        stages.append((kind, kept, over, terms, source.pick(JOINED), draw_chain(source, 2)))
        tensors.append(kept)
    return {
        "extents": tuple(source.pick((4, 5, 3, 8, 2, 1, 7, 0) if source.chance(10) else (4, 5, 3, 8, 2, 1, 7)) for _ in NAMES),
        "dtype": source.pick(("float32", "float32", "float16", "int32", "float64", "bfloat16")),
        "inputs": inputs, "stages": tuple(stages), "outputs": source.pick(("last", "last", "some")),
    }  # fmt: skip


@family(draw_network)
def network(
    extents: tuple[int, ...], dtype: str, inputs: tuple[str, ...], stages: tuple[Stage, ...], outputs: str
) -> Tensor | Computation:
    """Pointwise stages and reductions over some of three axes. Each reads earlier ones. The last one is an output, and perhaps every
    second one before it."""
    every = dict(zip(NAMES, axes(**dict(zip(NAMES, extents, strict=True))), strict=True))
    tensors = [input(f"X{n}", dtype, *(every[a] for a in names)) for n, names in enumerate(inputs)]
    for n, (kind, kept, over, terms, joined, steps) in enumerate(stages):
        have = {a: every[a] for a in (*kept, *over)}
        value: Expr | None = None
        for number, form in terms:
            term = F.cast(_read(tensors[number], form, have), dtype)
            value = term if value is None else _joined(value, term, joined)
        assert value is not None
        made: Any = chain(value, steps)
        if kind != "none":
            made = reduce_by(kind, made, tuple(every[a] for a in over), None)
        tensors.append(defined(f"T{n}", made, *(every[a] for a in kept)))
    made_here = tensors[len(inputs) :]
    return computation("network", (*made_here[-3::-2], made_here[-1])) if outputs == "some" else made_here[-1]


def _some(source: Source) -> str:
    return "".join(subset(source, NAMES, 60))


def _read(tensor: Tensor, form: str, have: dict[str, Axis]) -> Expr:
    """A tensor at the available axes, with its last dimension in the given form; at 0 if an axis is missing."""
    at: list[Any] = [have.get(dim.name, index(0)) for dim in tensor.dims]
    if not at or tensor.dims[-1].name not in have:
        form = "plain"
    outer, extent = at[:-1], tensor.shape[-1] if at else 0
    read: Any
    match form:
        case "shifted":
            read = F.pad(tensor[(*outer, at[-1] - 1)], 0)
        case "reversed":
            read = tensor[(*outer, extent - 1 - at[-1])]
        case "halved":
            read = tensor[(*outer, at[-1] // 2)]
        case "doubled":
            read = F.pad(tensor[(*outer, at[-1] * 2)], 0)
        case _:
            read = tensor[tuple(at)]
    return F.pad(read, 0) if 0 in tensor.shape and isinstance(read, Read) else read


def _joined(left: Expr, right: Expr, how: str) -> Expr:
    match how:
        case "+":
            return left + right
        case "*":
            return left * right
        case "max":
            return F.maximum(left, right)
        case "where":
            return F.where(left < right, left, right + right)
        case _:
            return left - right
