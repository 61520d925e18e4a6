"""A task as the autoscheduler sees it: its axes, its accesses to tensors, and the operations per point.

All of it is derived from the expressions of the task; no operator is known by name. The axes are those of the spec after the first
steps of a schedule, so a fused axis represents several.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tilelang.autoschedule.common.accesses import Access, Operand
from tilelang.autoschedule.common.operations import multiplied_type, operations_of_task
from tilelang.computations.computation import Tensor
from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Binary, Cast, Expr, Pad, Read, substitute
from tilelang.core.lazy import cached_property
from tilelang.core.simplify import linear
from tilelang.schedules.spec import Spec, root_spec
from tilelang.schedules.task import Task, reads, update_conditions


@dataclasses.dataclass(frozen=True)
class NestAxis:
    """An axis of a nest."""

    name: str
    extent: int
    reduction: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Nest:
    """A task over the axes of a spec. accesses: its reads, then its writes. varying: the operations of one point, counted by name ("+",
    "*", "exp", ...), with those that combine it into the reduction, by the axes that their results vary along; outer: those of one
    element of the output, after its reduction."""

    task: Task
    spec: Spec
    axes: tuple[NestAxis, ...]
    accesses: tuple[Access, ...]
    varying: Mapping[frozenset[str], Mapping[str, int]]
    outer: Mapping[str, int]

    @cached_property
    def inner(self) -> Mapping[str, int]:
        """The operations of one point, along whichever axes."""
        return dict(sum((Counter(found) for found in self.varying.values()), Counter[str]()))

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if not a.store)

    @cached_property
    def factors(self) -> tuple[Access, ...]:
        """The reads inside the reductions, or all reads if there are none. The others happen once for each finished element."""
        values = (e for s in self.task.states for v in s.reduce.values for e in reads(v))
        combined = {(r.tensor, r.indices) for e in values for r in (e.read if isinstance(e, Pad) else e,)}
        return tuple(a for a in self.reads if (a.tensor, a.written) in combined or not self.task.states)

    @cached_property
    def computed(self) -> DType:
        """The type in which it computes: that of the reduced values, or without a reduction that of the results."""
        return self.task.states[0].reduce.values[0].dtype if self.task.states else self.task.values[0].dtype

    @cached_property
    def multiplied(self) -> DType | None:
        """`multiplied_type` of its first reduction; None if there is none."""
        return multiplied_type(self.task.states[0].reduce) if self.task.states else None

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.store)

    @cached_property
    def spatial(self) -> tuple[NestAxis, ...]:
        return tuple(a for a in self.axes if not a.reduction)

    @cached_property
    def reduced(self) -> tuple[NestAxis, ...]:
        return tuple(a for a in self.axes if a.reduction)

    @cached_property
    def wide(self) -> tuple[NestAxis, ...]:
        """The spatial axes of more than one point."""
        return tuple(a for a in self.spatial if a.extent > 1)

    @cached_property
    def decided(self) -> Mapping[str, frozenset[str]]:
        """The output axes of a scatter: along them, each point of the reduction updates one element, at a coordinate read from memory,
        as v in `ids[i] == v`; each with the axes on which that coordinate depends."""
        found: dict[str, frozenset[str]] = {}
        names = {a.name for a in self.spatial}
        first, *others = [update_conditions(s) for s in self.task.states] or [[]]
        for c in first:
            if isinstance(c, Binary) and c.op == "==" and all(c in other for other in others):
                for side, data in ((c.left, c.right), (c.right, c.left)):
                    axis = side.operand if isinstance(side, Cast) else side
                    if isinstance(axis, Axis) and axis.name in names and reads(data):
                        found[axis.name] = frozenset(a.name for a in data.walk() if isinstance(a, Axis))
        return {a: axes for a, axes in found.items() if a not in axes and axes <= {x.name for x in self.axes}}

    @cached_property
    def wide_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.wide)

    @cached_property
    def operands(self) -> Mapping[Operand, tuple[Access, ...]]:
        """The reads that one staged region serves, for each operand: they differ by constants only."""
        found: dict[Operand, tuple[Access, ...]] = {}
        for a in self.reads:
            found[a.operand] = (*found.get(a.operand, ()), a)
        return found

    @cached_property
    def spatial_extents(self) -> Mapping[str, int]:
        return {a.name: a.extent for a in self.spatial}

    @cached_property
    def reduced_extents(self) -> Mapping[str, int]:
        return {a.name: a.extent for a in self.reduced}

    def axis(self, name: str) -> NestAxis:
        """The axis with this name. Raises KeyError."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, NestAxis]:
        return {a.name: a for a in self.axes}

    @cached_property
    def extents(self) -> dict[str, int]:
        return {a.name: a.extent for a in self.axes}

    @cached_property
    def points(self) -> int:
        return math.prod(self.extents.values())

    @property
    def state_bytes(self) -> int:
        """The bytes of the accumulators for one element of the output."""
        return sum(v.dtype.bytes for s in self.task.states for v in s.reduce.combiner.left)

    @property
    def outputs(self) -> int:
        """The number of elements of one output."""
        return math.prod(a.extent for a in self.spatial)

    @cached_property
    def flops(self) -> int:
        """The operations of the whole nest; a multiply-add counts as two."""
        return sum(self.inner.values()) * self.points + sum(self.outer.values()) * self.outputs

    @cached_property
    def compulsory_bytes(self) -> int:
        """The bytes that must move at least once: the touched part of each tensor, counted for reads and for writes."""
        whole: dict[tuple[str, bool], int] = {}
        for a in self.accesses:
            key = (a.name, a.store)
            whole[key] = max(whole.get(key, 0), a.footprint_bytes(self.extents))
        return sum(whole.values())

    @cached_property
    def touched_bytes(self) -> Mapping[str, int]:
        """The bytes of the touched part of each tensor, by name."""
        whole: dict[str, int] = {}
        for a in self.accesses:
            whole[a.name] = max(whole.get(a.name, 0), a.footprint_bytes(self.extents))
        return whole

    def fuse(self, name: str, parts: Sequence[str]) -> Nest:
        """The nest with several axes fused into one, the last of them varying fastest.

        >>> import tilelang as tl
        >>> from tilelang.schedules.task import make_task
        >>> p, q = tl.axes(p=3, q=4)
        >>> Y = tl.define("Y", tl.input("X", tl.float32, p, q)[p, q] * 2, p, q)
        >>> print(nest_of(make_task((Y,), lambda t: False)).fuse("pq", ("p", "q")).reads[0].run("pq", 12))
        12
        """
        return nest_of(self.task, self.spec.fuse(name, tuple(parts)))


