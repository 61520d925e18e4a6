"""Which elements of a tensor a spec reads: intervals per dimension, from the axes that are left.

A region is, per dimension, where it begins and how many elements it has. Begins may depend on everything outside the spec; extents
are numbers. Reads through quotients and remainders are boxed where they stay boxes; reads through integer tensors are not.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping

from tilelang.errors import Refusal
from tilelang.expr import Axis, Binary, Const, Expr, Pad, Read, Var, free, index, substitute
from tilelang.lowering.build.frame import Build, Frame
from tilelang.simplify import linear, simplify
from tilelang.spec import Bound, Spec, point
from tilelang.steps import Place, Step
from tilelang.task import Task, reads

Range = tuple[Expr, int]  # begins at, how many


class NotABox(Exception):
    """An index that runs over scattered values."""


@dataclasses.dataclass(frozen=True)
class Use:
    """One read that a spec, or a stage computed below it, makes. indices: over `point(axis)` of `task`'s reader.

    ranges: the piece of each of its axes; bounds: where the points of a piece end; extents: those of the whole axes, where known.
    """

    whole: Read | Pad
    read: Read
    indices: tuple[Expr, ...]
    ranges: Mapping[Expr, Range]
    bounds: Mapping[Expr, tuple[Bound, ...]]
    task: Task
    main: bool
    extents: Mapping[Expr, int]

    def region(self) -> list[Range]:
        """Raises NotABox."""
        return [range_of(i, self.ranges, self.extents) for i in self.indices]


def range_of(e: Expr, ranges: Mapping[Expr, Range], extents: Mapping[Expr, int]) -> Range:
    """Where an index begins and how many values it can take, given the ranges of its variables, and the extents of their axes."""
    terms, constant = linear(e)
    low: Expr = index(constant)
    extent = 1
    for atom, c in terms:
        begin, n = _atom_range(atom, ranges, extents)
        low = low + (begin * c if c > 0 else (begin + (n - 1)) * c)
        extent += abs(c) * (n - 1)
    return simplify(low), extent


def _atom_range(atom: Expr, ranges: Mapping[Expr, Range], extents: Mapping[Expr, int]) -> Range:
    known = ranges.get(atom)
    if known is not None:
        return known
    match atom:
        case Var() | Axis() | Const():
            return atom, 1
        case Binary("//" | "%" as op, inner, Const(value=c)):
            low, n = range_of(inner, ranges, extents)
            divisor = int(c)
            if n == 1:
                return simplify(Binary(op, low, index(divisor))), 1
            aligned = simplify(low % divisor) is index(0)
            if op == "//":
                return simplify(low // divisor), (n - 1 + (0 if aligned else divisor - 1)) // divisor + 1
            return (index(0), n) if aligned and n <= divisor else (index(0), divisor)
        case Binary("min" | "max" as op, inner, Const(value=c)):  # with what lies as far beside it as any point is moved
            low, n = range_of(inner, ranges, extents)
            moved = _moved_by(op, inner, int(c), extents)
            return (simplify(low - moved) if op == "min" else low), n + moved
        case _ if any(isinstance(e, Read) for e in atom.walk()):
            raise NotABox  # where it begins is known when the element is read
        case _:
            if any(ranges[e][1] > 1 for e in atom.walk() if isinstance(e, Var) and e in ranges):
                raise NotABox
            begin = {e: ranges[e][0] for e in atom.walk() if isinstance(e, Var) and e in ranges}
            return simplify(substitute(atom, begin)), 1


def spec_ranges(frame: Frame) -> dict[Expr, Range]:
    """What is left of every axis of a spec, by its placeholder."""
    return {point(a.name): (a.base, a.extent) for a in frame.spec.axes}


def task_uses(task: Task, coordinates: Mapping[Expr, Expr], ranges: Mapping[Expr, Range],
              bounds: Mapping[Expr, tuple[Bound, ...]], main: bool, extents: Mapping[Expr, int]) -> list[Use]:  # fmt: skip
    """The reads of a task, each once, with indices over the placeholders in `ranges`. What its values read of its own states is not
    read from anywhere; its reductions may read the same tensor from where a step made it."""
    found: dict[Read | Pad, Use] = {}
    for e in task.expressions():
        for whole in reads(e):
            read = whole.read if isinstance(whole, Pad) else whole
            if e not in task.values or task.state_member(read.tensor) is None:
                indices = tuple(simplify(substitute(i, coordinates)) for i in read.indices)
                found.setdefault(whole, Use(whole, read, indices, ranges, bounds, task, main, extents))
    return list(found.values())


@dataclasses.dataclass
class Uses:
    """The reads of a spec and of the stages below it, found from the last stage upwards.

    counts[n]: how many reads there are once the last n stages are looked at. spec, steps: whose they are, kept alive.
    """

    spec: Spec
    steps: tuple[Step, ...]
    found: list[Use]
    stages: tuple[int, ...]
    counts: list[int]


def uses_below(build: Build, frame: Frame, i: int) -> list[Use]:
    """Every read that the spec before step i makes: its own, and those of stages that later steps compute."""
    known = build.uses.get((id(frame.spec), id(frame.steps)))
    if known is None:
        known = build.uses[id(frame.spec), id(frame.steps)] = _own_uses(frame)
    below = sum(k >= i for k in known.stages)
    while len(known.counts) <= below:  # a later stage may read an earlier one, never the other way round
        stage = frame.steps[known.stages[-len(known.counts)]]
        assert isinstance(stage, Place)
        known.found += _stage_uses(build.task_of(stage.tensor_name), stage, known.found)
        known.counts.append(len(known.found))
    return known.found[: known.counts[below]]


def _own_uses(frame: Frame) -> Uses:
    """The reads that a spec itself makes."""
    coordinates = {a: substitute(e, {}) for a, e in _placeholders(frame).items()}
    bounded: dict[Expr, tuple[Bound, ...]] = {point(a.name): a.bounds for a in frame.spec.axes}
    whole: dict[Expr, int] = {point(a.name): a.extent for a in (*frame.task.axes, *frame.task.reduction_axes)}
    found = task_uses(frame.task, coordinates, spec_ranges(frame), bounded, True, whole)
    stages = tuple(k for k, s in enumerate(frame.steps) if isinstance(s, Place) and s.verb == "compute")
    return Uses(frame.spec, frame.steps, found, stages, [len(found)])


def _stage_uses(task: Task, stage: Place, found: list[Use]) -> list[Use]:
    """The reads that a stage makes of what its readers want. found: the reads below it."""
    mine = [u for u in found if u.read.tensor in task.outputs]
    if not mine:
        return []
    region = hull(mine, stage)
    names: dict[Expr, Expr] = {a: point(a.name + "'" + task.name) for a in (*task.axes, *task.reduction_axes)}
    ranges: dict[Expr, Range] = {names[a]: r for a, r in zip(task.axes, region, strict=True)}
    ranges.update({names[a]: (index(0), a.extent) for a in task.reduction_axes})
    bounds: dict[Expr, tuple[Bound, ...]] = {names[a]: b for a, b in zip(task.axes, wanted_bounds(mine, region), strict=True)}
    return task_uses(task, names, ranges, bounds, False, {names[a]: a.extent for a in (*task.axes, *task.reduction_axes)})


def _placeholders(frame: Frame) -> dict[Expr, Expr]:
    named = dict(frame.spec.coordinates)
    return {a: named[a.name] for a in (*frame.task.axes, *frame.task.reduction_axes)}


def hull(uses: list[Use], step: Place) -> list[Range]:
    """The smallest region that covers all uses; refused where they differ by more than constants. Raises NotABox for a load."""
    try:
        regions = [u.region() for u in uses]
    except NotABox:
        if step.verb == "load":
            raise
        name = uses[0].read.tensor.name
        scattered = ", ".join(sorted({str(u.read) for u in uses}))
        message = f"`{step}`: {name} is read at scattered elements, which are not a region of it ({scattered})"
        raise Refusal("reads-scattered", message, span=step.span, mend=f"compute {name} in global, where all of it is") from None
    out: list[Range] = []
    for d, first in enumerate(regions[0]):
        low, extent = first
        for region, use in zip(regions[1:], uses[1:], strict=True):
            other, n = region[d]
            gap = simplify(other - low)
            if not isinstance(gap, Const) and use.task is not uses[0].task and str(use.read) == str(uses[0].read):
                one, other_one = uses[0].task.name, use.task.name
                raise Refusal(
                    "not-lowered-yet",
                    f"`{step}`: {use.read} is read for {one} and for {other_one}, which do not walk together: a walk shared by several"
                    " reductions is accepted by the language, not lowered yet for this target",
                    span=step.span,
                    mend=f"place {use.read.tensor.name} above the walk, where it is whole",
                )
            if not isinstance(gap, Const):
                names = ", ".join(sorted({str(u.read) for u in uses}))
                raise Refusal(
                    "reads-differ",
                    f"`{step}`: {use.read.tensor.name} is read in several ways ({names}), which do not share a region",
                    span=step.span,
                    mend=f"name the read: load {uses[0].read} in {step.memory}"
                    if step.verb == "load"
                    else f"compute {use.read.tensor.name} in global; each read can then be loaded by itself: load {uses[0].read}"
                    f" in {step.memory}",
                )
            shift = int(gap.value)
            end = max(extent, shift + n)
            if shift < 0:
                low, end = other, max(n, extent - shift)
            extent = end
        out.append((low, extent))
    return out


def wanted_bounds(uses: list[Use], region: list[Range]) -> list[tuple[Bound, ...]]:
    """What of a region existing points read, dimension by dimension: points that a cut made of nothing leave the rest unread.

    A bound holds for all uses, so only what ends alike for all of them, but for constants, is one. It has no key yet.
    """
    out = []
    for d, (low, extent) in enumerate(region):
        bounds: list[Bound] = []
        for greatest in (True, False):
            for end in _common_ends([_ends(u.indices[d], u, greatest) for u in uses], greatest):
                _, constant = linear(low - end)
                limit = 1 - constant if greatest else -constant
                bounds.append(Bound("", simplify(low - end - constant), limit, not greatest))
        out.append(tuple(b for b in bounds if not b.is_certain(extent)))
    return out


def _ends(e: Expr, use: Use, greatest: bool) -> list[Expr]:
    """What the greatest, or least, value of an index over existing points cannot be beyond: one value for each choice of bounds."""
    terms, constant = linear(e)
    choices: list[list[Expr]] = []
    for atom, c in terms:
        last = greatest == (c > 0)
        if isinstance(atom, Binary) and atom.op in ("min", "max") and isinstance(atom.right, Const):
            choices.append([x * c for x in _clamped_ends(atom.op, atom.left, int(atom.right.value), use, last)])
            continue
        begin, n = _atom_range(atom, use.ranges, use.extents)
        bounds = [b for b in use.bounds.get(atom, ()) if not b.known and b.lower != last]
        ends = [begin + (n - 1) if last else begin, *(begin - b.offset + (b.limit - 1 if last else b.limit) for b in bounds)]
        choices.append([x * c for x in ends])
    return [simplify(sum(chosen, index(constant))) for chosen in itertools.product(*choices)]


def _moved_by(op: str, inner: Expr, clamp: int, extents: Mapping[Expr, int]) -> int:
    """How far `min` or `max` with a constant moves an index, at most, over all points of the axes. The same for all pieces of them, so
    that the region of a piece lies in that of the tile around it. Raises NotABox where the axes are not known."""
    return _moved_over(op, inner, clamp, tuple((e, extents[e]) for e in sorted(free(inner), key=str) if e in extents))


@functools.cache  # clamps of clamps ask for each inner one twice
def _moved_over(op: str, inner: Expr, clamp: int, known: tuple[tuple[Expr, int], ...]) -> int:
    extents = dict(known)
    low, n = range_of(inner, {e: (index(0), n) for e, n in known}, extents)
    if not isinstance(low, Const):
        raise NotABox
    first = int(low.value)
    return max(0, first + n - 1 - clamp) if op == "min" else max(0, clamp - first)


def _clamped_ends(op: str, inner: Expr, clamp: int, use: Use, greatest: bool) -> list[Expr]:
    """The ends of a clamped index: those of what is clamped, on one side as far beside it as the clamp moves any point."""
    ends = _ends(inner, use, greatest)
    if greatest == (op == "min"):  # on this side it only takes away
        return ends
    moved = _moved_by(op, inner, clamp, use.extents)
    return [simplify(end + moved if greatest else end - moved) for end in ends]


def _common_ends(ends: list[list[Expr]], greatest: bool) -> Iterable[Expr]:
    """The ends that all uses share, but for constants, which are the widest."""
    first, *others = ends
    for end in first:
        gaps = [[int(g.value) for e in other if isinstance(g := simplify(e - end), Const)] for other in others]
        if all(gaps):
            shifts = [0, *((min if greatest else max)(g) for g in gaps)]
            yield simplify(end + (max if greatest else min)(shifts))


def is_plain_axis(e: Expr) -> tuple[str, int] | None:
    """(axis, constant) where an index is one axis of the spec plus a constant."""
    terms, constant = linear(e)
    if len(terms) == 1 and terms[0][1] == 1 and isinstance(terms[0][0], Var) and terms[0][0].name.startswith("@"):
        return terms[0][0].name[1:], constant
    return None


def mentions(e: Expr, name: str) -> bool:
    """Whether an index depends on an axis of the spec."""
    return any(isinstance(v, Var) and v.name == "@" + name for v in e.walk())
