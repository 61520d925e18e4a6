"""Schedules as the Python that builds them, so that a failing case can be pasted and run."""

from __future__ import annotations

from tilelang.expr import Read, to_text
from tilelang.schedule import Schedule
from tilelang.steps import Do, Fuse, Inline, Place, Split, Step, Tile, Unfuse, Units, Vectorize
from tilelang.tensor import Layout


def schedule_text(schedule: Schedule, computation: str = "c") -> str:
    """The builder calls that make a schedule, on one line. Raises ValueError for steps that the builder has no call for."""
    return f"tl.schedule({computation})" + "".join(step_text(s) for s in schedule.steps)


def step_text(step: Step) -> str:
    """One builder call."""
    match step:
        case Tile(sizes, level, count, order):
            more = f", count={count}" if count is not None else ""
            more += f", order={layout_text(order)}" if order is not None else ""
            return f".tile({_sizes(sizes)}).to({level!r}{more})"
        case Split(sizes, unroll, peel):
            return f".split({_sizes(sizes)}{', unroll=True' * unroll}{', peel=True' * peel})"
        case Place():
            return _place_text(step)
        case Vectorize(axis, lanes):
            return f".vectorize({axis}={lanes})"
        case Fuse(name, axes):
            return f".fuse({name}={axes!r})"
        case Unfuse(axis, parts):
            return f".unfuse({axis}={dict(parts)!r})"
        case Inline(tensor):
            return f".inline({tensor!r})"
        case Units(level, (team,)) if team.role is None:
            return f".units({level}=tl.{team.level}s({team.count}))"
        case Do(instruction, binding):
            return f".do({', '.join([repr(instruction), *(f'{a}={b!r}' for a, b in binding)])})"
        case _:
            raise ValueError(f"no builder call is known for `{step}`")


def _place_text(step: Place) -> str:
    words = []
    if step.verb in ("load", "compute"):
        if isinstance(step.what, Read):
            raise ValueError(f"`{step}` names a read")
        words.append(repr(step.what))
    words.append(repr(step.memory))
    if step.layout is not None:
        words.append(f"layout={layout_text(step.layout)}")
    words += [f"ahead={step.ahead}"] * bool(step.ahead) + ["stream=True"] * step.stream
    if step.steps is not None:
        words.append(f"steps=tl.move(){''.join(step_text(s) for s in step.steps)}")
    return f".{step.verb}({', '.join(words)})"


def layout_text(layout: Layout) -> str:
    """A layout as the call that makes it."""
    terms = ", ".join(to_text(t) for t in layout.terms)
    text = f"tl.layout(lambda {', '.join(layout.dims)}: ({terms},))" if layout.terms else "tl.layout()"
    return (
        text + f".pad({layout.padding})" * bool(layout.padding) + f".swizzle({layout.swizzle_bytes})" * bool(layout.swizzle_bytes)
    )


def _sizes(sizes: tuple[tuple[str, object], ...]) -> str:
    return ", ".join(f"{axis}={size}" for axis, size in sizes)
