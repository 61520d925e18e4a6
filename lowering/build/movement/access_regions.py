"""The region of a tensor that a spec reads: an interval per dimension, derived from the remaining axes.

An interval has a start, which may depend on everything outside the spec, and a constant number of elements. Reads through
quotients and remainders have a region if their values form an interval; reads through integer tensors have none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tilelang.core.expr import Axis, Expr, Pad, Read, Var, index, substitute
from tilelang.core.simplify import linear, simplify
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.needs import Apart, NotABox, Range, Reading, box, conditions
from tilelang.schedules.spec import Bound, point
from tilelang.schedules.steps import Place, Step, every_step
from tilelang.schedules.task import Task, is_stored, reads


@dataclasses.dataclass(frozen=True)
class Use(Reading):
    """One read of a spec, or of a stage computed below it. indices: over `point(axis)` of the axes of `task`'s reader. stored: it
    represents the elements of its tensor that a stage stores."""

    whole: Read | Pad
    read: Read
    task: Task
    main: bool
    stored: bool = False


def spec_ranges(frame: Frame) -> dict[Expr, Range]:
    """The remaining range of every axis of a spec, by the axis's placeholder."""
    return {point(a.name): (a.base, a.extent) for a in frame.spec.axes}


def task_uses(task: Task, coordinates: Mapping[Expr, Expr], ranges: Mapping[Expr, Range],
              bounds: Mapping[Expr, tuple[Bound, ...]], main: bool) -> list[Use]:  # fmt: skip
    """The distinct reads of a task, with indices over the placeholders in `ranges`.

    Reads of the task's own accumulators by its values are left out: they need no place. Its reductions may read the same tensor
    from where a step made it.
    """
    found: dict[Read | Pad, Use] = {}
    for e in task.expressions():
        for whole in reads(e):
            read = whole.read if isinstance(whole, Pad) else whole
            if e not in task.values or task.state_member(read.tensor) is None:
                indices = tuple(simplify(substitute(i, coordinates)) for i in read.indices)
                found.setdefault(whole, Use(indices, ranges, bounds, whole, read, task, main))
    return list(found.values())


@dataclasses.dataclass
class Uses:
    """The reads of a spec and of the stages below it, collected from the last stage upwards.

    counts[n]: the number of reads after the last n stages have been visited.
    """

    found: list[Use]
    stages: tuple[int, ...]
    counts: list[int]


def uses_below(build: Build, frame: Frame, i: int) -> list[Use]:
    """Every read of the spec before step i: its own reads, and those of the stages that later steps compute."""
    if not frame.uses:
        frame.uses.append(_own_uses(build, frame))
    (known,) = frame.uses
    below = sum(k >= i for k in known.stages)
    while len(known.counts) <= below:  # a later stage may read an earlier one, never the other way round
        stage = frame.steps[known.stages[-len(known.counts)]]
        assert isinstance(stage, Place)
        known.found += _stage_uses(build.task_of(stage.tensor_name), stage, known.found, frame)
        known.counts.append(len(known.found))
    return known.found[: known.counts[below]]


def _own_uses(build: Build, frame: Frame) -> Uses:
    """The reads of a spec itself, and the elements at its points of each stage that it stores."""
    coordinates = {a: substitute(e, {}) for a, e in _placeholders(frame).items()}
    bounded: dict[Expr, tuple[Bound, ...]] = {point(a.name): a.bounds for a in frame.spec.axes}
    found = task_uses(frame.task, coordinates, spec_ranges(frame), bounded, True)
    found += [_stored_use(build, frame, s) for s in frame.steps if is_stored(s)]
    if build.parted is not None and frame.task is build.parted.first:  # blocks store what the kernel that combines them reads
        later = task_uses(build.parted.whole, coordinates, spec_ranges(frame), bounded, False)
        found += [u for u in later if u.read.tensor in build.parted.places]
    stages = tuple(k for k, s in enumerate(frame.steps) if isinstance(s, Place) and s.verb == "compute")
    return Uses(found, stages, [len(found)])


def own_elements(build: Build, frame: Frame, stage: Place) -> list[Range]:
    """The elements of a stage at the points of a spec, and all elements along axes that the spec does not have."""
    return hull([_stored_use(build, frame, stage)], stage)


