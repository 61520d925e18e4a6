"""Random chains of definitions that read each other under `pad`, `where` and clamps, and random schedules for them.

Drawn from what the guide says may be written, not from what the builder can do: a schedule may be refused, but not wrong.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import tilelang as tl


def chain(rng: random.Random) -> tl.Computation:
    """Two to five definitions over one or two axes, each a sum or a choice of reads of those before it; one or several are outputs."""
    extents = {"i": rng.choice([1, 2, 3, 5, 7, 8, 9, 12, 16, 17])}
    if rng.random() < 0.4:
        extents["j"] = rng.choice([1, 2, 3, 4, 6, 8])
    made = tl.axes(**extents)
    axes = made if isinstance(made, tuple) else (made,)
    tensors = [tl.input("X", tl.float32, *axes)]
    for k in range(rng.randint(2, 5)):
        sources = [rng.choice(tensors[-3:]) for _ in range(rng.randint(1, 3))]
        value, *others = [_read(rng, t, axes) for t in ([tensors[-1], *sources[1:]] if rng.random() < 0.8 else sources)]
        for other in others:
            value = value + other if rng.random() < 0.7 else tl.where(axes[0] % 2 == 0, value, other)
        if len(axes) > 1 and rng.random() < 0.3:
            tensors.append(tl.define(f"d{k}", tl.sum(value, over=axes[1]), axes[0]))
        else:
            tensors.append(tl.define(f"d{k}", value * rng.choice([1, 2]) + rng.choice([0, 1]), *axes))
    outputs = [t for t in tensors[1:-1] if rng.random() < 0.25] + [tensors[-1]]
    rng.shuffle(outputs)
    return tl.computation("chain", tuple(outputs))


def _read(rng: random.Random, tensor: tl.Tensor, axes: tuple[Any, ...]) -> Any:
    """An element beside the point: padded or chosen where it may lie outside, clamped, or counted from the other end."""
    indices, conditions = [], []
    for axis, dim in zip(axes, tensor.dims, strict=False):
        offset, n = rng.choice([-2, -1, 1, 2]), dim.extent
        match rng.choice(["plain", "plain", "beside", "beside", "clamped", "reversed"]):
            case "beside":
                indices.append(axis + offset)
                conditions.append((axis + offset >= 0) & (axis + offset < n))
            case "clamped":
                indices.append(tl.maximum(tl.minimum(axis + offset, n - 1), 0))
            case "reversed":
                indices.append(n - 1 - axis)
            case _:
                indices.append(axis)
    value = tensor[tuple(indices)]
    if not conditions:
        return value
    if rng.random() < 0.7:
        return tl.pad(value, rng.choice([0, 0, 2, -1]))
    return tl.where(conditions[0] & conditions[-1], value, rng.choice([0.0, 3.0]))


def schedule(rng: random.Random, computation: tl.Computation) -> tl.Schedule:
    """Cuts, loads and stages in any memory and order; a step that is refused where it is written is left out."""
    first = computation.outputs[0]
    axes = [d.name for d in first.dims]
    others = [t.name for d in computation.definitions for t in d.tensors if t is not first]
    made = tl.schedule(computation)

    def add(probability: float, step: Any) -> None:
        nonlocal made
        if rng.random() < probability:
            with contextlib.suppress(tl.Refusal):
                made = step(made)

    add(0.15, lambda s: s.load("X", tl.global_))
    add(0.9, lambda s: s.tile(**{a: rng.choice([1, 2, 3, 4, 5, 8, 16]) for a in axes}).to(tl.block))
    add(0.2, lambda s: s.load("X", tl.shared))
    add(0.4, lambda s: s.split(**{rng.choice(axes): rng.choice([1, 2, 3, 4])}))
    for name in others:
        steps = tl.move().vectorize(i=rng.choice([2, 4])) if rng.random() < 0.2 else None
        memory = rng.choice([tl.shared, tl.shared, tl.register])
        add(0.6, lambda s, name=name, memory=memory, steps=steps: s.compute(name, memory, steps=steps))
    add(0.6, lambda s: s.tile(**{rng.choice(axes): rng.choice([1, 1, 2])}).to(tl.thread))
    add(0.3, lambda s: s.vectorize(**{rng.choice(axes): rng.choice([2, 4])}))
    return made
