"""A second, naive interpretation of a schedule: which threads make, move, read and store which element.

It knows steps, expressions and computations, but neither specs nor tasks nor the lowering. Every spec lists its points (see points.py);
every `load` and `compute` lists the region that the points below it read (see reach.py), and divides it by its own steps. The results
are claims: these threads may write, or read, these elements, there. Where the language does not specify which thread of a unit does
something, any of them may. What it cannot interpret, it reports (`NotRead`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Computation, Tensor
from tilelang.core.expr import Axis
from tilelang.schedules.steps import Place, Split, Step
from tilelang.testing.kernels import (
    Kernel,
    Places,
    World,
    blocks_at,
    definition_of,
    made,
    over_blocks,
    reads_outside,
    resolved,
    staged_tensors,
    stages,
    states_of,
    stored_tensors,
    together,
    together_with,
    unlike,
    with_stages,
)
from tilelang.testing.points import Pieces, Table, block_of
from tilelang.testing.reach import NotRead
from tilelang.testing.specs import Spec

Array = Any


def read(
    computation: Computation, steps: Sequence[Step], levels: Mapping[str, int], values: Mapping[Tensor, Array]
) -> list[Kernel]:
    """The kernels that a schedule has steps for. Raises NotRead. values: of every tensor, for indices and conditions."""
    steps = with_stages(computation, resolved(computation, steps))
    blocks = blocks_at(steps)
    repacked = tuple(s for s in steps[:blocks] if isinstance(s, Place) and (s.verb, s.memory) == ("load", "global"))
    own = {s.tensor_name: s.steps for s in steps[:blocks] if isinstance(s, Place) and (s.verb, s.memory) == ("compute", "global")}
    inside = next((s for s in steps[blocks:] if isinstance(s, Place) and (s.verb, s.memory) == ("load", "global")), None)
    if inside is not None:
        raise NotRead("load in global below blocks")
    here, stored = staged_tensors(computation, steps), stored_tensors(computation, steps)
    all_main = together(computation, stored)
    alone = {*own, *(t.name for t in computation.outputs if t not in all_main and t.name not in stored)}
    written = {n for name in alone for n in _needed(computation, {name}, own.get(name) or (), alone - {name})}
    early = set(written)
    main = tuple(t for t in all_main if t.name not in early) or all_main[:1]
    reduced = [definition_of(t) for t in main if definition_of(t).reduction is not None]
    at: Places = {("", d.tensors[0].name): d.axes for d in reduced}
    for others in (False, True):
        for t in main:  # each may be inlined into the others
            early |= made(computation, {t.name}, here | early, at, others) - {m.name for m in together_with(t)} - here
    while True:
        main = tuple(t for t in all_main if t.name not in early) or all_main[:1]
        other = unlike(main, here | early)
        if other is None:
            break
        early |= made(computation, {other.name})
    roots = (main, *((computation.tensor(name),) for name in (*here, *own)))
    states = {t.name for root in roots for t in states_of(root, here | early)}
    left = {t.name for d in computation.definitions if d.reduction is not None for t in d.tensors} - here - states
    # The kernel that combines partial results has only the stages of a shared loop; it computes again what the results read of others.
    looped = {name for s in steps if isinstance(s, Split) for name in s.of}
    apart = over_blocks(states_of(main, here | early), steps) and reads_outside(main, here - early - stored - looped)
    places: Places = {}
    for name, staged in (*((t.name, False) for t in main), *((name, True) for name in here)):
        group = {t.name for t in together_with(computation.tensor(name))}
        kept = () if apart and not staged else here | early
        left |= made(computation, group, kept, None if staged else places) - group - here
    if apart:  # blocks compute parts of accumulators, so a stage that could be one is computed whole
        left |= {t.name for t in states_of(main, early)} - {t.name for t in states_of(main, here | early)}
    world = World(computation, values, levels, made(computation, (early | left) - written, written) | written)
    main = tuple(t for t in main if t.name not in world.made) or all_main[:1]
    before, done = [], frozenset[str]()
    for name in (t.name for d in computation.definitions for t in d.tensors if t.name in own):  # in the order of their kernels
        inner = own[name] or ()
        done |= _needed(computation, {name}, inner, done)
        if inner:
            at_that_time = dataclasses.replace(world, made=done)
            before.append(_kernel(at_that_time, together_with(computation.tensor(name)), (*repacked, *inner)))
    return [*before, _kernel(world, main, steps)]


def _needed(computation: Computation, names: set[str], steps: Sequence[Step], others: Collection[str] = ()) -> frozenset[str]:
    """These tensors, and those that earlier kernels must compute for their kernel and its stages. others: tensors with separate
    kernels."""
    inside = staged_tensors(computation, steps)
    needed = set(made(computation, names, {*others, *inside}))
    for stage in stages(steps):
        group = {t.name for t in together_with(computation.tensor(stage))}
        needed |= made(computation, group, {*others, *inside, *needed}) - group - inside
    return frozenset(needed)


def chains(computation: Computation, steps: Sequence[Step], levels: Mapping[str, int]) -> list[tuple[Table, tuple[Step, ...]]]:
    """The points of each kernel with steps, before the first step, and these steps. The last one has the outputs."""
    main = together(computation, stored_tensors(computation, steps))
    own = [
        s for s in steps[: blocks_at(steps)] if isinstance(s, Place) and (s.verb, s.memory) == ("compute", "global") and s.steps
    ]
    every = [(together_with(computation.tensor(s.tensor_name)), s.steps or ()) for s in own]
    return [(points(tensors, inner, levels, frozenset())[0], tuple(inner)) for tensors, inner in (*every, (main, tuple(steps)))]


def points(
    tensors: tuple[Tensor, ...], steps: Sequence[Step], levels: Mapping[str, int], made: Collection[str]
) -> tuple[Table, tuple[Tensor, ...], Sequence[Axis]]:
    """The points of a kernel before the first step, its reductions, and their axes. made: the results of other kernels."""
    definition = definition_of(tensors[0])
    states = states_of(tensors, set(stages(steps)) | (set(made) - {t.name for t in tensors}))
    reduction = definition_of(states[0]).reduction if states else None
    over = () if reduction is None else reduction.axes
    extents = {a.name: a.extent for a in (*definition.axes, *over)}
    block = block_of(steps, extents, levels)
    zero = np.zeros(1, np.int64)
    whole = Pieces(dict.fromkeys(extents, zero), zero, zero + block.first, block.threads)
    return Table(extents, whole, steps, block, over), states, over


def _kernel(world: World, tensors: tuple[Tensor, ...], steps: Sequence[Step]) -> Kernel:
    table, states, over = points(tensors, steps, world.levels, world.made)
    kernel = Kernel(tensors, given=world.made - {t.name for t in tensors})
    spec = Spec(world, kernel, tensors, over, table, steps, {})
    spec.store(spec.run(), states)
    return kernel
