"""Random moves and layouts: how a load copies a tensor, and the layout of its buffer."""

from __future__ import annotations

from tilelang.core.expr import INDEX, Binary, Var, index
from tilelang.core.layout import Layout, layout
from tilelang.schedules.schedule import Move, move
from tilelang.schedules.steps import Split
from tilelang.testing.choice import Source


def draw_layout(source: Source, dims: list[str]) -> Layout:
    """Any layout of these dimensions: an order, padding, a quotient and a remainder, a swizzle by xor."""
    order = list(dims)
    if len(order) > 1 and source.chance(50):
        order.reverse()
    form = source.pick(("order", "pad", "packed", "xor"))
    if form == "packed":
        return packed(order, source.pick((2, 4, 8)), source.chance(30))
    if form == "xor" and len(order) > 1:
        return crossed(order)
    made = layout(*order)
    return made.pad(source.pick((1, 4, 3))) if form == "pad" else made


def draw_move(source: Source, dims: list[str], in_thread: bool) -> Move | None:
    """The steps of a load: none, vectors, threads or warps, chunks."""
    form = source.pick(("none", "vector", "chunks") if in_thread else ("none", "vector", "threads", "both", "chunks"))
    lanes = source.pick((4, 2, 8))
    axis = dims[-1] if source.chance(80) else source.pick(dims)
    steps = move()
    match form:
        case "none":
            return None
        case "vector":
            return steps.vectorize(**{axis: lanes})
        case "threads" | "both":
            sizes = {d: (lanes if d == axis else 1) for d in dims if d == axis or source.chance(80)}
            level = "warp" if source.chance(25) else "thread"
            order = draw_order(source, list(sizes)) if source.chance(15) else None
            steps = steps.tile(**sizes).to(level, count=source.pick((None, None, None, 2)), order=order)
            return steps.vectorize(**{axis: lanes}) if form == "both" else steps
        case _:
            steps = steps._then(Split(((axis, source.pick((2, 4, 5))),), source.chance(30)))
            return steps.vectorize(**{axis: 2}) if source.chance(40) else steps


def draw_order(source: Source, names: list[str]) -> Layout:
    """A numbering of units: with the axes reversed, in panels, or rotated line by line."""
    form = source.pick(("reversed", "panels", "xor"))
    if form == "panels":
        return packed(names, source.pick((2, 4, 3)), False)
    return crossed(names) if form == "xor" and len(names) > 1 else layout(*reversed(names))


def packed(dims: list[str], piece: int, padded: bool) -> Layout:
    """The last dimension in panels: its quotient outermost and its remainder innermost."""
    last = Var(dims[-1], INDEX)
    made = Layout((last // piece, *[Var(d, INDEX) for d in dims[:-1]], last % piece))
    return made.pad(1) if padded else made


def crossed(dims: list[str]) -> Layout:
    """The pairs of the last dimension permuted by the row number: a user-defined swizzle."""
    line, last = Var(dims[-2], INDEX), Var(dims[-1], INDEX)
    rest = tuple(Var(d, INDEX) for d in dims[:-1])
    return Layout((*rest, Binary("^", last // 2, line % index(4)), last % 2))
