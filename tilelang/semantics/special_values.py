"""Values that are likely to expose faults: NaN, infinities, denormals, signed zeros, and the extremes of each type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang.computations.combiners import SHIPPED
from tilelang.computations.computation import Computation, Tensor
from tilelang.semantics import reference
from tilelang.semantics.error_bound import rounding

PLAIN_PER_SPECIAL = 4  # minimum number of ordinary values for each special one


def special_values(tensor: Tensor, finite: bool = False) -> list[Any]:
    """The values of a tensor's type that are most likely to expose a fault, within its range if it has one; the simplest first.

    finite: without NaN, infinities and numbers whose sum with another one is infinite.

    >>> import tilelang as tl
    >>> special_values(tl.input("X", tl.int8, i=4))
    [1, -1, 127, -128]
    >>> special_values(tl.input("ids", tl.int32, i=4, range=(0, 10)))
    [0, 9]
    """
    t = tensor.dtype
    if tensor.range is not None:
        low, high = tensor.range
        return sorted({low, high - 1}) if low < high else []
    if t.kind == "bool":
        return [True, False]
    if t.is_integer:
        return sorted(
            {1, -1, int(t.highest), int(t.lowest)} if t.kind == "int" else {0, 1, int(t.highest)}, key=lambda n: (abs(n), -n)
        )
    r = rounding(t)
    found = [1.0, -1.0, 0.0, -0.0, 1 + 2 * r.unit, r.normal, -r.normal, r.normal - r.tiny, r.tiny, -r.tiny]
    if not finite:
        found += [float("nan"), r.largest, -r.largest] + [float(t.highest), float(t.lowest)] * (t.highest != r.largest)
    return found


def only_finite(computation: Computation) -> bool:
    """Whether inputs must be finite, because a user-defined combiner only has to be valid on finite accumulators."""
    return any(d.reduction is not None and d.reduction.combiner.name not in SHIPPED for d in computation.definitions)


def special_arrays(computation: Computation, seed: int = 0) -> dict[str, Any]:
    """Inputs by name: random ones with each special value at one random position, in at most a fifth of the elements.

    >>> import tilelang as tl
    >>> i = tl.axes(i=1000)
    >>> twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> found, plain = special_arrays(tl.computation("twice", twice)), reference.random_arrays(tl.computation("twice", twice))
    >>> int((found["X"] != plain["X"]).sum())
    15
    """
    found, generator = reference.random_arrays(computation, seed), np.random.default_rng(seed + 1)
    for t in computation.inputs:
        values, flat = special_values(t, only_finite(computation)), found[t.name].reshape(-1)
        count = min(len(values), -(-flat.size // (PLAIN_PER_SPECIAL + 1)))
        places, which = (generator.choice(n, count, replace=False) for n in (flat.size, len(values))) if count else ((), ())
        for place, k in zip(places, which, strict=True):
            with np.errstate(all="ignore"):
                flat[place] = values[k]
        found[t.name] = flat.reshape(t.shape)
    return found
