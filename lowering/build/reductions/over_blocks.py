"""Reductions that blocks share: each block stores its partial results in a workspace, and a second kernel combines them.

If the reductions share a loop, the second kernel also combines the values of its stages. A reduction that reads running values is
first repaired, from the final values of its own block to those of all blocks. A block without points stores the identities, which
change nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Expr, Read, Reduce, substitute
from tilelang.schedules.task import State, Task, by_name
from tilelang.semantics.loop_members import Member, SharedLoop
from tilelang.semantics.repair import before, now


@dataclasses.dataclass(frozen=True)
class OverBlocks:
    """A task whose reductions are divided among blocks.

    partial: for each tensor of its reductions, and of the stages of its shared loop, the tensor of the blocks' values, with a dimension
    for each divided axis first. states: the accumulators of the kernel that combines them; stages: what that kernel computes first, by
    the name of each tensor, in order.
    """

    partial: Mapping[Tensor, Tensor]
    states: tuple[State, ...]
    stages: Mapping[str, Task]


def over_blocks(task: Task, loop: SharedLoop | None, grid: Mapping[str, tuple[int, int]]) -> OverBlocks:
    """The partial results of a task and how they are combined. loop: the loop that its reductions share, if any. grid: for each divided
    axis, the size and the number of its parts."""
    parts = tuple(Axis(f"{name}_part", count) for name, (_, count) in grid.items())
    own = {t for state in task.states for t in state.tensors}
    members = {t: m for m in loop.members for t in m.definition.tensors} if loop is not None else {}
    every = loop.members if loop is not None else ()
    repaired_by = {r.tensor for m in every if m.repair is not None for r in m.repair.reads}
    staged = [m for m in every if m.definition.tensors[0] not in own or m.definition.tensors[0] in repaired_by]
    reductions = [*((s.tensors, s.reduce) for s in task.states), *((m.definition.tensors, m.reduce) for m in staged)]
    partial = {
        t: Tensor(f"{t.name}_partial", v.dtype, (*parts, *t.dims))
        for tensors, reduce in reductions
        for t, v in zip(tensors, reduce.combiner.left, strict=True)
    }
    states = tuple(_combined(s.tensors, s.reduce, task.axes, members.get(s.tensors[0]), partial, parts) for s in task.states)
    stages: dict[str, Task] = {}
    for m in staged:
        tensors, axes = m.definition.tensors, m.definition.axes
        state = _combined(tensors, m.reduce, axes, m, partial, parts)
        made = Task(tensors[0].name, tensors, axes, tuple(Read(t, axes) for t in tensors), (state,))
        stages.update(dict.fromkeys((t.name for t in tensors), made))
    return OverBlocks(partial, states, stages)


def _combined(
    tensors: tuple[Tensor, ...], reduce: Reduce, axes: tuple[Axis, ...], member: Member | None,
    partial: Mapping[Tensor, Tensor], parts: tuple[Axis, ...],
) -> State:  # fmt: skip
    """The reduction of the blocks' values of some tensors, each repaired if it is a member of a shared loop with a repair."""
    values: list[Expr] = [Read(partial[t], (*parts, *by_name(t.dims, axes))) for t in tensors]
    repair = member.repair if member is not None else None
    if member is not None and repair is not None:
        named: dict[Expr, Expr] = dict(zip(member.definition.axes, by_name(member.definition.axes, axes), strict=True))
        known: dict[Expr, Expr] = {}
        for r in repair.reads:
            at = tuple(substitute(i, named) for i in r.indices)
            known |= {now(r): Read(r.tensor, at), before(r): Read(partial[r.tensor], (*parts, *at))}
        values[0] = substitute(repair.apply(values[0]), known)
    return State(tensors, Reduce(reduce.combiner, tuple(values), parts, None, 0))
