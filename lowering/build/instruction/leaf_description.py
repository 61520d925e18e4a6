"""Describes the innermost statement at a `do` for matching: what it computes over which axes, and where its operands are.

Matching compares an instruction with a `LeafDescription`. Afterwards the builder needs the reverse mapping, from the matched reads
to the reads of the task. A tensor staged by access is described as its buffer: a tensor over the axes of the read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from tilelang.computations.computation import Tensor
from tilelang.core.dtype import DType
from tilelang.core.expr import INDEX, Axis, Expr, Pad, Read, Var, substitute
from tilelang.core.layout import Layout, Placement
from tilelang.core.simplify import interval, simplify
from tilelang.instructions import matching
from tilelang.instructions.semantics import MOVE, POINTWISE, UPDATE, Means
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.schedules.check import renamed
from tilelang.schedules.spec import Spec, point
from tilelang.schedules.steps import Place, Step
from tilelang.schedules.task import Task, reads
from tilelang.schedules.walk import piece_of


@dataclasses.dataclass(frozen=True)
class Resident:
    """Where a read finds its tensor: in an existing residence, or where a later step will place it."""

    memory: str
    dtype: DType
    residence: Residence | None = None
    by_access: bool = False
    fills: bool = False  # elements outside the tensor hold the padding value of the read


@dataclasses.dataclass(frozen=True)
class LeafDescription:
    """The meaning of an innermost statement over the spec's axes, and the task's read behind each of its reads."""

    means: Means
    reads: Mapping[Read, Read | Pad]
    residents: Mapping[Read, Resident]


@dataclasses.dataclass(frozen=True)
class Matched:
    """The match of the instruction at the end of a chain. reads: for each matched read, the task's read."""

    match: matching.Match
    reads: Mapping[Read, Read | Pad]

    @property
    def taken(self) -> dict[str, int]:
        """How many elements of each axis the instruction takes."""
        return {theirs: self.match.instruction.shape[mine] for mine, theirs in self.match.binding}

    def operand_of(self, whole: Read | Pad) -> tuple[str, Read] | None:
        """The operand that matched a read of the task, with the matched read; None if there is none."""
        writes = self.match.instruction.writes
        return next(((name, r) for name, r in self.match.operands if name != writes and self.reads[r] is whole), None)


def describe_leaf(
    task: Task,
    spec: Spec,
    find: Callable[[Read | Pad], Resident],
    target: tuple[str, DType],
    dims: tuple[Axis, ...] | None = None,
) -> LeafDescription | None:
    """What the innermost statement of a task computes; None if no instruction can compute it: several accumulators or values, a
    tuple, a condition.

    target: the name and element type of what the statement writes; dims: its dimensions, if they are not the spec's axes.
    """
    axes = {a.name: Axis(a.name, a.extent) for a in spec.axes}
    if task.states:
        reduce = task.states[0].reduce
        if len(task.states) > 1 or len(reduce.values) > 1 or reduce.condition is not None:
            return None
        kind, value, combiner = UPDATE, reduce.values[0], reduce.combiner.name
    else:
        if len(task.values) > 1:
            return None
        value, combiner = task.values[0], ""
        kind = MOVE if isinstance(value, (Read, Pad)) else POINTWISE
    points: dict[Expr, Expr] = {point(n): axis for n, axis in axes.items()}
    named = dict(spec.coordinates)
    mapping: dict[Expr, Expr] = {
        a: simplify(substitute(named[a.name], points)) for a in (*task.axes, *task.reduction_axes) if a.name in named
    }
    back: dict[Read, Read | Pad] = {}
    residents: dict[Read, Resident] = {}
    for whole in reads(value):
        found = find(whole)
        made = _seen_read(whole, found, mapping, axes)
        plain = made.read if isinstance(made, Pad) else made
        mapping[whole] = made
        back[plain], residents[plain] = whole, found
    spatial = tuple(axes[a.name] for a in spec.axes if not a.reduction)
    values = {**axes, **{a.name: mapping[a] for a in task.axes if a in mapping}}
    places: tuple[Expr, ...] = spatial if dims is None else tuple(values[d.name] for d in dims)
    written = Read(Tensor(target[0], target[1], spatial if dims is None else dims), places)
    return LeafDescription(Means(kind, written, substitute(value, mapping), combiner), back, residents)


def _seen_read(whole: Read | Pad, found: Resident, mapping: Mapping[Expr, Expr], axes: Mapping[str, Axis]) -> Read | Pad:
    read = whole.read if isinstance(whole, Pad) else whole
    indices = tuple(simplify(substitute(i, mapping)) for i in read.indices)
    if found.by_access:
        if found.residence is not None:
            used = [axes[p.name[1:]] for p in found.residence.points]
        else:
            mentioned = {e for i in indices for e in i.walk() if isinstance(e, Axis)}
            used = [a for a in axes.values() if a in mentioned]
        return Read(Tensor(read.tensor.name, read.dtype, tuple(used)), tuple(used))
    made = Read(read.tensor, indices)
    return Pad(made, whole.value) if isinstance(whole, Pad) and not found.fills else made


def resident(whole: Read | Pad, residence: Residence) -> Resident:
    """How an existing residence serves a read."""
    fills = by_access = bool(residence.points)
    if isinstance(whole, Pad) and residence.outside and residence.fill is not None:
        fills |= residence.fill.value == whole.value.value
    return Resident(residence.buffer.memory, residence.buffer.dtype, residence, by_access, fills)


def promised(whole: Read | Pad, loads: list[Place]) -> Resident:
    """How the loads below, the innermost last, will serve a read."""
    read = whole.read if isinstance(whole, Pad) else whole
    dims = {d.name for d in read.tensor.dims}
    layouts = [s.layout for s in loads if s.layout is not None and s.layout.terms]
    return Resident(loads[-1].memory, read.dtype, None, any(not set(x.dims) <= dims for x in layouts), True)


def described(read: Read, found: Resident) -> matching.Residence:
    """A resident read in the form that the matching takes."""
    dims = tuple((d.name, d.extent) for d in read.tensor.dims)
    layout = None
    if isinstance(found.residence, Box) and found.residence.placement is not None:
        placement = found.residence.placement
        dims = tuple((d, _extent(v)) for d, v in zip(placement.dims, placement.variables, strict=True))
        layout = layout_of(placement)
    return matching.Residence(read.tensor.name, found.memory, found.dtype, dims, layout, read)


def layout_of(placement: Placement) -> Layout:
    """The layout that a placement was made from, up to the names of its parts."""
    free: dict[Expr, Expr] = {v: Var(v.name, INDEX) for v in placement.variables}
    _, high = interval(placement.terms[-1])
    padding = placement.shape[-1] - (high + 1) if high is not None else 0
    return Layout(tuple(substitute(t, free) for t in placement.terms), padding)


def _extent(v: Var) -> int:
    return 1 if v.upper is None else v.upper + 1


def left(spec: Spec, steps: tuple[Step, ...]) -> tuple[Spec, dict[str, int], set[str]]:
    """The spec with its axes renamed by fuse and unfuse, the extents that the written steps leave of them, and the axes that
    they cut."""
    after = renamed(spec, steps)
    written = [s for s in steps if not getattr(s, "implied", False)]
    sizes = spec.extents.after(written).sizes
    return after, {name: sizes[name] for name in after.names}, {a for s in written for a in piece_of(s)}


def global_read(whole: Read | Pad) -> Resident:
    """A read of a tensor in global memory: default steps are chosen before anything is placed."""
    read = whole.read if isinstance(whole, Pad) else whole
    return Resident("global", read.dtype)
