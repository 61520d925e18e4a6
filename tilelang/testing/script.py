"""Prints schedules as the Python code that builds them, so that a failing case can be pasted and run."""

from __future__ import annotations

from tilelang.computations.computation import Computation
from tilelang.core.expr import Read, to_text
from tilelang.core.layout import Layout
from tilelang.schedules.check import main_task
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Do, Fuse, Inline, Place, Split, Step, Tile, Unfuse, Units, Vectorize


def schedule_text(schedule: Schedule, computation: str = "c") -> str:
    """The builder calls that make a schedule, on one line. Raises ValueError for steps without a builder call."""
    return f"tl.schedule({computation})" + "".join(step_text(s, computation) for s in schedule.steps)


def read_named(computation: Computation, text: str) -> Read:
    """The read that prints as `text`, for scripts: of a definition as written, or of the main task if nothing is placed."""
    expressions = [v for d in computation.definitions for v in d.values] + [*main_task(computation, ()).expressions()]
    found = {str(e): e for v in expressions for e in v.walk() if isinstance(e, Read)}
    return found[text]


def step_text(step: Step, computation: str = "c") -> str:
    """One builder call, on a computation of that name if the call names a read of it."""
    match step:
        case Tile(sizes, level, count, order):
            more = f", count={count}" if count is not None else ""
            more += f", order={layout_text(order)}" if order is not None else ""
            return f".tile({_sizes(sizes)}).to({level!r}{more})"
        case Split(sizes, unroll, peel):
            return f".split({_sizes(sizes)}{', unroll=True' * unroll}{', peel=True' * peel})"
        case Place():
            return _place_text(step, computation)
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
        case Units(level, teams):
            made = (f"tl.{t.level}s({t.count}).as_role({t.role!r}, {t.registers})" for t in teams)
            return f".units({level}=({', '.join(made)}))"
        case Do(instruction, binding):
            return f".do({', '.join([repr(instruction), *(f'{a}={b!r}' for a, b in binding)])})"
        case _:
            raise ValueError(f"no builder call is known for `{step}`")


def _place_text(step: Place, computation: str) -> str:
    words = []
    if step.verb in ("load", "compute"):
        named = f"testing.read_named({computation}, {str(step.what)!r})"
        words.append(named if isinstance(step.what, Read) else repr(step.what))
    words.append(repr(step.memory))
    if step.layout is not None:
        words.append(f"layout={layout_text(step.layout)}")
    words += [f"{name}={n}" for name, n in (("ahead", step.ahead), ("behind", step.behind)) if n] + ["stream=True"] * step.stream
    words += [f"on={step.on!r}"] if step.on else []
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
