"""Prints the spec after each step as a tree, including the implied steps; steps in braces are indented below their step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from tilelang.computations.computation import Computation
from tilelang.core.expr import free, substitute
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import axis_extents, resolve_when
from tilelang.schedules.checked_steps import CheckedSteps
from tilelang.schedules.remarks import remarks
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.shared_loops import repair_notes, with_stages
from tilelang.schedules.spec import Spec, complete, root_spec
from tilelang.schedules.steps import Do, Place, Step
from tilelang.schedules.task import placed_names, tasks_of
from tilelang.schedules.walk import Extents

WIDEST = 60  # columns for steps; a longer step has its spec on the next line


@dataclasses.dataclass(frozen=True)
class Chain:
    """The steps of a kernel, or those in the braces of a step, as they were lowered: with the implied steps, and the spec before each
    one by number.

    outputs: the tensors that the steps compute or copy.
    """

    outputs: tuple[str, ...]
    steps: tuple[Step, ...]
    specs: dict[int, Spec] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Refinement:
    """A step and the spec after it. step: None for the spec before the first one. implied: it was not written. inside: the steps in its
    braces."""

    step: Step | None
    spec: Spec
    implied: bool = False
    inside: tuple[Refinement, ...] = ()

    @property
    def head(self) -> str:
        """The step as it is written, without the steps in its braces; empty if there is no step."""
        return "" if self.step is None else str(self.step.replace(steps=None) if self.inside else self.step)

    def __str__(self) -> str:
        return f"({self.head})" if self.implied else self.head


def explain(schedule: Schedule, found: tuple[Refinement, ...] | None = None, profile: Profile | None = None) -> str:
    """The spec after each step, one per line. Implied steps are in parentheses where they take effect. A note follows for each effect
    that the author may not expect.

    found: the refinements that the lowering recorded; by default those that follow from the steps alone. profile: the device's, if
    known.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> print(explain(tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to(tl.block)))
                                              Y  i:8  on kernel
    tile i=4 -> block                         Y  i:4  on block
    (split i=1)                               Y  i:1  on block
    """
    found = refinements(schedule) if found is None else found
    rows = [("  " * depth + str(r), str(r.spec)) for r, depth in flat(found)]
    width = max(40, *(len(text) for text, _ in rows if len(text) <= WIDEST))
    lines = _without_place(schedule.computation, tuple(r.step for r in found if r.step is not None and not r.implied))
    for text, spec in rows:
        lines += [f"{text:{width}}  {spec}"] if len(text) <= width else [text, f"{'':{width}}  {spec}"]
    return "\n".join([*lines, *(f"note: {sentence}" for sentence in notes(schedule, found, profile))])


def notes(schedule: Schedule, found: Sequence[Refinement], profile: Profile | None = None) -> list[str]:
    """Effects of a schedule that its author may not expect, as sentences. found: its refinements. profile: of the device, if known.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> tiles = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to(tl.block)
    >>> made = tiles.split(i=4).load("X", tl.shared, ahead=1)
    >>> print(*notes(made, refinements(made)))
    `load X in shared ahead 1`: `ahead` has no effect, because the loop of `split i=4` has a single iteration
    """
    steps = resolve_when(schedule.steps, axis_extents(schedule.computation), profile)
    task = tasks_of(schedule.computation, steps, unfinished=True)[-1]
    return [*repair_notes(schedule.computation, steps), *remarks(found, task, profile)]


def _without_place(computation: Computation, steps: tuple[Step, ...]) -> list[str]:
    """A line for each definition that no step places: it becomes a separate kernel, or is inlined."""
    placed = placed_names(computation, steps)
    tasks = tasks_of(computation, steps, unfinished=True)
    own = [t.name for other in tasks[:-1] for t in other.outputs if t.name not in placed]
    return [f"(separate kernel, before this one: {name})" for name in own] + [
        f"(inline {t.name})"
        for d in computation.definitions
        for t in d.tensors
        if d.reduction is None and t.name not in placed and t.name not in own and t not in computation.outputs
    ]


def refinements(schedule: Schedule, profile: Profile | None = None, chains: Sequence[Chain] = ()) -> tuple[Refinement, ...]:
    """The steps of a schedule, including implied ones, each with the spec after it; first the root spec, without a step.

    profile: decides conditions. chains: the steps in braces as the lowering recorded them; without chains, braces are not expanded.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> for r in refinements(tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).split(i=4)):
    ...     print(r, "|", r.spec)
     | Y  i:8  on kernel
    split i=4 | Y  i:4  on kernel
    (split i=1) | Y  i:1  on kernel
    """
    computation = schedule.computation
    steps = resolve_when(schedule.steps, axis_extents(computation), profile)
    if profile is not None and not chains:  # steps that depend on the device were not checked yet
        CheckedSteps(computation, steps).raise_refused()
    task = tasks_of(computation, steps, unfinished=True)[-1]
    steps = with_stages(computation, steps)
    spec = root_spec(task)
    found = [Refinement(None, spec)]
    for step in complete(spec, steps, bool(task.states), None, _innermost_extents(steps, spec.extents.after(steps))):
        spec = spec.after(step)
        found.append(Refinement(step, spec, getattr(step, "implied", False), _inside(step, spec, chains)))
    return tuple(found)


def flat(found: Sequence[Refinement], depth: int = 0) -> Iterator[tuple[Refinement, int]]:
    """All refinements of a tree with their depth; the steps in braces follow their step.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> twice = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to(tl.block)
    >>> copied = twice.load("X", tl.shared, steps=tl.move().split(i=2))
    >>> for r, depth in list(flat(tl.compile(copied, tl.target("opencl", profile="simulated")).refinements))[2:6]:
    ...     print(depth, r, "|", r.spec)
    0 load X in shared | Y  i:4  on block  in X:shared
    1  | X  i:4  on block
    1 split i=2 | X  i:2  on block
    1 (split i=1) | X  i:1  on block
    """
    for r in found:
        yield r, depth
        yield from flat(r.inside, depth + 1)


def _inside(step: Step, after: Spec, chains: Sequence[Chain]) -> tuple[Refinement, ...]:
    """The refinements of the steps in a step's braces, for each part of the move.

    after: the spec after the step. Steps that only shape other accesses, such as `vectorize` of a load in registers, have no spec.
    """
    if not isinstance(step, Place) or not step.steps or not chains:
        return ()
    written, of = step.steps, [c for c in chains if step.what is None or step.tensor_name in c.outputs]
    lowered = [next((c for c in of if any(w is s for s in c.steps)), None) for w in written]
    first = next((c for c in lowered if c is not None), None)
    if step.what is None:  # results: all those of this spec, in one block if no tile is mapped to blocks
        axes = tuple(a for a in after.axes if not a.reduction)
        here = after.replace(axes=axes, residences=(), level="block" if after.level == "kernel" else after.level)
    elif first is not None:
        here = _apart(first.specs[min(first.specs)])
    else:
        return ()
    found = list[Refinement]()
    for number, (w, chain) in enumerate(zip(written, lowered, strict=True)):
        if chain is None:
            found += [] if found else [Refinement(None, here)]
            found.append(Refinement(w, here.after(w)))
        elif not any(chain is c for c in lowered[:number]):
            found += _of_chain(chain, written, chains)
        here = found[-1].spec
    return tuple(found)


def _of_chain(chain: Chain, written: Sequence[Step], chains: Sequence[Chain]) -> list[Refinement]:
    spec = _apart(chain.specs[min(chain.specs)])
    found = [Refinement(None, spec)]
    for number, step in enumerate(chain.steps, 1):
        spec = _apart(chain.specs[number]) if number in chain.specs else spec
        found.append(Refinement(step, spec, not any(step is w for w in written), _inside(step, spec, chains)))
    return found


def _apart(spec: Spec) -> Spec:
    """A spec with its loop variables renamed, so that they differ from the axes, which denote points of the piece."""

    loops = {
        v: v.replace(name=f"{v.name}_0") for a in spec.axes for b in a.bounds for v in free(b.offset) if v.name in spec.names
    }
    axes = (a.replace(bounds=tuple(b.replace(offset=substitute(b.offset, loops)) for b in a.bounds)) for a in spec.axes)
    return spec.replace(axes=tuple(axes))


def _innermost_extents(steps: tuple[Step, ...], last: Extents) -> dict[str, int]:
    """The extents that a `do` takes along the axes it binds; all that remain if it binds none. Empty for other steps."""
    innermost = steps[-1] if steps else None
    if not isinstance(innermost, Do):
        return {}
    from tilelang.instructions.instruction import use  # late: few schedules name an instruction

    shape = use(innermost.instruction).shape
    bound = {axis: shape[own] for own, axis in innermost.binding if own in shape}
    return {name: bound.get(name, 1 if bound else extent) for name, extent in last.sizes.items()}