def _stored_use(build: Build, frame: Frame, stage: Step) -> Use:
    """The elements of an output that a spec stores, in the form of a read: those at its points, and all elements along axes that
    it does not have."""
    assert isinstance(stage, Place)
    coordinates = {a: substitute(e, {}) for a, e in _placeholders(frame).items()}
    bounded: dict[Expr, tuple[Bound, ...]] = {point(a.name): a.bounds for a in frame.spec.axes}
    tensor, own = build.tensors[stage.tensor_name], {a.name: e for a, e in coordinates.items() if isinstance(a, Axis)}
    assert tensor.definition is not None
    ranges = spec_ranges(frame)
    indices = list[Expr]()
    for a in tensor.definition.axes:
        if a.name not in own:
            ranges[point(f"{a.name}'{tensor.name}")] = index(0), a.extent
        indices.append(own.get(a.name, point(f"{a.name}'{tensor.name}")))
    read = Read(tensor, tensor.definition.axes)
    return Use(tuple(indices), ranges, bounded, read, read, frame.task, False, stored=True)


def _stage_uses(task: Task, stage: Place, found: list[Use], frame: Frame) -> list[Use]:
    """The reads of a stage that computes the elements its readers need. found: the reads below it."""
    mine = [u for u in found if u.read.tensor in task.outputs]
    if not mine:
        return []
    region = hull(mine, stage)
    names: dict[Expr, Expr] = {a: point(a.name + "'" + task.name) for a in (*task.axes, *task.reduction_axes)}
    ranges: dict[Expr, Range] = {names[a]: r for a, r in zip(task.axes, region, strict=True)}
    bounds: dict[Expr, tuple[Bound, ...]] = {names[a]: b for a, b in zip(task.axes, conditions(mine, region), strict=True)}
    shared = frame.shared is not None and frame.shared.member(stage.tensor_name) is not None
    for a in task.reduction_axes:  # in a shared loop, the chunk of an iteration
        ranges[names[a]] = (frame.spec.axis(a.name).base, frame.spec.axis(a.name).extent) if shared else (index(0), a.extent)
        bounds[names[a]] = frame.spec.axis(a.name).bounds if shared else ()
    return task_uses(task, names, ranges, bounds, False)


def _placeholders(frame: Frame) -> dict[Expr, Expr]:
    named = dict(frame.spec.coordinates)
    return {a: named[a.name] for a in (*frame.task.axes, *frame.task.reduction_axes)}


def hull(uses: list[Use], step: Place) -> list[Range]:
    """The smallest region that covers all uses; a Refusal if no region does. Raises NotABox for a load."""
    try:
        return box(
            uses, uses[0].read.tensor.shape, not any(s.memory == "register" for s in every_step((step,)) if isinstance(s, Place))
        )
    except NotABox:
        if step.verb == "load":
            raise
        name = uses[0].read.tensor.name
        scattered = ", ".join(sorted({str(u.read) for u in uses}))
        message = f"`{step}`: {name} is read at scattered elements, which do not form a region ({scattered})"
        raise refuse(step, "reads-scattered", message, f"compute {name} in global, where all its elements are stored") from None
    except Apart:
        name = uses[0].read.tensor.name
        several = ", ".join(sorted({str(u.read) for u in uses}))
        help = f"name the read: load {uses[0].read} in {step.memory}"
        if step.verb == "compute":
            help = f"compute {name} in global; each read can then be loaded by itself: load {uses[0].read} in {step.memory}"
        message = f"`{step}`: {name} is read with several index expressions ({several}), which do not share a region"
        raise refuse(step, "reads-differ", message, help) from None


def is_plain_axis(e: Expr) -> tuple[str, int] | None:
    """(axis, constant) if an index is one axis of the spec plus a constant."""
    terms, constant = linear(e)
    if len(terms) == 1 and terms[0][1] == 1 and isinstance(terms[0][0], Var) and terms[0][0].name.startswith("@"):
        return terms[0][0].name[1:], constant
    return None


def mentions(e: Expr, name: str) -> bool:
    """Whether an index depends on an axis of the spec."""
    return any(isinstance(v, Var) and v.name == "@" + name for v in e.walk())
