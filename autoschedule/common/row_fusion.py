"""Several tasks in one kernel, row by row: which rows they share, and what is kept of a row.

The rows follow from the definitions: the axes that all reductions have in common and are read at. How rows are mapped to the units of a
device, and where their values are kept, is in the device's own module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.expr import Axis, Call
from tilelang.schedules.steps import Place
from tilelang.schedules.task import plan, task_of


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The tasks of a computation that may be one kernel. axes: over which there is a row each; placed: what is kept of a row, each
    made by one of the stages; last: what is made of it."""

    axes: list[str]
    placed: list[Tensor]
    stages: list[Nest]
    last: Nest

    @property
    def nests(self) -> list[Nest]:
        return [*self.stages, self.last]

    def steps(self, head: Steps, stages: Sequence[tuple[str, Steps | None]], tail: Steps) -> Steps:
        """A kernel: what rows go to, the memory and the steps of each stage, the steps of what is last."""
        kept = (Place("compute", t.name, memory, steps=how) for t, (memory, how) in zip(self.placed, stages, strict=True))
        return (*head, *kept, *tail)


def rows_of(computation: Computation, keeps_few: bool) -> Rows | None:
    """The rows of a computation; None where no axis is common to all its tasks, or there is nothing to compute. keeps_few: as of
    `on_chip`."""
    placed = on_chip(computation, keeps_few)
    names = {t.name for t in placed}
    order = [t for t in placed if t.member == 0]
    stages = [nest_of(task_of(t, lambda r: r.name in names)) for t in order]
    last = nest_of(plan(computation, names)[-1])
    axes = common_axes(placed, [*stages, last])
    return Rows(axes, order, stages, last) if axes and last.points else None


def on_chip(computation: Computation, keeps_few: bool) -> list[Tensor]:
    """What a kernel of all tasks keeps for a row: the results of reductions, and pointwise values with a function that several read;
    keeps_few: or that have fewer axes than who reads them."""
    made = {t.name for task in plan(computation, set(), kept_in_memory(computation))[:-1] for t in task.outputs}

    def dear(definition: Definition, tensor: Tensor) -> bool:
        if definition.reduction is not None or tensor in computation.outputs:
            return False
        readers = [d for d in computation.definitions if tensor in d.reads]
        several = len(readers) > 1 or (keeps_few and any(len(d.axes) > len(definition.axes) for d in readers))
        return several and any(isinstance(e, Call) for v in definition.values for e in v.walk())

    return [t for d in computation.definitions for t in d.tensors if t.name in made or dear(d, t)]


def common_axes(placed: list[Tensor], nests: list[Nest]) -> list[str]:
    """Axes that every placed tensor has, and at which it is always read."""
    common: dict[str, int] | None = None
    for tensor in placed:
        assert tensor.definition is not None
        mine = {a.name: a.extent for a in tensor.definition.axes}
        common = mine if common is None else {n: e for n, e in common.items() if mine.get(n) == e}
    names = {t.name: t for t in placed}
    for nest in nests:
        common = {n: e for n, e in (common or {}).items() if nest.spatial_extents.get(n) == e}
        for access in nest.reads:
            if access.name in names:
                definition = names[access.name].definition
                assert definition is not None
                at = {a.name: i for a, i in zip(definition.axes, access.written, strict=True)}
                common = {n: e for n, e in common.items() if isinstance(i := at[n], Axis) and i.name == n}
    return [a.name for a in nests[-1].spatial if a.name in (common or {})]
