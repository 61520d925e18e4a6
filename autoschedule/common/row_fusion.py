"""Several tasks in one kernel, row by row: the rows that they share, and the values that are kept of a row.

The rows follow from the definitions: the axes that all reductions have in common and are read at. How rows are mapped to the units of a
device, and where their values are kept, is in the device's own module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Place


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The tasks of a part of a computation in one kernel. axes: one row for each of their points; placed: the values that are kept of a
    row, computed by the stages; last: the task that uses them."""

    part: Part
    axes: list[str]
    placed: list[Tensor]
    stages: list[Nest]
    last: Nest

    @property
    def swept(self) -> bool:
        """Whether the last task reduces the rows."""
        return self.axes[0] in self.last.reduced_extents

    @property
    def nests(self) -> list[Nest]:
        return [*self.stages, self.last]

    def steps(self, head: Steps, stages: Sequence[tuple[str, Steps | None]], tail: Steps) -> Steps:
        """The steps of the kernel. head: map the rows to units; stages: the memory and the steps of each stage; tail: of the last task.
        Rows that stages store bypass the caches if those of the last task do."""
        stream = any(isinstance(s, Place) and s.stream for s in head)
        kept = (
            Place("compute", t.name, memory, stream=stream and memory == "global" and len(t.dims) > len(self.axes), steps=how)
            for t, (memory, how) in zip(self.first, stages, strict=True)
        )
        return (*head, *kept, *tail)

    @property
    def first(self) -> list[Tensor]:
        """The first tensor of each stage."""
        return [t for t in self.placed if t.member == 0]

    def loops(self, steps: Steps, profile: Profile) -> Loops:
        """The loops of the kernel with these steps."""
        return self.part.loops(steps, self.placed, profile)


def rows_of(part: Part, keeps_few: bool, swept: bool = False) -> Rows | None:
    """The rows of a part; None if its tasks have no axis in common, or there is nothing to compute. keeps_few: as for
    `Part.on_chip`; swept: whether the last task may reduce the rows."""
    placed = part.on_chip(keeps_few)
    order = [t for t in placed if t.member == 0]
    stages = [nest_of(part.stage(t, placed)) for t in order]
    last = nest_of(part.task(placed))
    axes = common_axes(placed, [*stages, last], swept)
    return Rows(part, axes, placed, stages, last) if axes and last.points else None


def common_axes(placed: list[Tensor], nests: list[Nest], swept: bool = False) -> list[str]:
    """Axes that every placed tensor has, and at which it is always read; those of the last nest's results. swept: if there are none,
    those that it reduces."""
    common = common_extents(placed, nests, nests[-1:] if swept else ())
    kinds = (nests[-1].spatial, nests[-1].reduced)
    return next((found for kind in kinds if (found := [a.name for a in kind if a.name in common])), [])


def common_extents(placed: Collection[Tensor], nests: Collection[Nest], sweeping: Collection[Nest] = ()) -> dict[str, int]:
    """The axes of all results of some nests that every placed tensor has, and at which it is always read, with their extents.
    sweeping: nests that may reduce these axes instead."""
    common: dict[str, int] | None = None
    for tensor in placed:
        assert tensor.definition is not None
        mine = {a.name: a.extent for a in tensor.definition.axes}
        common = mine if common is None else {n: e for n, e in common.items() if mine.get(n) == e}
    names = {t.name: t for t in placed}
    for nest in nests:
        own = nest.extents if any(nest is s for s in sweeping) else nest.spatial_extents
        common = {n: e for n, e in (common or {}).items() if own.get(n) == e}
        for access in nest.reads:
            if access.name in names:
                definition = names[access.name].definition
                assert definition is not None
                at = {a.name: i for a, i in zip(definition.axes, access.written, strict=True)}
                common = {n: e for n, e in common.items() if isinstance(i := at[n], Axis) and i.name == n}
    return common or {}
