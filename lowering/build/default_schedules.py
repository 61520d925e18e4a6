"""The schedules of kernels without steps of their own: nested reductions, and those that combine the partial results of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilelang.core.expr import Expr
from tilelang.lowering.limits import MOST_OPERATIONS, operations
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Fuse, Place, Step, Tile, Vectorize
from tilelang.schedules.task import Task

COMBINING = 256  # threads of a block that combines partial results


def default_steps(task: Task, profile: Profile) -> tuple[Step, ...]:
    """The plain schedule of a task without steps: one row of the output per block, the last axis vectorized.

    A documented default, not a fast one. The last output axis is cut into tiles of at most 1024, the others into tiles of 1. Tiles of
    reductions are so short that the unrolled loop over their accumulators remains within the limits of a kernel.
    """
    axes = [a for a in task.axes if a.extent > 1]
    if not axes:
        return ()
    last = axes[-1]
    lanes = max(n for n in profile.vector_lanes(task.outputs[0].dtype) if n <= 16)
    piece = min(last.extent, 1024)
    if task.states:  # at most each element by itself, in half of the limit, as guards and ends come to it
        known: dict[Expr, int] = {}
        whole = MOST_OPERATIONS // 2 // sum(operations(e, known) for e in _each_element(task))
        piece = min(piece, max(1, whole // lanes) * lanes)
    sizes = tuple((a.name, 1 if a is not last else piece) for a in axes)
    steps: list[Step] = [Tile(sizes, "block")]
    if lanes > 1 and piece >= lanes:
        steps.append(Vectorize(last.name, lanes))
    return tuple(steps)


def _each_element(task: Task) -> Iterator[Expr]:
    """The expressions that are unrolled for each element of a task: its own, and those of its combiners."""
    yield from task.expressions()
    for state in task.states:
        yield from state.reduce.combiner.result


def combining_steps(task: Task, profile: Profile, stages: Sequence[str] = ()) -> tuple[Step, ...]:
    """The schedule of a kernel that combines the partial results of blocks. stages: what it computes first, for each of its blocks.

    On devices with lockstep lanes, one thread per result and at most COMBINING threads per block; otherwise the plain schedule.
    """
    axes = [a for a in task.axes if a.extent > 1]
    if stages:
        return _with_stages(task, profile, stages)
    if not profile.lockstep or not axes:
        return default_steps(task, profile)
    whole, names = axes[0].name, {a.name for a in (*task.axes, *task.reduction_axes)}
    fused: list[Step] = []
    if len(axes) > 1:
        whole = "_".join(a.name for a in axes)
        while whole in names:
            whole += "_"
        fused.append(Fuse(whole, tuple(a.name for a in axes)))
    count = min(COMBINING, profile.max_block_threads, math.prod(a.extent for a in axes))
    return (*fused, Tile(((whole, count),), "block"), Tile(((whole, 1),), "thread"))


def _with_stages(task: Task, profile: Profile, stages: Sequence[str]) -> tuple[Step, ...]:
    """The same for a kernel with stages, which each thread computes for itself on devices with lockstep lanes."""
    if not profile.lockstep:
        blocks = default_steps(task, profile)
        made = tuple(Place("compute", name, "shared", implied=True) for name in stages)
        return (*blocks[:1], *made, *blocks[1:])
    made = tuple(Place("compute", name, "register", implied=True) for name in stages)
    sizes, left = dict[str, int](), min(COMBINING, profile.max_block_threads)
    for a in reversed([a for a in task.axes if a.extent > 1]):
        sizes[a.name] = min(a.extent, left)
        left //= sizes[a.name]
    if not sizes:
        return made
    cut = tuple(reversed(sizes.items()))
    return (Tile(cut, "block"), Tile(tuple((name, 1) for name, _ in cut), "thread"), *made)