def nest_of(task: Task, spec: Spec | None = None) -> Nest:
    """The nest of a task over the axes of a spec; without one, over the task's own axes."""
    spec = root_spec(task) if spec is None else spec
    by_name = {a.name: a for a in (*task.axes, *task.reduction_axes)}
    there = {by_name[n]: value for n, value in spec.coordinates}
    states = {t for s in task.states for t in s.tensors}
    definitions = [t.definition for t in (*task.outputs, *states) if t.definition is not None]
    written = {r for d in definitions for v in d.values for r in v.walk() if isinstance(r, Read)}  # in the definitions' own text
    found: dict[tuple[Tensor, tuple[Expr, ...]], dict[Read | Pad, Read]] = {}
    for whole in (r for e in task.expressions() for r in reads(e)):
        read = whole.read if isinstance(whole, Pad) else whole
        if read.tensor not in states:
            indices = tuple(substitute(i, there) for i in read.indices)
            found.setdefault((read.tensor, indices), {})[whole] = read
    forms: dict[Tensor, set[tuple[object, ...]]] = {}  # the indices of each tensor's reads, without their constants
    for tensor, indices in found:
        forms.setdefault(tensor, set()).add(tuple(frozenset(linear(i)[0]) for i in indices))
    accesses = []
    for (tensor, indices), ways in found.items():
        first, padded = next(iter(ways.values())), any(isinstance(w, Pad) for w in ways)
        apart = first if len(forms[tensor]) > 1 else None
        named = apart is None or apart in written
        accesses.append(Access(tensor, indices, first.indices, False, padded, len(ways), apart, named))
    writes = tuple(Access(t, tuple(substitute(a, there) for a in task.axes), task.axes, True) for t in task.outputs)
    axes = tuple(NestAxis(a.name, a.extent, a.reduction) for a in spec.axes)
    return Nest(task, spec, axes, (*accesses, *writes), *operations_of_task(task, spec))
