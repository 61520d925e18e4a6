"""The spec after each step as text, with what the schedule leaves unsaid."""

from __future__ import annotations

from tilelang.check import advance, axis_extents, main_task, resolve_when, tensor_kinds
from tilelang.schedule import Schedule
from tilelang.spec import Spec, complete, root_spec
from tilelang.steps import Do, Step
from tilelang.task import placed_names, plan


def explain(schedule: Schedule) -> str:
    """The spec after each step, a line each; what the schedule leaves unsaid stands in parentheses where it takes effect.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> print(explain(tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to(tl.block)))
                                              Y  i:8  on kernel
    tile i=4 -> block                         Y  i:4  on block
    (split i=1)                               Y  i:1  on block
    """
    computation = schedule.computation
    placed = placed_names(computation, schedule.steps)
    tasks = plan(computation, placed)
    own = [t.name for other in tasks[:-1] for t in other.outputs if t.name not in placed]
    lines = [f"(a kernel of its own, before: {name})" for name in own]
    lines += [
        f"(inline {t.name})"
        for d in computation.definitions
        for t in d.tensors
        if d.reduction is None and t.name not in placed and t.name not in own and t not in computation.outputs
    ]
    for step, spec in refinements(schedule):
        text = "" if step is None else f"({step})" if getattr(step, "implied", False) else str(step)
        lines.append(f"{text:40}  {spec}")
    return "\n".join(lines)


def refinements(schedule: Schedule) -> tuple[tuple[Step | None, Spec], ...]:
    """The steps of a schedule, with those that it leaves unsaid, each with the spec after it; first the root spec, without a step.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> for step, spec in refinements(tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).split(i=4)):
    ...     print(step, "|", spec)
    None | Y  i:8  on kernel
    split i=4 | Y  i:4  on kernel
    split i=1 | Y  i:1  on kernel
    """
    computation, task = schedule.computation, main_task(schedule.computation, schedule.steps)
    spec = root_spec(task)
    found: list[tuple[Step | None, Spec]] = [(None, spec)]
    steps = resolve_when(schedule.steps, axis_extents(computation))
    kinds = tensor_kinds(computation)
    for step in complete(spec, steps, bool(task.states), None, _leaf_sizes(steps, schedule.specs[-1])):
        spec = advance(spec, step, task, kinds)
        found.append((step, spec))
    return tuple(found)


def _leaf_sizes(steps: tuple[Step, ...], last: Spec) -> dict[str, int]:
    """What a `do` takes of each axis, by the names it binds; all that is left where it leaves them to the match. Empty without one."""
    leaf = steps[-1] if steps else None
    if not isinstance(leaf, Do):
        return {}
    from tilelang.instruction import use

    shape = use(leaf.instruction).shape
    bound = {axis: shape[own] for own, axis in leaf.binding if own in shape}
    return {a.name: bound.get(a.name, 1 if bound else a.extent) for a in last.axes}
